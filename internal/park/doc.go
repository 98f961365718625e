// Package park calls a function when a socket of package net becomes readable,
// while no goroutine waits for it.
package park

// It knows nothing of HTTP, servers or event loops, and does not read. Package
// park imports it, and the root for Busy. docs/adr/0041-parked-connections.md has the reasons.
