package stream

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

const (
	// readSize is the buffer for one read.
	readSize = 4 << 10
	// discardSize is it for a peer that goes on after the end.
	discardSize = 64 << 10
	// drainGrace is how long an idle connection is still read from when it is to
	// end: a request that has arrived is not lost, or after a HalfClose not answered by a reset.
	drainGrace = 5 * time.Millisecond
)

// Conn is a Link driven by one goroutine, its owner, which calls Run, or Drive and End. To its server it is
// a conn.Driven.
type Conn struct {
	base     net.Conn                  // immutable; nc without a Layer and a guard
	nc       net.Conn                  // used by the owner; changed with mu held
	raw      syscall.RawConn           // of nc, once requested, if there is one; used by the writer
	limits   *conn.Limits              // immutable
	tally    *tally.Shard              // immutable
	left     func(*Conn)               // immutable; may be nil
	peer     atomic.Pointer[peer.Peer] // set before Run
	in       *buf.Buf                  // received, not consumed
	first    int                       // bytes that are read alone; see ReadFirst
	deadline time.Time                 // of SetDeadline; used by the owner
	drained  conn.Next                 // the result of Drain; used by the owner
	late     *time.Timer               // ends a read that does not end; used by the reader; nil until needed

	eof  bool          // the session knows of the peer's end; used by the owner
	dead chan struct{} // closed by Kill, with mu held
	wake chan struct{} // ends a wait without a read; capacity 1

	gone  sync.Once
	out   outbox.Box   // what is sent after Share
	room  sync.Mutex   // held from when out has room until what calls Writable is posted
	clock outbox.Clock // of a write
	skip  skipper

	mu       sync.Mutex
	cond     *sync.Cond
	session  conn.Session // changed by the owner
	posts    conn.Posts   // to be called by the owner
	phase    phase
	waits    int64     // since when it has been idle, or had part of a request, of sys.Nanotime; or 0
	since    int64     // Drain's argument: of sys.Nanotime, 0 if it is not to be called
	version  uint16    // of TLS
	peerErr  error     // found by the watch; the next read returns it
	readBy   time.Time // the user code's deadlines; before Run, that of ReadBy
	writeBy  time.Time
	armed    time.Time // nc's read deadline, unless other code has set one
	timeless bool      // nc has no deadlines, or is closed
}

// A phase is what a connection is doing, as far as others than its owner have to know.
type phase uint8

const (
	resting   phase = iota // none of the following
	lent                   // another protocol runs on it, instead of Run
	receiving              // the owner reads, and can be woken by a deadline
	idle                   // the same, with nothing Buffered
	inUse                  // user code owns it
	watched                // and a goroutine reads, to detect PeerGone
	hijacked
)

var (
	_ conn.Link   = (*Conn)(nil)
	_ conn.Driven = (*Conn)(nil)
)

// New makes a connection over nc, which may be one of Guard's, and which t, unless it is nil, counts,
// when it is accepted. left is called once, when the connection no longer belongs to the server: at a
// hijack, although the handler continues, or when the owner calls Gone.
func New(nc net.Conn, limits *conn.Limits, t *tally.Shard, left func(*Conn)) *Conn {
	c := &Conn{
		base: bare(nc), nc: nc, limits: limits, tally: t, left: left, waits: sys.Nanotime(),
		dead: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	c.cond = sync.NewCond(&c.mu)
	c.out.InitCarried((*carrier)(c))
	c.clock.After = time.Duration(limits.WriteStall)
	c.clock.Cut = func() { nc.SetWriteDeadline(conn.LongAgo) }
	return c
}

// Gone records that the connection has ended. It may be called more than once.
func (c *Conn) Gone() {
	if c.left != nil {
		c.gone.Do(func() { c.left(c) })
	}
}

// ReadFirst has the first n bytes of a connection of another package read without what
// follows them. It is called before Run.
func (c *Conn) ReadFirst(n int) {
	if c.nc != c.base {
		c.first = n
	}
}

// Run drives s until the connection ends or is hijacked.
func (c *Conn) Run(s conn.Session) {
	c.Switch(s)
	next := conn.Close
	defer func() {
		// User code that ends its goroutine (runtime.Goexit) ends here too.
		c.mu.Lock()
		if c.phase == hijacked {
			next = conn.Detached
		}
		c.mu.Unlock()
		c.End(next)
	}()
	next = c.Drive(context.Background(), conn.More)
	for next == conn.Elsewhere { // which this goroutine is
		next = c.Drive(context.Background(), next)
	}
}

// errPosted means that there is something to do other than wait for the peer.
var errPosted = errors.New("stream: posted")

// Drive drives the session that Switch has set, beginning with next. It returns what the session requests: the
// connection's end, which the caller passes to End, or Elsewhere, after which the caller may call Drive again.
// With Elsewhere it calls Data at once. It also returns Elsewhere instead of waiting when ctx has ended; to end
// a wait, the caller must call Post after ctx has ended. All methods of the session are called here.
func (c *Conn) Drive(ctx context.Context, next conn.Next) conn.Next {
	for {
		next = c.posts.Deliver(&c.mu, next)
		var err error
		switch {
		case c.isKilled():
			return conn.Close
		case next == conn.Requeue, next == conn.Elsewhere:
		case next > conn.Pause:
			return next
		case ctx.Err() != nil:
			return conn.Elsewhere
		case next == conn.Wait:
			err = c.wait()
		case next == conn.Pause && c.out.Low():
			err = c.announced()
		default:
			c.askDrain()
			if c.drained == conn.HalfClose || next == conn.Pause && c.drained >= conn.Close {
				return c.drained
			}
			if next == conn.Pause {
				err = c.rest(c.deadline)
			} else {
				err = c.await()
			}
		}
		switch {
		case err == nil:
		case err == errPosted:
			continue
		case err == io.EOF:
			c.eof = true
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return conn.Close
		default:
			if n := c.expired(); n != conn.More {
				next = n
			}
			continue
		}
		if next = c.session.Data(c.eof); next == conn.Elsewhere {
			return next
		}
	}
}

// announced has Writable called, unless carry has: it comes before Data.
func (c *Conn) announced() error {
	c.announce()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.posts.Any() {
		return errPosted
	}
	return nil
}

// askDrain calls the session's Drain for a connection that waits for its peer,
// each time anew. If it is to Close, it is read from once more: a request that has
// arrived is not lost.
func (c *Conn) askDrain() {
	c.mu.Lock()
	since := c.since
	c.mu.Unlock()
	if c.drained = conn.More; since != 0 {
		c.drained = c.session.Drain(since)
	}
}

// expired handles the end of a read by its deadline: of SetDeadline, of askDrain,
// one that Post or Drain has set, or one of other code that has the net.Conn.
func (c *Conn) expired() conn.Next {
	c.mu.Lock()
	other := c.posts.Any()
	c.mu.Unlock()
	switch {
	case other:
		return conn.More
	case c.drained != conn.More && c.mayRead() && c.unread(): // the grace was over before the read began
		return conn.More
	case c.drained != conn.More:
		return c.drained
	}
	c.deadline = time.Time{}
	return c.session.Expired()
}

// mayRead reports whether another await reads: after a deadline of SetDeadline or the peer's end it does not.
func (c *Conn) mayRead() bool {
	return !c.eof && (c.deadline.IsZero() || time.Now().Before(c.deadline))
}

// await reads more for the session. After the peer's end it waits for a deadline, or
// for what is posted.
func (c *Conn) await() error {
	c.mu.Lock()
	switch {
	case c.posts.Any():
		c.mu.Unlock()
		return errPosted
	case c.peerErr != nil && !c.eof:
		defer c.mu.Unlock()
		return c.peerErr
	}
	until := c.deadline
	if c.drained != conn.More {
		until = conn.Sooner(until, time.Now().Add(drainGrace))
	}
	if c.phase = receiving; c.in == nil {
		c.phase = idle
	}
	if c.phase == idle || c.waits == 0 {
		c.waits = sys.Nanotime()
	}
	if !c.eof {
		c.setReadDeadline(until)
		c.expect(until)
	}
	c.mu.Unlock()
	var err error
	if c.eof {
		err = c.rest(until)
	} else {
		err = c.readMore(c.read)
		c.came()
	}
	c.mu.Lock()
	if c.phase == idle {
		c.waits = 0
	}
	c.phase = resting
	c.mu.Unlock()
	return err
}

// rest waits without reading.
func (c *Conn) rest(until time.Time) error {
	var over <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		over = t.C
	}
	defer c.point(0)
	select {
	case <-c.wake:
		return errPosted
	case <-c.dead:
		return net.ErrClosed
	case <-over:
		return os.ErrDeadlineExceeded
	}
}

// wait waits for what is posted, or for a reset, which only a socket shows without a read.
func (c *Conn) wait() error {
	// Also below TLS. On systems without a poller a socket cannot be asked.
	raw := socketOf(c.below())
	if raw == nil || !sys.HavePoller {
		return c.rest(time.Time{})
	}
	c.mu.Lock()
	if c.posts.Any() {
		c.mu.Unlock()
		return errPosted
	}
	c.phase = receiving
	c.setReadDeadline(time.Time{})
	c.mu.Unlock()
	err := raw.Read(func(fd uintptr) (reset bool) { return sys.Hangup(int(fd)) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase = resting; errors.Is(err, os.ErrDeadlineExceeded) {
		return errPosted
	}
	return net.ErrClosed
}

// rouse ends the owner's wait. mu is held.
func (c *Conn) rouse() {
	if c.phase == receiving || c.phase == idle {
		c.setReadDeadline(conn.LongAgo)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// readMore appends the result of one read to in.
func (c *Conn) readMore(read func([]byte) (int, error)) error {
	most := math.MaxInt32
	if c.first > 0 {
		most = c.first
	}
	had := len(c.Buffered())
	in, err := c.in.ReadMore(readSize, most, read)
	c.in = in
	c.first = max(c.first-len(in.Bytes())+had, 0)
	return err
}

// read is nc's Read. Its system calls, those of package net, are not counted.
func (c *Conn) read(p []byte) (int, error) {
	n, err := c.nc.Read(p)
	c.count(tally.BytesRead, uint64(n))
	return n, err
}

// wrote counts n bytes that package net has sent, called those that a system call of
// the server's has.
func (c *Conn) wrote(n int64) { c.count(tally.BytesWritten, uint64(n)) }

func (c *Conn) called(id tally.ID, n int) {
	c.count(id, 1)
	c.wrote(int64(n))
}

func (c *Conn) count(id tally.ID, n uint64) {
	if c.tally != nil {
		c.tally.Add(false, id, n)
	}
}

// point lets a simulation choose when one of c's goroutines goes on, which has waited or begins.
func (c *Conn) point(n uint64) {
	if sched.On() {
		sched.Point(c.base.RemoteAddr().String(), n)
	}
}

// Tally implements conn.Link.
func (c *Conn) Tally() *tally.Shard { return c.tally }

// Lend records that another protocol runs on the connection instead of Run, and
// will end it: Drain waits for that.
func (c *Conn) Lend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = lent
	c.setReadDeadline(time.Time{})
}

// SetDeadline implements conn.Link.
func (c *Conn) SetDeadline(ns int64) {
	c.deadline = conn.TimeAt(ns)
}
