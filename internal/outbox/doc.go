// Package outbox queues what a connection, or a stream of one, has still to send, and says
// how much may be queued.
package outbox

// It knows bytes, files and whom to notify; it must not know sockets, loops or protocols. A
// carrier is what it is pushed through, as a Sink: the socket of an event loop (conn), a
// net.Conn with a goroutine (stream, websocket), an http.ResponseWriter (eventstream).
//
// There are two kinds of carriers. One that never waits is pushed through with the lock
// held, by whichever goroutine adds something, and pulls the rest (Pull) when it can accept
// more. One that waits is pushed through by one goroutine of its own (Carry), without the
// lock; Sink.Wake begins that.
//
//	         Send, Write            Offer            Follow
//	         (the owner)       (any goroutine)
//	              |                   |                 |
//	nothing waits |   something waits v                 v
//	              |        +---------------------+   +-------+
//	              |        | segments, in order  |   | marks |
//	              |        +---------------------+   +-------+
//	              v                   | Pull, Carry     | notified when that much
//	          Sink.Push <-------------+                 | has been sent or lost
//
// HighWater bounds what a caller queues that can wait, and what is corked. Offer has a
// bound of its own: see Refused. At LowWater there is room again.
