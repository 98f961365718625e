// Package conn is the connections of event loops: their bytes in both
// directions, who owns them, what they wait for, and how they end. contract.go
// says what a connection (a Link) and its protocol (a Session) are to each other.
package conn

// It knows bytes and loops; it must not know what the bytes mean. bridge, tlsio
// and the root may import it; stream imports the contract, to offer the same over
// a net.Conn.
//
// # One owner at a time
//
// A connection is owned by its loop, or by one goroutine that does not drive the
// loop. The owner alone calls the Session, and uses the socket and every field
// but the state word and the queue, which has a lock. Another goroutine may only
// set bits in the state word (the loop, for events) or post a message (anybody).
//
//	            Enter                    Leave
//	+------+ ----------> +-----------+ -------> +------+
//	| loop |             | user code |          | loop |
//	|      |             | on the    |          +------+
//	|      |             | driver    | --+
//	|      |             +-----------+   | Lost: it waits, or takes long
//	|      |                             v
//	|      |      Go             +-----------------+
//	|      | ------------------> | a goroutine off |
//	|      | <------------------ | the loop: own   |
//	+------+  release: CAS, or   +-----------------+
//	   |      post(Next)                 |
//	   | leave                           | Hijack: post(Detached)
//	   v                                 v
//	closed                            hijacked
//
// User code on the driver costs a lease of the loop and nothing else: no event can
// come meanwhile, so the state word stays 0. If the lease is lost (package loop),
// Lost sets owned before the next driver starts, and leaves the timer's time in
// armedAt; when the user code returns, Leave finds the loss, sets off, and the
// goroutine goes on as the owner where it was: in the middle of Data, or of a
// Ready that returns false in the end. Its loop's scratch buffer stays its own
// until then, so Data may run user code that looks at bytes in it.
//
// An event that comes while a goroutine off the loop is the owner only sets bits
// (state.go). release fails when one of them asks for something, so no event is
// lost between the owner's last look and the change of owner.
//
// Descriptors are closed by the loop alone. So the loop may look at a socket that
// another goroutine owns (recv with MSG_PEEK, shutdown) without fear that its
// number has gone to another.
//
// # The queue
//
// What is to be sent goes through Send, Write or Queue, and what the socket does
// not take is kept in one queue (queue.go):
//
//	nothing queued:  one system call with the caller's bytes
//	corked:          answers of pipelined requests, until Data returns, the loop
//	                 is lost, or more comes than highWater
//	stalled:         the socket is full; an event makes the loop send on, and the
//	                 Session is not called meanwhile, unless the Link is shared
//
// A write of user code waits while the queue is above its high-water mark; what is
// below it goes on without a goroutine when the user code has returned.
//
// # The layer
//
// With a Layer (layer.go), what read gives goes through Open before it is
// Buffered, and what push takes through Seal; an empty segment in the queue stands
// for what the layer has to send by itself. Only read reads the socket; only
// write, and where there is no layer the calls of sendfile and splice, write to it.
