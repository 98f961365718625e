// Package conn implements the connections of event loops: reading and writing,
// ownership, deadlines, and closing. contract.go defines the interfaces between a
// connection (a Link) and its protocol (a Session).
package conn

// It knows bytes and loops; it must not know what the bytes mean. bridge, tlsio,
// outbound and the root may import it; stream imports the contract, to implement it
// over a net.Conn. dial.go is for connections that the server opens, which are on the
// loop of the client's connection that they are for.
//
// # One owner at a time
//
// A connection is owned by its loop, or by one goroutine that does not drive the
// loop. Only the owner calls the Session, and uses the socket and all fields
// except the state word and the queue, which has a lock. Another goroutine may
// only set bits in the state word (the loop, for events) or post a message (any
// goroutine). The loop becomes the owner again by a message, so owned changes
// on the loop, or while it has no driver.
//
//	             Do                     it ends
//	+------+ ----------> +-----------+ -------> +------+
//	| loop |             | user code |          | loop |
//	|      |             | on the    |          +------+
//	|      |             | driver    | --+
//	|      |             +-----------+   | Lost: it waits, or takes long
//	|      |                             v
//	|      |      Elsewhere      +-----------------+
//	|      | ------------------> | a goroutine off |
//	|      | <------------------ | the loop        |
//	+------+     post(Next)      +-----------------+
//	   |                                 |
//	   | leave                           | Hijack: post(Detached)
//	   v                                 v
//	closed                            hijacked
//
// User code on the driver costs a lease of the loop and nothing else: no event can
// arrive meanwhile, so the state word stays 0. If the lease is lost (package
// loop), Lost sets owned before the next driver starts; when the user code returns,
// Do detects the loss and sets off, and the goroutine continues as the owner where
// it was: in the middle of Data, or of a Ready that will return false. It keeps the
// loop's scratch buffer until then, so Data may run user code that reads bytes in it.
//
// An event that arrives while a goroutine off the loop is the owner only sets
// bits (state.go), which takeBack finds. A timer that fires is armed again then.
//
// Only the loop closes descriptors. So it may use a socket that another goroutine
// owns (recv with MSG_PEEK, shutdown) without the risk that its number has been
// reused.
//
// # The queue
//
// Output goes through Send or Out().Offer, and what the socket does not accept
// is kept in one queue (package outbox, queue.go):
//
//	nothing queued:  one system call with the caller's bytes
//	corked:          answers of pipelined requests, until Data returns, the loop
//	                 is lost, or outbox.HighWater is exceeded
//	stalled:         the socket is full; an event makes the loop continue, and the
//	                 Session is not called meanwhile, unless the Link is shared
//
// A write of user code waits while the queue is above its high-water mark; the
// loop sends what is below it, without a goroutine, after the user code has
// returned.
//
// # The layer
//
// With a Layer (layer.go), what read returns passes through Open before it is
// Buffered, and what push accepts passes through Seal; an empty segment in the
// queue stands for what the layer itself has to send. Only read reads from the
// socket; only write, and without a layer the calls of sendfile and splice, write
// to it.
