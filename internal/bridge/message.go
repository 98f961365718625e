package bridge

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net/http"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
)

// A Message is one request and its answer as a version of HTTP puts them on the
// wire. Methods are called with the response's lock held, ReadBody and BodyLeft
// with the body's; they may wait for the peer.
type Message interface {
	// Begin makes room for the answer before anything of it is written, End gives
	// that back.
	Begin() *Progress
	End()
	// Interim sends an answer with a 1xx status at once, if the peer understands
	// those.
	Interim(status int, h http.Header) error
	// Head takes a snapshot of the status and the fields, as WriteHeader promises.
	Head(status int, h http.Header)
	// Complete decides how the body is framed and completes the head. p is the
	// first of the body, and all of it if the handler has returned.
	Complete(p []byte) error
	// Data takes the next piece of the body. Flush sends all that was given so
	// far.
	Data(p []byte) error
	Flush() error
	// Finish ends the answer, whose body has been given, and says what becomes of
	// the connection. h has the trailers.
	Finish(h http.Header) conn.Next
	// Held is how many bytes that the Message was given it has not given to the
	// Link, and will not.
	Held() int64
	// Release gives back what the handler holds of the server, once it has returned
	// or taken the connection: what follows may wait for the peer. Aside calls f,
	// which may wait on the server's account, without that.
	Release()
	Aside(f func())
	// Raw reports whether bytes may go to the Link past Data, after a Flush.
	Raw() bool
	// ReadBody reads the request's body. It gives io.EOF with the last bytes, or
	// after them, when the trailers have been read.
	ReadBody(p []byte) (int, error)
	// BodyLeft is how many bytes of the body are to come, or less if that is not
	// known.
	BodyLeft() int64
}

// Progress is how far an answer has come.
type Progress struct {
	Staged   []byte // body held back until the head must go; its room is Message's
	Status   int
	Length   int64 // declared Content-Length, -1 for none
	Written  int64 // of the body
	HeadOut  bool  // Complete was called
	Trailers []string
	Given    int64 // of the body, to Message and Link
	Err      error // of the connection; sticky
	watcher  wire.Watcher

	notify chan bool // for CloseNotify
}

// StageSize is how much body is held back before the head must go: a handler
// that ends before gets a Content-Length. net/http's value, so that the same
// handlers get the same framing.
const StageSize = 2 << 10

// A Client is the connection that requests have come by, as far as handlers may
// know of it.
type Client struct {
	*Config
	Link conn.Link
	more *more // nil as a rule

	runs uint32 // of handlers on the loop
	// Waits is the session's: since when it waits for the peer.
	Waits uint32
}

// more is what few connections have.
type more struct {
	ctx    context.Context // of ConnContext
	tls    *tls.ConnectionState
	headAt int64 // when a head began, of sys.Nanotime; kept only for ReadTimeout
}

func (c *Client) extra() *more {
	if c.more == nil {
		c.more = new(more)
	}
	return c.more
}

// context is the parent of the requests' contexts: BaseContext, or what
// ConnContext has made of it.
func (c *Client) context() context.Context {
	if c.more != nil && c.more.ctx != nil {
		return c.more.ctx
	}
	return c.BaseContext
}

// Begin shows the connection to the server's hooks.
func (c *Client) Begin() {
	if f := c.ConnContext; f != nil {
		ctx := f(context.WithValue(c.BaseContext, http.ServerContextKey, c.HTTPServer()), c.Link.NetConn())
		if ctx == nil {
			panic("ConnContext returned nil")
		}
		c.extra().ctx = ctx
	}
	c.runs = rand.Uint32() // or short connections would never be sampled
	c.SetState(http.StateNew)
}

// Refuse notes that a request is refused without the handler; see Config.Refused.
func (c *Client) Refuse(status int, reason string, head []byte) {
	if f := c.Refused; f != nil {
		f(c.Link.Peer(), status, reason, head)
	}
}

// SetTLS says what was negotiated, before the first request.
func (c *Client) SetTLS(state *tls.ConnectionState) {
	if state != nil {
		c.extra().tls = state
	}
}

// HeadBegins says that a part of a request's head has come, from which
// ReadTimeout counts.
func (c *Client) HeadBegins() {
	if c.ReadTimeout > 0 {
		c.extra().headAt = sys.Nanotime()
	}
}

// SetState calls the server's ConnState hook.
func (c *Client) SetState(s http.ConnState) {
	if hook := c.ConnState; hook != nil {
		hook(c.Link.NetConn(), s)
	}
}
