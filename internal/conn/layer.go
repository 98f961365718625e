package conn

import (
	"errors"
	"io"
	"net"
	"sync"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sys"
)

// layered is a Layer and the bytes that are on their way through it. The reader
// has raw, the queue's lock guards sealed.
type layered struct {
	Layer
	raw    *buf.Buf // read from the socket and not opened: less than a record
	sealed *buf.Buf // sealed, and not taken by the socket
	eof    error    // what ended the peer's side; nil until then

	mu       sync.Mutex
	watching bool // WatchPeer was called; the loop reads for it, under mu
}

// watch reads ahead, to see whether the peer has ended its side: unlike the end of
// a socket, that of a layer cannot be seen without reading. It stops at the first
// bytes that are the next request's.
func (l *layered) watch(c *Conn, begin bool) (gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watching = l.watching || begin; !l.watching || c.in != nil {
		return false
	}
	n, err := l.receive(c)
	l.watching = n == 0 && err == errWouldBlock
	return n == 0 && err != errWouldBlock
}

// unwatch ends what WatchPeer began.
func (l *layered) unwatch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watching = false
}

// layerOf is the layer for a goroutine that is not the owner.
func (c *Conn) layerOf() *layered {
	if !c.shared.layered.Load() {
		return nil
	}
	c.shared.switching.Lock()
	defer c.shared.switching.Unlock()
	return c.layer
}

var errUnsent = errors.New("conn: SetLayer while the peer has not taken what was sent in plain text")

// SetLayer implements Link. A link with a layer has a queue from the beginning:
// what is sealed must be sent before anything else is.
func (c *Conn) SetLayer(l Layer) error {
	if q := c.queue.Load(); q == nil {
		c.newQueue()
	} else if err := c.flush(q); err != nil {
		return err
	} else if q.pending() {
		return errUnsent
	}
	c.shared.switching.Lock()
	c.layer = &layered{Layer: l}
	c.shared.switching.Unlock()
	c.shared.layered.Store(true)
	if c.in == nil {
		return nil
	}
	c.keep()
	c.layer.raw, c.in = c.in, nil
	_, err := c.layer.open(c)
	if c.layer.eof != nil {
		c.setReadable() // the end is to be seen after the bytes
	}
	return err
}

// open moves what is whole in raw to in, and returns how many bytes of plaintext
// that is.
func (l *layered) open(c *Conn) (n int, err error) {
	if l.raw == nil || l.eof != nil {
		return 0, l.eof
	}
	c.room(len(l.raw.B))
	have := len(c.in.B)
	out, used, err := l.Open(c.in.B, l.raw.B)
	n = len(out) - have
	if c.in.B = out; len(out) == 0 {
		c.in.Release()
		c.in = nil
	}
	if l.raw.B = l.raw.B[used:]; len(l.raw.B) == 0 {
		l.raw.Release()
		l.raw = nil
	}
	if err != nil {
		l.eof = err
	}
	if n > 0 {
		err = nil // it is told by the next call
	}
	return n, err
}

// fetch reads the socket once and opens what has come.
func (l *layered) fetch(c *Conn) (int, error) {
	if l.eof != nil {
		return 0, l.eof
	}
	if l.raw == nil {
		l.raw = buf.Get(readSize)
	}
	l.raw = l.raw.Grow(readSize)
	have := len(l.raw.B)
	p := l.raw.B[have:cap(l.raw.B)]
	m, e := c.read(p)
	if l.raw.B = l.raw.B[:have+m]; len(l.raw.B) == 0 {
		l.raw.Release()
		l.raw = nil
	}
	switch {
	case e != 0:
		return 0, c.readError(e)
	case m == 0:
		// The end of the socket without the layer's is a truncation.
		l.eof = io.ErrUnexpectedEOF
		return 0, l.eof
	}
	c.noteRead(m, len(p))
	n, err := l.open(c)
	if l.eof != nil {
		c.setReadable() // the end is to be seen after the bytes
	}
	return n, err
}

// receive is Conn.receive and Conn.readPlain through the layer: what it opens is
// Buffered.
func (l *layered) receive(c *Conn) (int, error) {
	for {
		n, err := l.fetch(c)
		if n > 0 || err != nil {
			return n, err
		}
		if !c.takeReadable() {
			return 0, errWouldBlock // less than a record has come
		}
	}
}

// push seals and sends p and then q. It reports how much of them it has sealed:
// what the socket does not take of that waits here.
func (l *layered) push(c *Conn, p, q []byte) (n int, e sys.Errno) {
	for {
		if l.sealed != nil {
			m, e := c.write(l.sealed.B, nil, false)
			if l.sealed.B = l.sealed.B[m:]; len(l.sealed.B) == 0 {
				l.sealed.Release()
				l.sealed = nil
			}
			if e != 0 {
				return n, e
			}
			continue
		}
		if len(p) == 0 {
			if p, q = q, nil; len(p) == 0 {
				return n, 0
			}
		}
		k := min(len(p), MaxPlain)
		l.sealed = buf.Get(k + 512)
		l.sealed.B = l.Seal(l.sealed.B, p[:k])
		p = p[k:]
		n += k
	}
}

// close tells the peer that no more is sent, as far as the socket takes it.
func (l *layered) close(c *Conn) {
	if l.sealed == nil {
		l.sealed = buf.Get(512)
	}
	l.sealed.B = l.Layer.Close(l.sealed.B)
	l.push(c, nil, nil)
}

func (l *layered) drop() {
	for _, b := range []**buf.Buf{&l.raw, &l.sealed} {
		if *b != nil {
			(*b).Release()
			*b = nil
		}
	}
}

// conn is the layer over a hijacked socket.
func (l *layered) conn(nc net.Conn) net.Conn {
	var raw []byte
	if l.raw != nil {
		raw = append(raw, l.raw.B...)
	}
	l.drop()
	return l.Conn(nc, raw)
}
