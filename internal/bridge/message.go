package bridge

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
)

// A Message is one request and its response as a version of HTTP encodes them.
// Methods are called with the response's lock held, ReadBody with the body's; they
// may wait for the peer.
type Message interface {
	// Begin allocates the response's buffers before its first byte is written, and End
	// releases them. held is how many bytes of the body the Message has been given but
	// has not passed to the Link, and will not.
	Begin() *Progress
	End() (held int64)
	// Interim sends a response with a 1xx status immediately, if the peer
	// supports it.
	Interim(status int, h http.Header) error
	// Head takes a snapshot of the status and the fields, as WriteHeader promises.
	Head(status int, h http.Header)
	// Complete decides the framing and completes the head. p is the first part
	// of the body, and all of it if the handler has returned.
	Complete(p []byte) error
	// Data writes the next piece of the body. Flush sends everything written so
	// far.
	Data(p []byte) error
	Flush() error
	// Finish ends the response, whose body has been written, and returns how the
	// connection continues. h has the trailers. short: the body is not as long as the head
	// says.
	Finish(h http.Header, short bool) conn.Next
	// Release releases the handler's slot, once it has returned or taken the
	// connection: what follows may wait for the peer. It may be called again.
	Release()
	// ReadBody reads the request's body. It returns io.EOF with the last bytes,
	// or after them, when the trailers have been read.
	ReadBody(p []byte) (int, error)
}

// Progress is the state of a response that is being written.
type Progress struct {
	Staged   []byte // body held back until the head must be sent; memory of the Message
	Status   int
	Length   int64 // declared Content-Length, -1 for none
	Written  int64 // of the body
	HeadOut  bool  // Complete was called
	Chunked  bool  // Complete has decided that Data frames the body, which otherwise is what the Link gets
	Trailers []string
	Given    int64 // of the body, passed to Message and Link
	Err      error // of the connection; sticky
	watcher  wire.Watcher

	notify chan bool // for CloseNotify
}

// TrailersOf returns the trailers among the handler's fields: those that were announced, and those
// with http.TrailerPrefix whose names are allowed. It is nil if there are none, as for most responses.
func (p *Progress) TrailersOf(h http.Header, allowed func(name string) bool) (all http.Header) {
	add := func(name string, vv []string) {
		if all == nil {
			all = make(http.Header)
		}
		all[name] = append(all[name], vv...)
	}
	for k, vv := range h {
		if name, ok := strings.CutPrefix(k, http.TrailerPrefix); ok && allowed(name) {
			add(name, vv)
		}
	}
	for _, k := range p.Trailers {
		if vv, ok := h[k]; ok {
			add(k, vv)
		}
	}
	return all
}

// StageSize is how much of the body is held back before the head must be sent:
// a handler that returns before gets a Content-Length. net/http's value, so
// that the same handlers get the same framing.
const StageSize = 2 << 10

// A Client is the connection that requests arrive on, as far as handlers may
// know of it.
type Client struct {
	*Config
	Link conn.Link
	more *more // usually nil
}

// more is state that few connections need.
type more struct {
	ctx context.Context // from ConnContext
	tls conn.Secured    // nil without TLS
}

func (c *Client) extra() *more {
	if c.more == nil {
		c.more = new(more)
	}
	return c.more
}

// context returns the parent of the requests' contexts: BaseContext, or what
// ConnContext has derived from it.
func (c *Client) context() context.Context {
	if c.more != nil && c.more.ctx != nil {
		return c.more.ctx
	}
	return c.BaseContext
}

// Begin calls the server's hooks for a new connection.
func (c *Client) Begin() {
	if f := c.ConnContext; f != nil {
		ctx := f(context.WithValue(c.BaseContext, http.ServerContextKey, c.HTTPServer()), c.Link.NetConn())
		if ctx == nil {
			panic("ConnContext returned nil")
		}
		c.extra().ctx = ctx
	}
	c.SetState(http.StateNew)
}

// Refuse records that a request is refused without calling the handler; see Config.Refused.
func (c *Client) Refuse(status int, reason string, head []byte) {
	if f := c.Refused; f != nil {
		f(c.Link.Peer().RemoteAddr, c.LocalAddr(), status, reason, head)
	}
}

// RefusalPage returns the body of an answer to a request that is refused, nil for the server's
// own, and its media type.
func (c *Client) RefusalPage(status int) (mediaType string, body []byte) {
	if c.Config.RefusalPage == nil {
		return "", nil
	}
	if !exec.Call(func() { mediaType, body = c.Config.RefusalPage(status) }, c.LogEnd) ||
		mediaType == "" || wire.CheckField("Content-Type", mediaType) != nil {
		return "", nil
	}
	return mediaType, body
}

// LocalAddr returns the server's address. Safe for concurrent use, also after the connection's end.
func (c *Client) LocalAddr() net.Addr { return c.Link.NetConn().LocalAddr() }

// RemoteAddr is LocalAddr of the client, whose address a proxy may have told.
func (c *Client) RemoteAddr() net.Addr { return c.Link.Peer().Addr(c.Link.NetConn().RemoteAddr()) }

// SetTLS says, before the first request, that the connection is over TLS, unless s is nil.
func (c *Client) SetTLS(s conn.Secured) {
	if s != nil {
		c.extra().tls = s
	}
}

// HasTLS reports whether SetTLS has said so.
func (c *Client) HasTLS() bool { return c.more != nil && c.more.tls != nil }

// SetState calls the server's ConnState hook. A panic of it is logged, and does not end the connection.
func (c *Client) SetState(s http.ConnState) {
	if c.ConnState != nil {
		c.setStateOf(c.Link.NetConn(), s)
	}
}

// setStateOf is SetState for nc, which the Link's NetConn has returned, also when the Link is another goroutine's.
func (c *Client) setStateOf(nc net.Conn, s http.ConnState) {
	if hook := c.ConnState; hook != nil {
		exec.Call(func() { hook(nc, s) }, c.LogEnd)
	}
}
