// Package conn is one connection: who owns it, its unread and unwritten bytes,
// its deadlines and its end.
//
// It knows bytes and loops; it must not know what the bytes mean. The layer
// above is a Proto. bridge, tlsio and the root may import it; stream imports
// the contract in contract.go to offer the same to a Proto over a net.Conn.
//
// # One owner at a time
//
// A connection is owned by its loop or by the goroutine of its running
// handler, never both. The owner alone reads and writes the socket and every
// field of Conn but the state word. The other side may only set bits in the
// state word (the loop, for events) or post mail to the loop (the handler).
//
//	            Feed says Run: owned set, then
//	            loop.Next (quick) or loop.Go
//	+------+ -------------------------------------------> +---------+
//	| loop |    back: the handler ran on the loop's       | handler |
//	|      |    driver, which still has the loop          |         |
//	|      | <------------------------------------------- |         |
//	|      |    release: CAS clears owned, if no event    |         |
//	|      | <------------------------------------------- |         |
//	+------+    giveBack: mail; the loop clears owned     +---------+
//	   |                                                       |
//	   | closeNow                       Hijack: mailHijacked   |
//	   v                                                       v
//	closed                                                 hijacked
//
// With Limits.Slots, a request for which there is no slot is owned by nobody's
// goroutine yet: owned is set, and Admitted posts mailAdmitted, upon which the
// loop calls loop.Go.
//
// A quick handler runs on the goroutine that drives the loop, under a ticket
// (see package loop). It is the owner all the same, and must not touch the
// loop before Leave has said that the loop is still its goroutine's: the next
// driver may be at work.
//
// The state word's bits:
//
//	owned       the handler's goroutine is the owner
//	readable    the socket may have unread bytes, an end or an error
//	writable    the socket may take bytes again
//	waitRead    the handler sleeps until readable; whoever clears it ends the sleep
//	waitWrite   the same for writable
//	peerClosed  the peer has sent FIN
//	hangup      the connection is dead
//	draining    the server is shutting down: no further request after this one
//	shut        the server is closing: the owner must stop
//	noTimer     the timer fired while the handler was the owner and is unarmed
//	hijacked    the socket belongs to somebody else; ignore all
//
// An event that comes while the handler owns the connection only sets bits.
// release fails when a bit it cares about is set, so no event is lost between
// the handler's last look and the change of owner: it is the handler's to act
// on, by reading on, or the loop's.
//
// Descriptors are closed by the loop alone. So the loop may look at a socket
// that a handler owns (recv with MSG_PEEK, shutdown) without fear that its
// number has gone to another.
package conn
