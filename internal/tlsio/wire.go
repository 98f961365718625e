package tlsio

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/chert-http/chert/internal/conn"
)

// wire is what a *tls.Conn reads from and writes to: a Link during the handshake,
// then memory, and a net.Conn after the connection was hijacked.
type wire struct {
	tc   *tls.Conn
	link conn.Link

	mu sync.Mutex
	// below is of the handshake, or after a hijack. In memory a wire has none as long as
	// each record is lent: an idle connection keeps the wire.
	below   *below
	state   weak.Pointer[tls.ConnectionState] // see layer.TLS
	out     []byte                            // written to memory
	owed    atomic.Uint32                     // bytes of out, if not sealing
	sealing bool
	many    bool // records are opened together; immutable after the handshake
	lends   bool // records to tc, instead of having it copy them; immutable after the handshake
}

// below is what a wire reads from: the Link with fill, a net.Conn with nc, memory with neither. One
// goroutine at a time uses it; fill and nc are immutable.
type below struct {
	fill func() error // of the handshake: waits for more
	left int          // of the record that the handshake is reading
	in   []byte       // of the record that is being opened, or to be read before nc
	end  error        // in memory, what follows in; nil means that more may come
	nc   net.Conn
}

// over makes nc what is below, with raw read from it already. No other goroutine may use the
// connection meanwhile.
func (w *wire) over(nc net.Conn, raw []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.below = &below{nc: nc}
	if w.tc == nil || !put(w.tc, nc, raw) {
		w.below.in = raw
	}
}

// open makes record what is read in memory. Only the reader may call it.
func (w *wire) open(record []byte) *below {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.below == nil {
		w.below = new(below)
	}
	w.below.in = record
	return w.below
}

// now returns what is below now, which may be nil in memory.
func (w *wire) now() *below {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.below
}

// netConn returns what is below now if that is a net.Conn, or nil.
func (w *wire) netConn() net.Conn {
	if b := w.now(); b != nil {
		return b.nc
	}
	return nil
}

// Read implements net.Conn. One goroutine at a time calls it.
func (w *wire) Read(p []byte) (int, error) {
	switch b := w.now(); {
	case b == nil:
	case b.fill != nil:
		return w.readLink(b, p)
	case len(b.in) > 0:
		n := copy(p, b.in)
		if b.in = b.in[n:]; len(b.in) == 0 {
			b.in = nil
		}
		return n, nil
	case b.nc != nil:
		return b.nc.Read(p)
	case b.end != nil:
		return 0, b.end
	}
	return 0, os.ErrDeadlineExceeded // a temporary error
}

// readLink returns nothing beyond the current record: what follows the handshake is
// for the Layer.
func (w *wire) readLink(b *below, p []byte) (int, error) {
	for b.left == 0 {
		have := w.link.Buffered()
		if len(have) >= headerSize {
			b.left = headerSize + int(binary.BigEndian.Uint16(have[3:]))
			break
		}
		if err := b.fill(); err != nil {
			n := copy(p, have) // the next fill returns the error again
			w.link.Discard(n)
			if n > 0 {
				err = nil
			}
			return n, err
		}
	}
	for len(w.link.Buffered()) == 0 {
		if err := b.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, w.link.Buffered()[:min(len(w.link.Buffered()), b.left)])
	w.link.Discard(n)
	b.left -= n
	return n, nil
}

// Write implements net.Conn. crypto/tls calls it with a lock held, so that records
// come in order; to memory it never fails.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	switch b := w.below; {
	case b != nil && b.nc != nil:
		w.mu.Unlock()
		return b.nc.Write(p)
	case b != nil && b.fill != nil:
		w.mu.Unlock()
		if err := w.link.Send(&conn.Write{A: p, Wait: conn.ForRoom}); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	defer w.mu.Unlock()
	if w.out = append(w.out, p...); !w.sealing {
		w.owed.Store(uint32(len(w.out)))
	}
	return len(p), nil
}

// Close implements net.Conn. A context's end calls it during the handshake, and user
// code may at any time: a function of the tls.Config can keep ClientHelloInfo.Conn.
func (w *wire) Close() error { return w.NetConn().Close() }

// NetConn returns what is below, for code that finds a wire below a *tls.Conn: see put.
func (w *wire) NetConn() net.Conn {
	if nc := w.netConn(); nc != nil {
		return nc
	}
	return w.link.NetConn()
}

func (w *wire) LocalAddr() net.Addr  { return w.NetConn().LocalAddr() }
func (w *wire) RemoteAddr() net.Addr { return w.NetConn().RemoteAddr() }

// SetDeadline implements net.Conn. It has no effect unless w is over a net.Conn:
// crypto/tls sets deadlines when it closes, and the server has its own.
func (w *wire) SetDeadline(t time.Time) error      { return w.deadline(net.Conn.SetDeadline, t) }
func (w *wire) SetReadDeadline(t time.Time) error  { return w.deadline(net.Conn.SetReadDeadline, t) }
func (w *wire) SetWriteDeadline(t time.Time) error { return w.deadline(net.Conn.SetWriteDeadline, t) }

func (w *wire) deadline(set func(net.Conn, time.Time) error, t time.Time) error {
	if nc := w.netConn(); nc != nil {
		return set(nc, t)
	}
	return nil
}
