// Package sim simulates the kernel that event loops run on: listening sockets, connections,
// readiness and descriptors, in memory. One seed decides every fault and every order.
package sim

// It implements poll.Poller as internal/poll describes it, and knows loops, HTTP and
// clients' protocols no more than a kernel does. Only tests may import it.
//
// A simulation runs in a bubble of testing/synctest: goroutines and package time are
// real, the clock is the bubble's. All of the server's goroutines wait most of the time,
// in Poller.Wait, in a channel of the engine, or in World.Point. World.Run then chooses
// what happens next, one thing at a time:
//
//	a loop's Wait returns, with some of its events
//	a call of a hijacked connection returns
//	a goroutine that waits in Point goes on
//	an Actor, which plays a client, acts: it connects, sends, receives, disconnects
//	bytes that a client has sent arrive
//	the clock advances
//
// So the order of everything that waits is the seed's, and a seed replays its run. One step
// may make several goroutines runnable, one that was released and those that it has woken.
// The latter come to a Point before they do anything that others see (package sched), so
// that the order in which the Go scheduler runs them does not matter. What is left to chance
// is the order of ready cases in a select, of maps, and randomness of math/rand and of
// hash/maphash; the engine decides nothing by them that shows, but for what package place
// forgets when it has too many paths.
