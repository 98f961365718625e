package origin

import (
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// Upload is the body of a request, of which the first bytes are held so that it can be sent
// again. One goroutine at a time may use it, beside the one that it starts for itself when
// more is needed than Fill has read: a client that is slow must not be what a gateway waits
// for when a server fails.
type Upload struct {
	body   io.Reader
	most   int   // bytes that are held
	length int64 // of body; -1 if it is not known

	held  []byte
	whole bool        // held is all of it
	err   error       // of body, io.EOF included, after what is held
	gone  atomic.Bool // more than what is held has been used

	pieces chan piece // from the reader; nil before it runs
	taken  chan struct{}
	stop   chan struct{}
	ended  chan struct{}

	came    atomic.Int64  // when body.Read returned, as of sys.Nanotime; 0 while the reader is in it
	failed  chan struct{} // closed when body.Read has failed
	failure error         // how; for those that have seen failed closed
}

type piece struct {
	b   []byte
	err error
}

// errStopped is what a Cursor returns after its Close.
var errStopped = errors.New("origin: the exchange has ended")

// NewUpload returns the body that body has, of which up to most bytes are held. length is its, -1 if it
// is not known.
func NewUpload(body io.Reader, length int64, most int) *Upload {
	u := &Upload{body: body, most: most, length: length, failed: make(chan struct{})}
	u.came.Store(sys.Nanotime())
	return u
}

// Fill reads what can be held, and reports whether that is the whole body. It blocks. err
// is that of the client, which has not sent what it has announced.
func (u *Upload) Fill() (whole bool, err error) {
	room, length := u.most, u.length
	if length >= 0 && length < int64(room) {
		room = int(length)
	}
	size := room
	if length <= int64(room) {
		size++ // for a Read that finds the end
	}
	u.held = make([]byte, 0, size)
	for len(u.held) < room || int64(room) == length && len(u.held) < cap(u.held) {
		n, err := u.body.Read(u.held[len(u.held):cap(u.held)])
		u.held = u.held[:len(u.held)+n]
		if err != nil {
			u.err = err
			if u.whole = err == io.EOF; !u.whole {
				return false, err
			}
			return true, nil
		}
	}
	return false, nil
}

// Whole returns the body, if it is held completely.
func (u *Upload) Whole() ([]byte, bool) { return u.held, u.whole }

// Gone reports whether a part of it has been used that is no longer held.
func (u *Upload) Gone() bool { return u.gone.Load() }

// Waits reports whether the client's body is being read, or may be.
func (u *Upload) Waits() bool { return u.pieces != nil && !u.whole }

// read hands on what the client sends. It is one goroutine for all tries.
func (u *Upload) read() {
	defer close(u.ended)
	b := make([]byte, 32<<10)
	left := u.length - int64(len(u.held))
	last := 0 // 1: b begins with the last byte of a body whose end has not come
	for {
		u.came.Store(0)
		n, err := u.body.Read(b[last:])
		if err != nil && err != io.EOF {
			u.failure = err
			close(u.failed)
		}
		u.came.Store(sys.Nanotime())
		left -= int64(n)
		n, last = n+last, 0
		if err != io.EOF && u.length >= 0 && left <= 0 && n > 0 {
			// RFC 9113 section 8.1.1: with more DATA, or malformed trailers, the request would be malformed. The
			// server, which takes the last byte of a body with a length for its end, must not have it before.
			n, last = n-1, 1
		}
		if n == 0 && err == nil { // as io.Reader permits, too
			continue
		}
		select {
		case u.pieces <- piece{b[:n], err}:
		case <-u.stop:
			return
		}
		if err != nil {
			return
		}
		select {
		case <-u.taken:
			if last > 0 {
				b[0] = b[n]
			}
		case <-u.stop:
			return
		}
	}
}

// failWait is how long a Read may take to return after it has ended the context.
const failWait = time.Second

// Failure returns how a Read of the client's body has failed, nil if none has. Any goroutine may call it.
func (u *Upload) Failure() error {
	select {
	case <-u.failed:
		return u.failure
	default:
		return nil
	}
}

// LateFailure is Failure after the context of the request has ended. What finds out that the client has not
// sent its body in time ends that before its Read returns: one that is under way is waited for, for a moment.
func (u *Upload) LateFailure() error {
	if u.came.Load() == 0 {
		t := time.NewTimer(failWait)
		defer t.Stop()
		select {
		case <-u.failed:
		case <-t.C:
		}
	}
	return u.Failure()
}

// Stop ends the reading of the client's body, after which the body belongs to the caller
// again. interrupt makes a Read that is under way fail; if it returns an error there is no
// way, and the goroutine ends with that Read. All Cursors must have been closed.
func (u *Upload) Stop(interrupt func() error) {
	if u.pieces == nil {
		return
	}
	close(u.stop)
	if u.err != nil {
		<-u.ended // it has read all, and the client's connection may have another request
		return
	}
	select {
	case <-u.ended:
		return
	default:
	}
	if interrupt() == nil {
		<-u.ended
	}
}

// Cursor reads an Upload from its start, for one try.
type Cursor struct {
	u    *Upload
	at   int // in held
	took bool
	rest []byte // of a piece, for Read
	done chan struct{}
	shut atomic.Bool
	mu   sync.Mutex // held by Next and Read, so that Close can wait for them
}

// Cursor returns one at the start. It must be closed before another is used.
func (u *Upload) Cursor() *Cursor { return &Cursor{u: u, done: make(chan struct{})} }

// Next returns the next bytes, valid until the next call, or io.EOF, or another error if
// the client has not sent all.
func (c *Cursor) Next() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next()
}

func (c *Cursor) next() ([]byte, error) {
	u := c.u
	select {
	case <-c.done: // Stop may have been called, which ends no reader that is started after it
		return nil, errStopped
	default:
	}
	if c.at < len(u.held) {
		b := u.held[c.at:]
		c.at = len(u.held)
		return b, nil
	}
	if u.err != nil {
		return nil, u.err
	}
	if u.pieces == nil {
		u.pieces, u.taken = make(chan piece), make(chan struct{}, 1)
		u.stop, u.ended = make(chan struct{}), make(chan struct{})
		go u.read()
	}
	if c.took {
		c.took = false
		u.taken <- struct{}{} // has room for one
	}
	select {
	case p := <-u.pieces:
		return c.take(p)
	case <-c.done:
		return nil, errStopped
	}
}

func (c *Cursor) take(p piece) ([]byte, error) {
	u := c.u
	u.err = p.err
	if !u.gone.Load() && len(u.held)+len(p.b) <= u.most {
		// The next try reads it there; and the buffer is free at once.
		u.held = append(u.held, p.b...)
		u.whole = p.err == io.EOF
		if p.err == nil {
			u.taken <- struct{}{}
		}
		return c.next()
	}
	if len(p.b) == 0 {
		return nil, p.err
	}
	u.gone.Store(true)
	c.took = p.err == nil
	return p.b, nil
}

// Unawaited returns how long it is ago that the client was waited for, to send more of the body: 0 if it is
// now. Any goroutine may call it.
func (c *Cursor) Unawaited() time.Duration {
	switch at := c.u.came.Load(); {
	case c.shut.Load():
		return math.MaxInt64
	case at == 0:
		return 0
	default:
		return time.Duration(sys.Nanotime() - at)
	}
}

// Read is io.Reader for the bytes of Next.
func (c *Cursor) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.rest) == 0 {
		b, err := c.next()
		if err != nil {
			return 0, err
		}
		c.rest = b
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Close makes Next and Read fail, also one under way, for which it waits: afterwards the
// Upload is free for another Cursor. Any goroutine may call it, several times.
func (c *Cursor) Close() error {
	if c.shut.CompareAndSwap(false, true) {
		close(c.done)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return nil
}
