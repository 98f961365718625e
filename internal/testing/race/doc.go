// Package race reports whether the race detector is on. The detector allocates and
// slows everything down: tests that count allocations are skipped under it, and
// tests that only take long do fewer rounds.
package race

// Only tests import it.
