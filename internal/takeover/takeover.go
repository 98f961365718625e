package takeover

import (
	"net"
	"net/http"

	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/outbox"
)

// A Session is the protocol on a Link. Its Drain is called for the server's shutdown alone.
type Session interface {
	link.Session
	// Run is the user code, which Link.Run calls.
	Run()
	// Kind identifies that code in what is known of how long it takes. It does not change.
	Kind() string
}

// A Link is a connection, or a stream, that a Session has taken over.
type Link interface {
	link.Link
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
	// Quick reports whether the user code is likely to be quick enough to run on a loop;
	// otherwise Data returns Elsewhere.
	Quick() bool
	// Run calls the Session's Run, unless the connection has ended. It reports false after
	// a panic, which has been logged.
	Run() (ok bool)
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
	// Closed is called once, after the response or the connection has ended, which may be
	// while the handler still runs. Then the client has gone, unless End was called.
	Closed()
}

// A Streamer is an http.ResponseWriter whose response can outlive its handler.
type Streamer interface {
	// Outlive sends the head of the response, with the status 200 unless there is
	// another, and leaves the rest to the Source that begin returns, after which s
	// may be used. chunked reports that what is offered must be in chunks, the last
	// one included (RFC 9112 section 7.1). The request is valid only until its handler
	// returns; it may lose its fields then.
	Outlive(begin func(s Stream, chunked bool) Source) error
	// Hold is Outlive for an answer that comes as a whole: the connection can be used
	// again after it. answer is to be called once, after begin; any goroutine may.
	// Writable is not called.
	Hold(begin func(answer func(p []byte)) Source) error
}

// Find returns the T, an interface, that w is or wraps, or nil. It unwraps as http.ResponseController
// does.
func Find[T any](w http.ResponseWriter) (none T) {
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

// Addr is the address of a client as http.Request.RemoteAddr has it.
type Addr string

// Network implements net.Addr.
func (a Addr) Network() string { return "tcp" }

// String implements net.Addr.
func (a Addr) String() string { return string(a) }

// A Slotted is an http.ResponseWriter whose handler may hold a slot of Server.MaxHandlers.
type Slotted interface{ FreeSlot() }

// FreeSlot gives back the slot of w's handler, which goes on for as long as a connection does. It
// unwraps w as Find does, and is the handler's.
func FreeSlot(w http.ResponseWriter) {
	if h := Find[Slotted](w); h != nil {
		h.FreeSlot()
	}
}
