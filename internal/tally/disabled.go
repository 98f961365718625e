//go:build chert_nostats

package tally

// Enabled is whether anything is counted; see enabled.go.
const Enabled = false
