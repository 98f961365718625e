//go:build race

package static

// The race detector allocates on its own account.
const raceEnabled = true
