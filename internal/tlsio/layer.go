package tlsio

import (
	"errors"
	"net"
	"os"
	"slices"

	"github.com/chert-http/chert/internal/conn"
)

// layer is a *tls.Conn that has shaken hands, and what is below it, as a
// conn.Layer.
type layer wire

var _ conn.Layer = (*layer)(nil)

// asLayer is a Layer of w, whose handshake is done.
func (w *wire) asLayer() conn.Layer {
	w.mu.Lock()
	w.mode, w.shake = inMemory, nil
	w.mu.Unlock()
	l := (*layer)(w)
	l.Idle() // of the handshake nothing is kept
	return l
}

var errRecord = errors.New("tlsio: a record was not read to its end")

// Open implements conn.Layer. crypto/tls is asked for the content of a record when
// that is all there, and gets nothing beyond it: so it keeps nothing of one
// record when it reads the next, one Read is enough for each, and none ends for
// want of bytes but those that have no content.
func (l *layer) Open(dst, src []byte) (out []byte, n int, err error) {
	for {
		size := whole(src[n:])
		if size == 0 {
			return dst, n, nil
		}
		l.in = src[n : n+size]
		n += size
		dst = slices.Grow(dst, size)
		m, err := l.tc.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+m]
		left := len(l.in)
		if l.in = nil; err != nil && err != os.ErrDeadlineExceeded {
			return dst, n, err
		}
		if left > 0 || size == headerSize && err != nil && overlong(src[n-size:]) {
			return dst, n, errRecord
		}
	}
}

// overlong reports whether b is the header of a record that is too long.
func overlong(b []byte) bool { return int(b[3])<<8|int(b[4]) > maxCipher }

// Pending implements conn.Layer.
func (l *layer) Pending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.sealing && len(l.out) > 0
}

// Seal implements conn.Layer.
func (l *layer) Seal(dst, p []byte) []byte {
	l.begin(dst)
	if len(p) > 0 {
		l.tc.Write(p) // it cannot fail, but after a Close, when nothing is sent
	}
	return l.end()
}

// begin makes dst what is written to. What Open writes meanwhile comes there too,
// in its order.
func (l *layer) begin(dst []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out, l.sealing = append(dst, l.out...), true
}

func (l *layer) end() (dst []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dst, l.out, l.sealing = l.out, nil, false
	return dst
}

// Close implements conn.Layer: close_notify, RFC 8446 section 6.1.
func (l *layer) Close(dst []byte) []byte {
	l.begin(dst)
	l.tc.CloseWrite()
	return l.end()
}

// Idle implements conn.Layer.
func (l *layer) Idle() { giveUp(l.tc) }

// Conn implements conn.Layer: it is the *tls.Conn itself.
func (l *layer) Conn(nc net.Conn, raw []byte) net.Conn {
	out := l.end()
	(*wire)(l).over(nc, raw)
	if len(out) > 0 {
		nc.Write(out)
	}
	return l.tc
}
