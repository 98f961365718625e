package websocket

import (
	"net"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
)

// This file sends frames. Its functions are called with Conn.mu held, which also
// orders compressed messages like the windows that they were made with.
//
// While the session works through what has arrived, on a loop, frames are gathered
// in out and leave together when it is done: many messages that arrive at once are
// answered by one system call.

const (
	// corkSize is how much is gathered, and corkFrame the largest frame that is.
	corkSize  = 12 << 10
	corkFrame = 4 << 10
	// firstOut is the first size of out.
	firstOut = 512
)

// send is Send without the end of a slow client's connection.
func (c *Conn) send(t Type, p []byte) error {
	if c.closed.Load() {
		return net.ErrClosed
	}
	d := c.deflate
	if d == nil || len(p) < c.h.threshold {
		return c.frame(t.opcode(), false, p, c.h.maxUnsent)
	}
	var window *wsdeflate.Window
	if !d.params.NoTakeover {
		window = &d.out
	}
	b := buf.Get(len(p)/2 + 64)
	b.B = wsdeflate.Deflate(b.B, p, window, d.params.Bits)
	err := c.frame(t.opcode(), true, b.B, c.h.maxUnsent)
	b.Release()
	if window != nil && err == nil {
		window.Add(p, d.params.Bits) // not before: the client will not have a message that was dropped
	}
	return err
}

func (c *Conn) frame(op wsframe.Opcode, compressed bool, p []byte, limit int) error {
	h := wsframe.Header{Fin: true, RSV1: compressed, Op: op, Length: int64(len(p))}
	if n := wsframe.MaxHeader + len(p); c.gathers(n) {
		c.out.B = append(h.Append(c.out.B), p...)
		return nil
	}
	c.flush()
	head := buf.Get(wsframe.MaxHeader) // an array of this function's would be allocated each time
	head.B = h.Append(head.B)
	err := c.offer(head.B, p, limit)
	head.Release()
	return err
}

// put sends a frame that is complete.
func (c *Conn) put(frame []byte, limit int) error {
	if c.gathers(len(frame)) {
		c.out.B = append(c.out.B, frame...)
		return nil
	}
	c.flush()
	return c.offer(frame, nil, limit)
}

// gathers makes room in out for n bytes, or reports false if they are to be sent at
// once. If there is enough in out, that is sent.
func (c *Conn) gathers(n int) bool {
	if c.out != nil && len(c.out.B) >= corkSize {
		c.flush()
	}
	if !c.corked || c.much || n > corkFrame {
		return false
	}
	if c.out == nil {
		c.out = buf.Get(max(n, firstOut))
	}
	c.out = c.out.Grow(n)
	return true
}

// offer passes a and then b to the Link. The error is ErrSlow or net.ErrClosed.
//
// If more than half of maxUnsent waits then, and these are answers to messages, no more of those is read: a client
// that sends and does not read is slowed down, instead of losing answers. What other goroutines send at other times
// does not end it, or a client that reads a feed slowly would not be heard. Pongs need not: see sendPong.
func (c *Conn) offer(a, b []byte, limit int) error {
	much, err := c.link.Offer(a, b, limit)
	if much && limit == c.h.maxUnsent && c.serves {
		c.choked.Store(true)
	}
	c.much = c.much || much
	switch err {
	case nil:
		return nil
	case takeover.ErrFull:
		return ErrSlow
	}
	return net.ErrClosed
}

// flush sends what is gathered, and ends the gathering if that makes much wait.
func (c *Conn) flush() {
	if c.out == nil {
		return
	}
	if c.offer(c.out.B, nil, takeover.MinLimit) == ErrSlow {
		// A Writable of an earlier time has come after a large message. What was
		// accepted is sent all the same; it is not more than corkSize and corkFrame.
		c.link.Offer(c.out.B, nil, -1)
	}
	c.out = c.out.Drop()
}

// sendClose sends a Close frame, once, and reports whether it did.
func (c *Conn) sendClose(code wsframe.Code, reason string) bool {
	if c.closed.Swap(true) {
		return false
	}
	var b [2 + wsframe.MaxControl]byte
	c.put(wsframe.AppendClose(b[:0], code, reason), -1)
	return true
}

// sendPong answers a Ping, or keeps its payload until the client has read some of
// what waits: RFC 6455 section 5.5.3 permits to answer only the last Ping.
func (c *Conn) sendPong(payload []byte) {
	if c.closed.Load() {
		return
	}
	if err := c.frame(wsframe.Pong, false, payload, maxPongs); err == ErrSlow { // more than half of it waits
		r := c.seldom()
		r.owes, r.pong = true, append(r.pong[:0], payload...) // which may be itself: see Writable
	} else if c.rare != nil {
		c.rare.owes, c.rare.pong = false, nil
	}
}

// maxPongs is how much may wait for a Pong to be added: a client that sends Pings and
// does not read gets no more queued than that.
const maxPongs = takeover.MinLimit
