package tlsio

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"slices"
	"weak"

	"github.com/chert-http/chert/internal/conn"
)

// layer is a *tls.Conn after its handshake, and what is below it, as a conn.Layer.
type layer wire

var (
	_ conn.Layer   = (*layer)(nil)
	_ conn.Secured = (*layer)(nil)
)

// asLayer is a Layer of w, whose handshake is done.
func (w *wire) asLayer() *layer {
	w.mu.Lock()
	w.below, w.lends = nil, lends()
	w.many = w.many || w.tc.ConnectionState().NegotiatedProtocol == "h2"
	w.mu.Unlock()
	l := (*layer)(w)
	giveUp(w.tc, 0)
	return l
}

var (
	errRecord = errors.New("tlsio: a record was not read to its end")
	errOwed   = errors.New("tlsio: the peer asks for more than it takes")
)

// maxOwed bounds what crypto/tls itself has for the peer and what has not been
// sealed yet, in bytes. A peer that sends requests for a KeyUpdate between its data
// gets an answer to each (RFC 8446 section 4.6.3); one that does not read them would
// have them kept for as long as a handler reads the data.
const maxOwed = 16 << 10

// keepInput is what may stay of a buffer that was read into where nothing is lent:
// room for a small request, so that it need not be made for each.
const keepInput = 2 << 10

// TLS implements conn.Secured. What crypto/tls returns is a copy, of 192 bytes: requests share
// one, and an idle connection leaves it to the garbage collector.
func (l *layer) TLS() *tls.ConnectionState {
	l.mu.Lock()
	state := l.state.Value()
	l.mu.Unlock()
	if state == nil {
		now := l.tc.ConnectionState() // without mu, since it locks, too
		state = &now
		l.keep(state)
	}
	return state
}

func (l *layer) keep(state *tls.ConnectionState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = weak.Make(state)
}

// Open implements conn.Layer. crypto/tls is asked for the content of a record when
// that is all there, and gets nothing beyond it: so it keeps nothing of one
// record when it reads the next, one Read is enough for each, and only those of
// records without content find no bytes.
func (l *layer) Open(dst, src []byte) (out []byte, n int, err error) {
	for {
		size := whole(src[n:])
		if size == 0 {
			return dst, n, nil
		}
		record := src[n : n+size]
		bad := refused(record) // its header may be changed
		n += size
		dst = slices.Grow(dst, size)
		m, left, err := l.read(dst[len(dst):cap(dst)], record)
		dst = dst[:len(dst)+m]
		if err != nil && err != os.ErrDeadlineExceeded {
			return dst, n, err
		}
		if left > 0 || err != nil && bad {
			return dst, n, errRecord
		}
		if l.owed.Load() > maxOwed {
			return dst, n, errOwed
		}
	}
}

// First implements conn.Layer: a record, since after one that is malformed crypto/tls seals
// nothing but an alert. HTTP/2 has many records at a time, and loses its connection by an
// error anyway; to a client all that a server has sent is one response.
func (l *layer) First(src []byte) int {
	if l.many {
		return 0
	}
	return whole(src)
}

// read is tc's, for one record, of which left bytes were not read.
func (l *layer) read(p, record []byte) (n, left int, err error) {
	if l.lends && lend(l.tc, record) {
		n, err = l.tc.Read(p)
		return n, takeBack(l.tc), err
	}
	b := (*wire)(l).open(record)
	n, err = l.tc.Read(p)
	left = len(b.in)
	b.in = nil
	return n, left, err
}

func (l *layer) Pending() bool { return l.owed.Load() > 0 }

func (l *layer) Seal(dst, p []byte) []byte {
	l.begin(dst)
	if len(p) > 0 {
		l.tc.Write(p) // after a Close or an alert nothing is written
	}
	return l.end()
}

// begin makes dst the memory that is written to, also by a concurrent Open.
func (l *layer) begin(dst []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out, l.sealing = append(dst, l.out...), true
	if l.owed.Load() != 0 { // a store costs more
		l.owed.Store(0)
	}
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

func (l *layer) Idle() { giveUp(l.tc, keepInput) }

// Conn implements conn.Layer: it is the *tls.Conn itself.
func (l *layer) Conn(nc net.Conn, raw []byte) net.Conn {
	out := l.end()
	(*wire)(l).over(nc, raw)
	if len(out) > 0 {
		nc.Write(out)
	}
	return l.tc
}
