// Package loop runs the event loops: each waits for events, accepts
// connections, fires timers, delivers mail, runs quick work itself and hands
// other work to pooled goroutines.
//
// It knows sockets only as Socks with a slot, a timer and three calls; it must
// not know bytes, connections' states or HTTP. conn, bridge and the root may
// import it.
//
// # One turn
//
//	wait for events -> for each: Ready, then the tasks it gave to Next
//	                -> mail -> Socks that asked to go on -> timers -> tasks
//
// All of these run on the goroutine that drives the loop, "the loop's
// goroutine", so a Sock's methods never run at the same time. Other goroutines
// reach a Sock only through Post.
//
// A task given to Next may cost that goroutine the loop; another goes on then
// where it stopped. driver.go has the rules.
package loop
