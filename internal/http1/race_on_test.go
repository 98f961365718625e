//go:build race

package http1

// The race detector allocates on its own account.
const raceEnabled = true
