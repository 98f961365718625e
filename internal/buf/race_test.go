//go:build race

package buf

// Under the race detector sync.Pool drops buffers at random, so allocations
// cannot be counted.
const raceEnabled = true
