package stream

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
)

const (
	// readSize is the room for one read.
	readSize = 4 << 10
	// drainGrace is how long an idle connection is still read from when the
	// server shuts down: a request that has arrived is not lost.
	drainGrace = 5 * time.Millisecond
)

// longAgo is a deadline that ends a Read at once.
var longAgo = time.Unix(1, 0)

// Conn is one connection. Run owns it; Drain and Kill may be called by any
// goroutine.
type Conn struct {
	nc     net.Conn     // immutable
	limits *conn.Limits // immutable
	left   func()       // immutable; for Leave
	proto  conn.Proto   // set by Run, under mu
	peer   string       // set before Run

	gone     sync.Once
	in       *buf.Buf      // received, not consumed
	whole    int           // how much of in Serve looks at and consumes when it is done
	slot     bool          // it has one of Limits.Slots
	admitted chan struct{} // says so; nil without Slots
	fresh    bool          // no request yet
	partial  bool          // a head has begun
	until    time.Time

	mu       sync.Mutex
	cond     *sync.Cond
	idle     bool // Run waits for a request's first byte
	draining bool
	drainBy  time.Time // until when a connection without a request may stay then
	lent     bool      // another protocol runs on it
	serving  bool      // the handler runs and the connection is its
	watching bool      // a goroutine reads for the sake of PeerGone
	aborted  bool      // that read is being ended
	hijacked bool
	killed   bool
	peerErr  error     // what the watch met; the next read gives it
	stall    stall     // of a write; has its own lock
	readBy   time.Time // the handler's deadlines
	writeBy  time.Time
}

var _ conn.Transport = (*Conn)(nil)

// New makes a connection over nc. Its Proto is made for it and given to Run.
// left is called once, when the connection is no longer the server's: at a
// hijack, although the handler goes on, or when the owner calls Leave.
func New(nc net.Conn, limits *conn.Limits, left func(*Conn)) *Conn {
	c := &Conn{nc: nc, limits: limits, fresh: true}
	c.left = func() {
		if left != nil {
			left(c)
		}
	}
	c.cond = sync.NewCond(&c.mu)
	c.stall.after = time.Duration(limits.WriteStall)
	c.stall.cut = func() { nc.SetWriteDeadline(longAgo) }
	return c
}

// Leave says that the connection has ended. It may be called more than once.
func (c *Conn) Leave() { c.gone.Do(c.left) }

// Run drives p until the connection ends or is hijacked.
func (c *Conn) Run(p conn.Proto) {
	c.mu.Lock()
	c.proto = p
	c.mu.Unlock()
	settled := false
	defer func() {
		// A handler that ends its goroutine (runtime.Goexit) ends here too.
		if settled {
			return
		}
		if c.isHijacked() {
			c.end(conn.Detached)
		} else {
			c.end(conn.Close)
		}
	}()
	c.until = after(c.limits.First)
	v := c.drive(p)
	settled = true
	c.end(v)
}

// drive is the life of a connection; it returns how it ends.
func (c *Conn) drive(p conn.Proto) conn.Verdict {
	eof := false
	for {
		if c.in != nil || eof {
			n, v, reply := p.Feed(c.Buffered(), eof)
			if v == conn.RunWhole {
				c.whole, v = n, conn.Run
			} else {
				c.Discard(n)
			}
			if v == conn.Run {
				if v = c.serveAll(p); v == conn.More {
					continue
				}
			}
			if v != conn.More {
				return c.reply(v, reply)
			}
		}
		err := c.await()
		switch {
		case err == nil:
		case err == io.EOF:
			eof = true
		case errors.Is(err, os.ErrDeadlineExceeded):
			if c.isDraining() && !c.partial {
				return conn.Close
			}
			return c.reply(p.Expired(c.partial))
		default:
			return conn.Close
		}
	}
}

// serveAll serves one request, as often as p wants to be called for it.
func (c *Conn) serveAll(p conn.Proto) conn.Verdict {
	v := c.serve(p)
	c.Discard(c.whole)
	c.whole = 0
	for v == conn.Run {
		v = c.serve(p)
	}
	return v
}

func (c *Conn) serve(p conn.Proto) conn.Verdict {
	c.fresh, c.partial = false, false
	c.mu.Lock()
	if c.killed {
		// PeerGone came before Feed made a request that it could tell: a
		// handler that waits for its context would wait for ever.
		c.mu.Unlock()
		return conn.Close
	}
	c.serving = true
	c.mu.Unlock()
	defer c.endServe()
	c.takeSlot(p)
	v := p.Serve()
	for v == conn.Stalled {
		v = p.Serve() // TrySendFile has waited already
	}
	return v
}

// takeSlot waits until Serve may run.
func (c *Conn) takeSlot(p conn.Proto) {
	s := c.limits.Slots
	if s == nil {
		return
	}
	if c.admitted == nil {
		c.admitted = make(chan struct{}, 1)
	}
	switch s.Enter(c) {
	case conn.Refused:
		p.Refuse()
		return
	case conn.Queued:
		<-c.admitted
	}
	c.slot = true
}

// Admitted implements loop.Waiter.
func (c *Conn) Admitted() { c.admitted <- struct{}{} }

// leaveSlot gives the slot back, if there is one.
func (c *Conn) leaveSlot() {
	if c.slot {
		c.slot = false
		c.limits.Slots.Leave()
	}
}

func (c *Conn) endServe() {
	c.leaveSlot()
	c.stopWatch()
	c.mu.Lock()
	c.serving = false
	if !c.writeBy.IsZero() && !c.hijacked {
		c.nc.SetWriteDeadline(time.Time{})
	}
	c.readBy, c.writeBy = time.Time{}, time.Time{}
	c.mu.Unlock()
	c.until = after(c.limits.Idle)
}

// await reads more of what Feed wants.
func (c *Conn) await() error {
	if c.in != nil && !c.partial {
		c.partial = true
		if d := after(c.limits.Header); !c.fresh || !d.IsZero() && (c.until.IsZero() || d.Before(c.until)) {
			c.until = d
		}
	}
	c.mu.Lock()
	if c.peerErr != nil {
		defer c.mu.Unlock()
		return c.peerErr
	}
	until := c.until
	c.idle = c.in == nil
	if c.idle && c.draining {
		until = c.drainUntil()
	}
	c.nc.SetReadDeadline(until)
	c.mu.Unlock()
	err := c.readMore()
	c.mu.Lock()
	c.idle = false
	c.mu.Unlock()
	return err
}

// drainUntil is how long a connection without a request may stay when the
// server shuts down. mu is held.
func (c *Conn) drainUntil() time.Time {
	if c.fresh {
		if c.until.IsZero() || c.drainBy.Before(c.until) {
			return c.drainBy
		}
		return c.until
	}
	return time.Now().Add(drainGrace)
}

// readMore appends one read to in, whatever deadline is set.
func (c *Conn) readMore() error {
	b := c.in
	if b == nil {
		b = buf.Get(readSize)
	}
	b = b.Grow(readSize)
	have := len(b.B)
	n, err := c.nc.Read(b.B[have:cap(b.B)])
	b.B = b.B[:have+n]
	if c.in = b; len(b.B) == 0 {
		b.Release()
		c.in = nil
	}
	if n > 0 {
		return nil
	}
	return err
}

// Drain ends the connection if it is idle, and lets it finish its request
// otherwise.
func (c *Conn) Drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining = true; c.drainBy.IsZero() {
		c.drainBy = time.Now().Add(conn.DrainNew)
	}
	// Without a proto it waits for a worker or shakes hands.
	if c.idle || c.proto == nil && !c.lent {
		c.nc.SetReadDeadline(c.drainUntil())
	}
}

// CloseIdle ends the connection if it is idle, and leaves it alone otherwise.
func (c *Conn) CloseIdle() {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	if idle {
		c.Drain()
	}
}

// Lend says that another protocol runs on the connection instead of Run, and
// ends it: Drain waits for that.
func (c *Conn) Lend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lent = true
	c.nc.SetReadDeadline(time.Time{})
}

// Kill ends the connection at once; a handler that runs on it sees its calls
// fail.
func (c *Conn) Kill() {
	c.mu.Lock()
	hijacked, p := c.hijacked, c.proto
	c.killed = true
	c.mu.Unlock()
	if hijacked {
		return
	}
	c.nc.Close()
	if p != nil {
		p.PeerGone(true)
	}
}

func (c *Conn) isHijacked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hijacked
}

func (c *Conn) isDraining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

// reply writes b and returns v.
func (c *Conn) reply(v conn.Verdict, b []byte) conn.Verdict {
	if len(b) > 0 && c.Write2(b, nil) != nil {
		return conn.Close
	}
	return v
}

// end closes as v says.
func (c *Conn) end(v conn.Verdict) {
	if c.in != nil {
		if v == conn.Close {
			// The peer is likely to send more; see conn.Linger.
			v = conn.Linger
		}
		c.in.Release()
		c.in = nil
	}
	c.stall.end()
	if v == conn.Detached {
		c.proto.Closed()
		return
	}
	switch v {
	case conn.Linger:
		c.linger()
	case conn.Reset:
		if t, ok := c.nc.(interface{ SetLinger(int) error }); ok {
			t.SetLinger(0)
		}
	}
	c.nc.Close()
	c.proto.Closed()
}

// linger sends FIN and reads until the peer has closed too, for a short time.
func (c *Conn) linger() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.nc.SetReadDeadline(time.Now().Add(conn.LingerFor))
	b := buf.Get(readSize)
	defer b.Release()
	for {
		if _, err := c.nc.Read(b.B[:cap(b.B)]); err != nil {
			return
		}
	}
}

// after is d nanoseconds from now, or no deadline.
func after(d int64) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(d))
}
