package conn

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/sys"
)

// layered is a Layer and the bytes that are on their way through it. The reader
// has raw, the queue's lock guards sealed.
type layered struct {
	Layer
	raw    *buf.Buf // read from the socket and not opened: less than a record, or held
	sealed *buf.Buf // sealed, and not taken by the socket
	eof    error    // what ended the peer's side; nil until then

	mu       sync.Mutex
	watching atomic.Bool // WatchPeer was called; the loop reads for it, under mu, which guards what is stored
	closed   bool        // the peer was told that no more is sent; the loop's
}

// watch reads ahead, and returns what has ended the peer's side, nil if nothing has: unlike
// the end of a socket, that of a layer cannot be seen without reading. It stops at the first
// bytes that are the next request's.
func (l *layered) watch(c *Conn, begin bool) (end error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if begin {
		l.watching.Store(true)
	}
	if !l.watching.Load() || c.in != nil {
		return nil
	}
	n, err := l.receive(c, false)
	l.watching.Store(n == 0 && err == errWouldBlock)
	if n > 0 || err == errWouldBlock {
		return nil
	}
	return err
}

// IsReset reports whether err, of a read, is a reset to Session.PeerGone.
func IsReset(err error) bool { return !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) }

// unwatch ends what WatchPeer began: the loop no longer reads ahead.
func (l *layered) unwatch() {
	if !l.watching.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watching.Store(false)
}

// layer returns what SetLayer has set, or nil. Any goroutine may call it.
func (c *Conn) layer() *layered {
	if q := c.queue.Load(); q != nil {
		return q.layer
	}
	return nil
}

var errUnsent = errors.New("conn: SetLayer while the peer has not taken what was sent in plain text")

// SetLayer implements Lent. A link with a layer has a queue, another than before, from the
// beginning: what is sealed must be sent before anything else is.
func (c *Conn) SetLayer(l Layer) error {
	if plain := c.queue.Load(); plain != nil {
		if err := c.sendPlain(plain); err != nil {
			return err
		}
	}
	layer := &layered{Layer: l}
	shared := c.Out().Shared()
	if q := c.newQueue(layer); shared {
		q.Share()
	}
	if c.in == nil {
		return nil
	}
	c.keep()
	raw := c.in
	c.in = nil
	_, err := layer.open(c, raw.B, false, true)
	raw.Release()
	return err
}

// sendPlain sends what was queued before there is a layer.
func (c *Conn) sendPlain(q *queue) error {
	if c.off {
		return c.awaitSent()
	}
	err := c.flush(q)
	if err == nil && q.Waits() {
		err = errUnsent
	}
	return err
}

// open moves what is whole in src to in, keeps the rest in raw, and returns how
// many bytes of plaintext that is. With scratch src is in the upper half of the
// driver's buffer, and the lower one is free. With first it opens no more than the Session
// is to see at a time; see Layer.First.
func (l *layered) open(c *Conn, src []byte, scratch, first bool) (n int, err error) {
	some := src
	if k := l.First(src); first && k > 0 {
		some = src[:k]
	}
	if scratch = scratch && c.in == nil; scratch {
		c.in, c.borrowed = c.loop.Scratch(), true
		whole := c.in.Whole()
		c.in.B = whole[: 0 : len(whole)/2]
	} else {
		c.room(len(some))
	}
	have := len(c.in.B)
	out, used, err := l.Open(c.in.B, some)
	n = len(out) - have
	c.in.B = out
	c.Discard(0)
	if err != nil {
		l.eof = err
	} else if rest := src[used:]; len(rest) > 0 {
		l.raw = l.raw.Prepend(rest)
	}
	if l.eof != nil || l.held() {
		c.setReadable() // the rest, or the end, is to be seen after the bytes
	}
	if l.Pending() {
		c.queue.Load().Nudge(false) // alerts, say
	}
	if n > 0 {
		err = nil // it is told by the next call
	}
	return n, err
}

// held reports whether raw has a whole record: there is more without a read of the socket.
func (l *layered) held() bool { return l.raw != nil && l.First(l.raw.B) > 0 }

// lendSize is the room for a read where there is no driver's buffer to read into.
const lendSize = 32 << 10

// fetch reads the socket once and opens what has come, or what is held.
func (l *layered) fetch(c *Conn, first bool) (n int, err error) {
	if l.eof != nil {
		return 0, l.eof
	}
	if l.held() {
		raw := l.raw
		l.raw = nil
		c.setReadable() // what receive has taken was perhaps the socket's
		n, err = l.open(c, raw.B, false, first)
		raw.Release()
		return n, err
	}
	var area []byte
	scratch := c.driving()
	if scratch {
		c.keep()
		whole := c.loop.Scratch().Whole()
		area = whole[len(whole)/2:]
	} else {
		b := buf.Get(lendSize)
		defer b.Release()
		area = b.Whole()
	}
	have := copy(area, l.raw.Bytes())
	m, e := c.read(area[have:])
	switch {
	case e != 0:
		return 0, c.sysError("read", e)
	case m == 0:
		// The end of the socket without the layer's is a truncation.
		l.eof = io.ErrUnexpectedEOF
		return 0, l.eof
	}
	l.raw = l.raw.Drop()
	return l.open(c, area[:have+m], scratch, first)
}

// receive is Conn.receive and Conn.readPlain through the layer: what it opens is
// Buffered.
func (l *layered) receive(c *Conn, first bool) (int, error) {
	for {
		n, err := l.fetch(c, first)
		if n > 0 || err != nil {
			return n, err
		}
		if !c.takeReadable() {
			return 0, errWouldBlock // less than a record has come
		}
	}
}

const (
	// sealMost is how much is sealed for one call of the socket: what fits into a
	// buffer of 32 KiB when it is sealed.
	sealMost = outbox.CopySize
	// joinMost is the most that is copied to be one record instead of two.
	joinMost = 4 << 10
)

// push seals and sends p and then q. It reports how much of them it has sealed:
// what the socket does not take of that waits here.
func (l *layered) push(c *Conn, p, q []byte) (n int, e sys.Errno) {
	for {
		if l.sealed == nil {
			if len(p)+len(q) == 0 && !l.Pending() {
				return n, 0
			}
			k := l.seal(p, q)
			if l.sealed = l.sealed.Consume(0); l.sealed == nil { // otherwise user code would write for ever
				return n, syscall.EPIPE
			}
			n += k
			m := min(k, len(p))
			p, q = p[m:], q[k-m:]
		}
		m, e := c.write(l.sealed.B, nil, false, false)
		if l.sealed = l.sealed.Consume(m); e != 0 {
			return n, e
		}
	}
}

// seal makes sealed of the first n bytes of p and q, or of what is pending.
func (l *layered) seal(p, q []byte) (n int) {
	n = min(len(p)+len(q), sealMost)
	l.sealed = buf.Get(n + n/16 + 512)
	if len(p) > 0 && len(q) > 0 && n <= joinMost {
		b := buf.Get(n)
		b.B = append(append(b.B, p...), q...)
		l.sealed.B = l.Seal(l.sealed.B, b.B)
		b.Release()
		return n
	}
	for left := n; ; {
		if len(p) == 0 {
			p, q = q, nil
		}
		k := min(len(p), left, MaxPlain)
		l.sealed.B = l.Seal(l.sealed.B, p[:k])
		p = p[k:]
		if left -= k; left == 0 {
			return n
		}
	}
}

// close tells the peer, once, that no more is sent, when all else has been: a peer that
// is not told must take what it has for a part (RFC 8446 section 6.1). It reports whether
// that waits in the queue for room in the socket.
func (l *layered) close(q *queue) (waits bool) {
	if l.closed || q.Err() != nil {
		return false
	}
	l.closed = true
	// No other goroutine pushes: the queue is closed and empty.
	l.sealed = l.sealed.Room(512)
	if l.sealed.B = l.Layer.Close(l.sealed.B); len(l.sealed.B) == 0 {
		return false // an alert was sent instead
	}
	return q.Nudge(true)
}

func (l *layered) drop() { l.raw, l.sealed = l.raw.Drop(), l.sealed.Drop() }
