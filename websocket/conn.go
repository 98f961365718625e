package websocket

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/timer"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
)

// Type is the type of a message.
type Type uint8

const (
	TypeText   Type = iota // valid UTF-8
	TypeBinary             // any bytes
)

// opcode returns that of frames with messages of this type.
func (t Type) opcode() wsframe.Opcode {
	if t == TypeText {
		return wsframe.Text
	}
	return wsframe.Binary
}

// Code is the status code of a Close frame (RFC 6455 section 7.4). Applications may
// use those from 4000 to 4999.
type Code uint16

// Codes that are defined by RFC 6455 and the IANA registry.
const (
	CodeNormal      Code = 1000 // the purpose is fulfilled
	CodeGoingAway   Code = 1001 // the server stops, or the page is left
	CodeProtocol    Code = 1002 // a protocol error
	CodeUnsupported Code = 1003 // a type of data that is not accepted
	CodeNoStatus    Code = 1005 // the Close frame had no code; not to be sent
	CodeAbnormal    Code = 1006 // there was no Close frame; not to be sent
	CodeInvalid     Code = 1007 // text that is not UTF-8
	CodePolicy      Code = 1008 // any other violation
	CodeTooBig      Code = 1009 // a message that is too large
	CodeInternal    Code = 1011 // the server has failed
	CodeRestart     Code = 1012 // the server restarts
	CodeTryLater    Code = 1013 // the server is overloaded
)

// ErrSlow is returned when a message is dropped because the client reads too slowly.
var ErrSlow = errors.New("websocket: the client reads too slowly")

// A Conn is an open connection. All its methods are safe for concurrent use.
type Conn struct {
	// What Send uses comes first, so that a broadcast, which finds none of it in the
	// processor's cache, fetches little.
	h       *Handler      // immutable
	link    takeover.Link // immutable
	deflate *deflate      // immutable; nil without the extension

	mu     sync.Mutex
	out    *buf.Buf // frames that are to leave together; nil if there are none
	corked bool     // Send adds to out
	serves bool     // messages are being processed: what is sent may be their answers
	much   bool     // more than half of a limit has waited since Writable was called
	ended  bool     // the connection has ended; the Link's owner, which sets it, reads it without mu
	// These change with mu held. choked: answers to messages wait for the client, so no
	// more of them is read. closed: a Close frame was sent, or the connection has ended.
	choked, closed atomic.Bool
	index          int32 // in h.conns; guarded by h.mu

	rare  *rare // usually nil
	value any
	rooms *membership // of the rooms that it is in

	// The session's; used by the Link's owner.
	reader wsframe.Reader
	msg    *buf.Buf // what has arrived of a message that was not complete at once
	used   int32    // how many Buffered bytes belong to the message that is delivered
	at     int32    // where it begins there, if not in msg
	heard  int64    // when something was received, of Link.Now
	pinged int64    // when the last Ping was sent, or when the wait for a Close frame ends
	typ    Type
	// subprotocol is the index in h.o.Subprotocols, from 1; immutable.
	subprotocol uint8
	begun       bool
	closing     bool         // the client's answer to a Close frame is awaited
	alone       bool         // Options.Serve runs: messages are for Read
	packed      bool         // the message is still compressed
	pending     bool         // it waits for Data on a goroutine, or, if alone, Read has it
	surplus     int32        // bytes received since closing
	weight      uint8        // how many frames what was inflated in this turn of the loop counts as
	shares      bool         // rare.beside is set; immutable
	spread      timer.Spread // of Pings
}

// rare is what few connections have before they end. Guarded by Conn.mu, but for beside.
type rare struct {
	owes   bool // a Pong, with this payload: the answer to the last Ping could not be sent at once
	pong   []byte
	why    *wsframe.Error // for OnClose; nil while it is not known
	less   chan struct{}  // see Conn.less; nil before the first
	beside beside         // if the connection is a stream of one with others; the Link's owner's
}

// seldom returns c.rare, not nil. mu is held.
func (c *Conn) seldom() *rare {
	if c.rare == nil {
		c.rare = new(rare)
	}
	return c.rare
}

// deflate is the state of permessage-deflate.
type deflate struct {
	params wsdeflate.Params // immutable
	in     wsdeflate.Window // of the Link's owner
	out    wsdeflate.Window // guarded by Conn.mu
}

// Subprotocol returns the subprotocol that was chosen, or "".
func (c *Conn) Subprotocol() string {
	if c.subprotocol == 0 {
		return ""
	}
	return c.h.o.Subprotocols[c.subprotocol-1]
}

// RemoteAddr returns the client's address, which is a proxy's if there is one.
func (c *Conn) RemoteAddr() net.Addr { return c.link.RemoteAddr() }

// LocalAddr returns the address that the client has connected to.
func (c *Conn) LocalAddr() net.Addr { return c.link.LocalAddr() }

// SetValue stores a value with the connection.
func (c *Conn) SetValue(v any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value = v
}

// Value returns what SetValue has stored, or nil.
func (c *Conn) Value() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value
}

// Send sends a message, or queues a copy until the client reads. It never waits.
// Messages of one goroutine arrive in the order of its calls; text must be UTF-8. The
// error is ErrSlow if the client reads too slowly, which has ended the connection unless
// Options.Slow is SlowDrop, and net.ErrClosed if the connection is closed or closing.
func (c *Conn) Send(t Type, p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.send(t, p)
	if err == ErrSlow {
		c.tooSlow()
	}
	return err
}

// Congested reports whether more than half of Options.MaxUnsent has waited for the client,
// which has not accepted most of that yet: a time to send less, or only the newest state.
// Of answers that OnMessage sends on an event loop 32 KiB suffice.
func (c *Conn) Congested() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.much
}

// Write sends a message like Send, but waits while the client reads too slowly. It
// returns net.ErrClosed when the connection is closed, and ctx's error when that
// has ended or ends first; the message has not been sent then. Called by OnMessage, it
// keeps a goroutine.
func (c *Conn) Write(ctx context.Context, t Type, p []byte) error {
	for ctx.Err() == nil {
		c.mu.Lock()
		err := c.send(t, p)
		c.mu.Unlock()
		if err != ErrSlow {
			return err
		}
		select {
		case <-c.less():
		case <-ctx.Done():
		}
		sched.Point("write", 0)
	}
	return ctx.Err()
}

// less returns a channel that is closed when the client has accepted something of what waits.
// Calls of Write share it: those that have given up leave nothing behind.
func (c *Conn) less() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.seldom()
	select {
	case <-r.less:
		r.less = nil
	default:
	}
	if r.less == nil {
		less := make(chan struct{})
		c.link.Follow(func() { close(less) })
		r.less = less
	}
	return r.less
}

// Close sends a Close frame after everything that was sent before, and ends the
// connection when the client has answered it, after five seconds at most. It does
// not wait. Messages that arrive later are ignored. A reason has at most 123 bytes.
func (c *Conn) Close(code Code, reason string) {
	c.mu.Lock()
	sent := c.sendClose(wsframe.Code(code), reason)
	c.mu.Unlock()
	if sent {
		c.link.Post((*session)(c).awaitClose)
	}
}

// tooSlow ends the connection of a client that does not read. mu is held since it was found to be open: of one that is
// closed the client is to answer the Close frame that was sent, and says why.
func (c *Conn) tooSlow() {
	if c.h.o.Slow == SlowClose {
		c.closed.Store(true)
		c.because(wsframe.CodePolicy, "too slow")
		c.link.Post(func() link.Next { return link.Reset })
	}
}

// because records why the connection ends, unless that is known. mu is held.
func (c *Conn) because(code wsframe.Code, reason string) {
	if r := c.seldom(); r.why == nil {
		r.why = &wsframe.Error{Code: code, Reason: reason}
	}
}

var errInternal = &wsframe.Error{Code: wsframe.CodeInternal, Reason: "internal error"}

// failed sends a Close frame that says why, without waiting for an answer, and returns what the Link's owner
// then requests.
func (c *Conn) failed(e *wsframe.Error) link.Next {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.because(e.Code, e.Reason)
	c.sendClose(e.Code, e.Reason)
	c.flush()
	return link.Linger
}
