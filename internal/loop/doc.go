// Package loop runs event loops: each waits for events, accepts connections,
// fires timers, delivers messages, runs quick user code itself and passes the
// rest to pooled goroutines.
package loop

// It knows sockets only as Socks with a handle, a timer and three calls; it must
// not know bytes, connections' states or HTTP. conn, bridge and the root may
// import it.
//
// One turn:
//
//	wait for events -> for each: Ready -> messages -> requeued Socks: Ready -> timers
//
// All of these run on the goroutine that drives the loop, so a Sock's methods
// never run at the same time. Other goroutines reach a Sock only through Post.
//
// Ready may run user code under a lease, which may cost the goroutine its loop;
// Ready then returns false, and another goroutine continues the turn where this
// one stopped. driver.go has the rules.
