// Package loop runs the event loops: one goroutine each, which waits for
// events, accepts connections, fires timers, delivers mail and hands work to
// pooled goroutines.
//
// It knows sockets only as Socks with a slot, a timer and three calls; it must
// not know bytes, connections' states or HTTP. conn, bridge and the root may
// import it.
//
// # One turn
//
//	wait for events -> Ready for each -> mail -> Socks that asked to go on -> timers
//
// All of these run on the loop's goroutine, so a Sock's methods never run at
// the same time. Other goroutines reach a Sock only through Post.
package loop
