// Package sched lets a simulation choose which goroutine goes on after a wait.
package sched

// It knows nothing of this module, so that every package may import it. A server that is not
// simulated pays a load and a comparison, beside a wait. Loops pass their points to their poller
// instead, which the simulation has made.
