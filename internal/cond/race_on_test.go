//go:build race

package cond

// The race detector allocates on its own account.
const raceEnabled = true
