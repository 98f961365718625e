// Package tally counts what a server does, with as little as possible on the way of a
// request: each event loop has a Shard of its own, whose counters are plain words.
package tally

// It knows numbers and package stats; it must not know loops, connections or HTTP.
// loop, conn, tlsio, stream, bridge and the root may import it.
//
// A Shard has every counter twice. Of the first the goroutine that drives the loop is
// the only writer, so that it is no atomic: on amd64 an atomic Add and an atomic Store
// both cost a locked instruction. All others use the second, which is atomic or has a
// lock. User code under a lease may lose the loop at any moment, so it is among the
// others. A reader asks the loop, by a message, for a copy; see docs/adr/0042.
