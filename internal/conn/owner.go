package conn

import (
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sys"
)

// active is what a connection needs only while a handler owns it. It is taken
// at the hand-over and given back with the connection.
type active struct {
	read, write side
}

// side is one direction of a running handler's waits.
type side struct {
	// ch ends a sleep; capacity 1. It is empty whenever no wait bit is set.
	ch chan struct{}
	// deadline is of sys.Nanotime; 0 is none. Set by any goroutine.
	deadline atomic.Int64
}

// over reports whether the side's deadline has passed.
func (s *side) over() bool {
	dl := s.deadline.Load()
	return dl != 0 && sys.Nanotime() >= dl
}

// activePool keeps actives of a server. Not of the process: a server may run in
// a bubble of testing/synctest, and channels made there must not leave it.
type activePool struct{ p sync.Pool }

func (s *activePool) get() *active {
	if a, ok := s.p.Get().(*active); ok {
		return a
	}
	a := new(active)
	a.read.ch = make(chan struct{}, 1)
	a.write.ch = make(chan struct{}, 1)
	return a
}

func (s *activePool) put(a *active) {
	a.read.deadline.Store(0)
	a.write.deadline.Store(0)
	s.p.Put(a)
}

// readSize is the least room a handler's goroutine reads into.
const readSize = 4 << 10

// Run implements loop.Task: it is the owner's life on a pooled goroutine. It
// serves the request at hand and those that have come meanwhile, and ends by
// giving the connection back.
func (c *Conn) Run() {
	settled := false
	defer func() {
		// A handler that ends its goroutine (runtime.Goexit) ends here.
		if !settled && c.state.Load()&hijacked == 0 {
			c.giveBack(mailClose)
		}
	}()
	for {
		v := c.proto.Serve()
		if v == More {
			v = c.next()
		}
		switch v {
		case Run:
			continue
		case More, Detached: // already given back or away
		default:
			c.giveBack(c.endMail(v))
		}
		settled = true
		return
	}
}

// endMail is what to tell the loop for a verdict that ends the connection.
func (c *Conn) endMail(v Verdict) int {
	switch {
	case v == Reset:
		return mailReset
	case v == Linger || c.in != nil || c.state.Load()&readable != 0:
		// A Close over bytes that the client has sent and nobody has read
		// would be a reset too; see Linger.
		return mailLinger
	}
	return mailClose
}

// next looks for another request after one was served: in the bytes at hand,
// then in the socket if it may have some. Run means there is one, More that
// the connection was given back to the loop, the rest are ends.
func (c *Conn) next() Verdict {
	var p []byte
	eof := false
	for {
		if c.state.Load()&shut != 0 {
			return Close
		}
		if c.in != nil || eof {
			v, reply := c.feed(p, eof)
			if v == Run {
				c.partial = false
				if c.state.Load()&shut != 0 {
					// PeerGone may have come before Feed made a request that
					// it could tell: a handler that waits for its context
					// would wait for ever.
					return Close
				}
				return Run
			}
			if v != More {
				if len(reply) > 0 && c.Write2(reply, nil) != nil {
					return Close
				}
				return v
			}
		}
		if c.release() {
			return More
		}
		n, v := c.readOn()
		if v != More {
			return v
		}
		eof = n == 0
	}
}

// release makes the loop the owner again unless an event has come that the
// handler must act on first.
func (c *Conn) release() bool {
	now := sys.Nanotime()
	if d, ok := c.nextDeadline(now); ok {
		c.deadline = d
	}
	for {
		s := c.state.Load()
		if s&(readable|shut) != 0 {
			return false
		}
		if s&(noTimer|draining|hangup) != 0 || c.deadline < c.armedAt {
			// The loop has something to do about it.
			c.giveBack(mailBack)
			return true
		}
		a := c.act
		c.act = nil
		if c.state.CompareAndSwap(s, s&^owned) {
			// c is the loop's now; a is not part of it any more.
			c.shared.actives.put(a)
			return true
		}
		c.act = a
	}
}

// readOn reads what the loop would have read, into in. n == 0 with More is
// the end of the stream.
func (c *Conn) readOn() (n int, v Verdict) {
	c.state.And(^readable)
	if c.in == nil {
		c.in = buf.Get(readSize)
	}
	c.in = c.in.Grow(readSize)
	have := len(c.in.B)
	n, e := c.loop.Poller().Read(int(c.fd), c.in.B[have:cap(c.in.B)])
	if e != 0 && !sys.Again(e) {
		return 0, Close
	}
	c.noteRead(n, cap(c.in.B)-have)
	c.in.B = c.in.B[:have+n]
	if len(c.in.B) == 0 {
		c.in.Release()
		c.in = nil
	}
	if e != 0 {
		return -1, More // spurious
	}
	return n, More
}

// giveBack hands the connection to the loop by mail. The caller must not touch
// c afterwards.
func (c *Conn) giveBack(what int) {
	c.shared.actives.put(c.act)
	c.act = nil
	if !c.loop.Post(c.place, what) {
		// The loop died with its poller; nobody else will close.
		sys.Close(int(c.fd))
	}
}
