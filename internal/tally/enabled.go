//go:build !chert_nostats

package tally

// Enabled is whether anything is counted. The tag chert_nostats compiles counting out;
// it exists to measure what counting costs (lab's --against-tags), and for nothing else:
// a server without counters is not tested.
const Enabled = true
