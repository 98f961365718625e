package takeover

import (
	"net"
	"net/http"

	"github.com/chert-http/chert/internal/outbox"
)

// Next is what a Session requests for its Link; see internal/conn.
type Next uint8

const (
	More      Next = iota // call Data when more has arrived
	Requeue               // call Data again after other connections have had their turn
	Pause                 // read no more, and call Data when little is queued, after Writable
	Close                 // close when all that was queued has been sent
	Linger                // the same for a peer that may still be sending
	Reset                 // drop what is unsent and send RST
	Elsewhere             // call Serve on a goroutine that may block
)

// A Session is the protocol on a Link. The Link's owner calls its methods, one at a
// time, except Late and PeerGone, which any goroutine may call, and Closed. None
// may block, except user code in Link.Run, and Serve.
type Session interface {
	// Data consumes what it can of the Link's Buffered bytes. It is called when
	// there are more, after the takeover, after Requeue and Pause, and when the peer
	// has ended its stream (eof).
	Data(eof bool) Next
	// Run is the user code, which Link.Run calls.
	Run()
	// Serve is called after Elsewhere, on a goroutine that may block, and returns what
	// Data would.
	Serve() Next
	// Writable is called when less than MinLimit/2 is queued, after Offer has reported
	// that much is.
	Writable()
	// Expired is called when the deadline of SetDeadline has passed.
	Expired() Next
	// Stop is called, perhaps repeatedly, when the server shuts down.
	Stop() Next
	// Late is called while user code that began on a loop, and has cost the loop its
	// driver, continues.
	Late()
	// PeerGone is called while user code runs, when the peer has disconnected.
	PeerGone()
	// Closed is called once, after the connection has ended. It must not wait.
	Closed()
}

// A Link is a connection that a Session has taken over.
type Link interface {
	// Buffered returns the bytes that were received and not consumed, which the
	// Session may change. They are valid until Data returns, or the next call of
	// Discard.
	// Discard consumes n of them.
	Buffered() []byte
	Discard(n int)
	// Offer sends a and then b, or queues copies. It never waits, and is safe for
	// concurrent use. If more than half of limit is queued, and it would be more than
	// limit bytes with these, Offer queues nothing and returns ErrFull. A limit is
	// MinLimit at least; a negative one means none. much reports that more than half of
	// limit is queued.
	Offer(a, b []byte, limit int) (much bool, err error)
	// Follow calls f when nothing is queued of what has been offered so far, or the
	// connection has ended. That may be immediately. f must not wait. Safe for
	// concurrent use.
	Follow(f func())
	// OnLoop reports whether the caller drives an event loop, and Quick whether user
	// code of this kind is likely to be quick enough to run there; otherwise it is
	// to be run by Serve.
	OnLoop() bool
	Quick(kind string) bool
	// Run calls the Session's Run, unless the connection has ended. It reports false after
	// a panic, which has been logged.
	Run() (ok bool)
	// Post calls f like a method of the Session, unless the connection ends before.
	// Safe for concurrent use.
	Post(f func() Next)
	// SetDeadline sets when Expired is called, in the time of Now; 0 means never.
	SetDeadline(ns int64)
	Now() int64
	// The addresses are safe for concurrent use.
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// StoppingKey is the key, in requests' contexts, of a <-chan struct{} that is closed when
// the server begins to stop.
type StoppingKey struct{}

// MinLimit is the least limit of Link.Offer, in bytes.
const MinLimit = outbox.HighWater

// ErrFull is returned by Link.Offer and Stream.Offer when they have accepted nothing.
var ErrFull = outbox.ErrFull

// A Writer is an http.ResponseWriter whose connection can be taken over.
type Writer interface {
	// TakeOver sends the head of the response, whose status must be 101, and
	// passes the connection to the Session that begin returns, as soon as the
	// handler has returned. The Link may be used for Offer before.
	TakeOver(begin func(Link) Session) error
}

// A Stream is the rest of a response that outlives its handler. Its methods are safe
// for concurrent use and never wait.
type Stream interface {
	// Offer is Link.Offer for what comes next, with body bytes of the body: p without the
	// framing of chunks.
	Offer(p []byte, body, limit int) (much bool, err error)
	// End ends the response after what has been offered; abort means without what
	// the client has not accepted. Nothing is to be offered afterwards.
	End(abort bool)
	RemoteAddr() net.Addr
}

// A Source is where the rest of a response comes from. Its methods must not wait.
type Source interface {
	// Writable is called when the client has accepted most of what was queued, after
	// Offer has reported that this is much.
	Writable()
	// Stop is called, perhaps repeatedly, when the server shuts down.
	Stop()
	// Closed is called once, after the response or the connection has ended. Then the
	// client has gone, unless End was called.
	Closed()
}

// A Streamer is an http.ResponseWriter whose response can outlive its handler.
type Streamer interface {
	// Outlive sends the head of the response, with the status 200 unless there is
	// another, and leaves the rest to the Source that begin returns. chunked reports
	// that what is offered must be in chunks, the last one included (RFC 9112 section
	// 7.1). The request is valid only until its handler returns; it may lose its fields
	// then.
	Outlive(begin func(s Stream, chunked bool) Source) error
	// Hold is Outlive for an answer that comes as a whole: the connection can be used
	// again after it. answer is to be called once; any goroutine may. Writable is not
	// called.
	Hold(begin func(answer func(p []byte)) Source) error
}

// Of returns the Writer that w is or wraps, or nil. It unwraps as
// http.ResponseController does.
func Of(w http.ResponseWriter) Writer { return find[Writer](w) }

// StreamerOf is Of for Streamers.
func StreamerOf(w http.ResponseWriter) Streamer { return find[Streamer](w) }

func find[T any](w http.ResponseWriter) (none T) {
	for {
		if t, ok := w.(T); ok {
			return t
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return none
		}
		w = u.Unwrap()
	}
}
