package conntest

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Layer is a conn.Layer for tests. Its records are a length of two bytes and 1 to
// 200 bytes of plaintext, transformed by their place in the stream, so that what
// is lost, doubled or out of order does not open. A record of length 0 says that
// no more is sent.
type Layer struct {
	open, seal keystream
	rnd        *rand.Rand
	ended      bool // the peer has sent its last record
}

// keystream is how many bytes of one direction have been transformed.
type keystream uint32

const maxRecord = 200

var errRecord = errors.New("conntest: a record is too long, or is not at its place")

// NewLayer makes the layer of one side of a connection. Both sides are alike.
func NewLayer() *Layer { return &Layer{rnd: rand.New(rand.NewPCG(1, 2))} }

var _ conn.Layer = (*Layer)(nil)

// xor transforms p in place.
func (k *keystream) xor(p []byte) {
	for i := range p {
		n := uint32(*k)
		p[i] ^= byte(n*167 + n>>8 + 13)
		*k++
	}
}

// Open implements conn.Layer.
func (l *Layer) Open(dst, src []byte) (out []byte, n int, err error) {
	for out = dst; !l.ended; {
		r := src[n:]
		if len(r) >= 2 && binary.BigEndian.Uint16(r) > maxRecord {
			return out, n, errRecord
		}
		size := l.First(r)
		if size == 0 {
			return out, n, nil
		}
		l.ended = size == 2
		have := len(out)
		out = append(out, r[2:size]...)
		l.open.xor(out[have:])
		n += size
	}
	return out, n, io.EOF
}

// Seal implements conn.Layer.
func (l *Layer) Seal(dst, p []byte) []byte {
	for len(p) > 0 {
		size := min(1+l.rnd.IntN(maxRecord), len(p))
		dst = binary.BigEndian.AppendUint16(dst, uint16(size))
		have := len(dst)
		dst = append(dst, p[:size]...)
		l.seal.xor(dst[have:])
		p = p[size:]
	}
	return dst
}

// First implements conn.Layer: one record, or all from one that Open does not accept.
func (l *Layer) First(src []byte) int {
	if len(src) < 2 {
		return 0
	}
	n := 2 + int(binary.BigEndian.Uint16(src))
	switch {
	case n > 2+maxRecord:
		return len(src)
	case n > len(src):
		return 0
	}
	return n
}

// Pending and Idle implement conn.Layer.
func (l *Layer) Pending() bool { return false }
func (l *Layer) Idle()         {}

// Close implements conn.Layer.
func (l *Layer) Close(dst []byte) []byte { return append(dst, 0, 0) }

// Conn implements conn.Layer.
func (l *Layer) Conn(nc net.Conn, raw []byte) net.Conn { return l.Over(nc, raw) }

// Over makes the layer a net.Conn over nc. raw was read from nc already.
func (l *Layer) Over(nc net.Conn, raw []byte) *LayerConn {
	return &LayerConn{Conn: nc, l: l, raw: append([]byte(nil), raw...)}
}

// LayerConn is a Layer over a net.Conn, for clients and hijackers. One goroutine
// may read while another writes, and any may close.
type LayerConn struct {
	net.Conn
	reading, writing sync.Mutex
	l                *Layer
	raw, in          []byte
	err              error // that ended the peer's side
	closed           bool  // CloseWrite was called
}

// Read implements net.Conn. The end of nc without a last record is a truncation.
func (c *LayerConn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for len(c.in) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		out, n, err := c.l.Open(nil, c.raw)
		c.in, c.raw, c.err = out, c.raw[n:], err
		if len(out) > 0 || err != nil {
			continue
		}
		b := make([]byte, 4<<10)
		n, err = c.Conn.Read(b)
		c.raw = append(c.raw, b[:n]...)
		if n > 0 || err == nil {
			continue
		}
		if err != io.EOF {
			return 0, err // a deadline, after which there may be more
		}
		c.err = io.ErrUnexpectedEOF
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return n, nil
}

// Write implements net.Conn.
func (c *LayerConn) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for n < len(p) {
		piece := p[n:min(n+conn.MaxPlain, len(p))]
		if _, err := c.Conn.Write(c.l.Seal(nil, piece)); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// CloseWrite sends the last record, and FIN where there is such a thing.
func (c *LayerConn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	err := c.sendClose()
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	return err
}

// sendClose sends the last record, to a peer that takes it soon.
func (c *LayerConn) sendClose() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.Conn.SetWriteDeadline(time.Now().Add(servertest.Soon))
	_, err := c.Conn.Write(c.l.Close(nil))
	return err
}

// Close implements net.Conn. A Write under way is cut off.
func (c *LayerConn) Close() error {
	if c.writing.TryLock() {
		c.sendClose()
		c.writing.Unlock()
	}
	return c.Conn.Close()
}
