package link

import "time"

// A Session is the protocol spoken on a Link. The Link's owner calls it, so its
// methods never run at the same time; PeerGone and Late are the exceptions. None
// of them may block, except user code in Do, and Data after Elsewhere.
type Session interface {
	// Data consumes what it can of the Link's Buffered bytes, starts runs of user
	// code and sends responses, and returns what is to happen next. It is called
	// when there are more bytes than at its last return, when the peer has ended
	// its stream (eof), and, after Requeue, Elsewhere or a stalled queue, with the
	// Buffered bytes, which may be none.
	Data(eof bool) Next
	// Writable is called on a shared Link when the queue has fallen below its
	// low-water mark after Offer has reported that much is queued.
	Writable() Next
	// Expired is called when the deadline of SetDeadline has passed, but not before the end of a Wait.
	Expired() Next
	// Drain is called, perhaps repeatedly, while the Session waits for the peer,
	// also after Pause, when the server is shutting down, keep-alives were disabled, or another
	// connection needs this one's goroutine. Close takes effect only if the peer
	// has sent nothing that Data has not received; HalfClose at once. A request that is incomplete
	// then has DrainNew to arrive, counted from since, a time of sys.Nanotime. On a loop each call has
	// a later one; the first counts.
	Drain(since int64) Next
	// Since returns when the Session's current wait for the peer began, to about
	// a millisecond; now is the current time. Both are times of sys.Nanotime. It
	// is called only during such a wait, which is for the beginning of a request
	// if nothing is Buffered, otherwise for the rest of one. On a shared Link it is
	// safe for concurrent use, and a negative value means that the Session does not
	// wait: Runs are in progress, or responses.
	Since(now int64) int64
	// Late is called when user code was found to have held a loop for at least held. If
	// the code has just cost the loop its driver, it is called while the code runs, on any
	// goroutine, and held is loop.Overstay. Otherwise Do calls it when the code has ended,
	// and held is less. In both cases Do returns after it, and so does Yield.
	Late(held time.Duration)
	// PeerGone is called while user code owns the Link, when the peer has
	// disconnected: by a reset, or what the Layer takes for an error, or by closing its side when
	// all its data has been read from the socket. Any goroutine may call it.
	PeerGone(reset bool)
	// Closed is called once, after the connection has ended or been hijacked.
	Closed(hijacked bool)
}

// Next is what a Session requests for its Link.
type Next uint8

const (
	// More: call Data when more has arrived.
	More Next = iota
	// Requeue: call Data again after other connections have had their turn.
	Requeue
	// Wait: call nothing until a function passed to Post returns Requeue: the Session
	// waits for what the server has few of. A peer that resets the connection ends it.
	Wait
	// Pause, on a shared Link: read no more, and call Data when the queue is below its
	// low-water mark, after Writable. For a peer that sends and does not read.
	Pause
	// Await, of a Conn on its loop: read no more, and call Data after Resume, and when all that was queued
	// has been sent. For a peer whose bytes go to another connection, which has no room for them.
	Await
	// Close: close when all that was queued has been sent.
	Close
	// Linger: when all that was queued has been sent, send FIN, and close when
	// the peer has closed or a short time has passed. For a peer that may still
	// be sending: closing with unread bytes sends a reset, and a reset can
	// destroy a response that the peer has not read yet (RFC 9112 section 9.6).
	Linger
	// HalfClose, of Drain: send FIN, so that the peer does not begin another request, and
	// close. What was on its way then is discarded, as after Linger.
	HalfClose
	// Reset: drop what is unsent and send RST, for a peer that accepts nothing.
	Reset
	// Elsewhere, of Data and of functions passed to Post: call Data again, on a goroutine
	// that may block, which owns the Link until Data returns.
	Elsewhere
	// Detached: Hijack has passed the connection to user code.
	Detached
	// Lost: Start has cost the caller its loop, and with it the Link, which must
	// not be touched any more.
	Lost
)

// A Link is a connection, or one stream of many, as every Session has it. Unless stated
// otherwise, methods may be called by its owner (the goroutine that calls the Session) and by
// goroutines that the owner synchronises with.
type Link interface {
	// Buffered returns the bytes that were received and not consumed, which the Session may
	// change. They are valid until Data returns, or the next call of a method that reads or
	// discards. Discard consumes n of them.
	Buffered() []byte
	Discard(n int)
	// OnLoop reports whether the caller is driving an event loop, which user code does as
	// long as that is held. Otherwise its goroutine may block.
	OnLoop() bool
	// Post calls f on the owner's side, one call after another with the Session's methods,
	// unless the connection ends before. Safe for concurrent use.
	Post(f func() Next)
	// SetDeadline sets when Session.Expired is called, in the time of Now, and replaces an
	// earlier deadline; 0 means none.
	SetDeadline(ns int64)
	// Now returns the time, which is that of sys.Nanotime on chert's own connections, or
	// slightly before it if that saves reading the clock. Not for user code.
	Now() int64
}
