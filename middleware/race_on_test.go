//go:build race

package middleware

// The race detector allocates on its own account.
const raceEnabled = true
