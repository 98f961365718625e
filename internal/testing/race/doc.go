// Package race tells tests whether the race detector is on, which allocates and
// makes all slower: what counts allocations is skipped under it, and what only
// takes time is done less often.
//
// Tests alone import it.
package race
