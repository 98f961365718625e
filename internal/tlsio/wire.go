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
	// below is of the handshake, or of the mode overConn. In memory a wire has none as long as
	// each record is lent: an idle connection keeps the wire.
	below   *below
	state   weak.Pointer[tls.ConnectionState] // see layer.TLS
	out     []byte                            // written to memory
	owed    atomic.Uint32                     // bytes of out, if not sealing
	mode    mode
	sealing bool
	many    bool // records are opened together; immutable once inMemory
	lends   bool // records to tc, instead of having it copy them; immutable once inMemory
}

// below is what a wire reads from. One goroutine at a time uses it; nc is immutable.
type below struct {
	fill func() error // of the handshake: waits for more
	left int          // of the record that the handshake is reading
	in   []byte       // of the record that is being opened, or to be read before nc
	end  error        // in memory, what follows in; nil means that more may come
	nc   net.Conn     // with overConn
}

// read reads what is in b, as the first part of p.
func (b *below) read(p []byte) (n int) {
	n = copy(p, b.in)
	if b.in = b.in[n:]; len(b.in) == 0 {
		b.in = nil
	}
	return n
}

type mode uint8

const (
	overLink mode = iota
	inMemory
	overConn
)

// over makes nc what is below, with raw read from it already. No other goroutine may use the
// connection meanwhile.
func (w *wire) over(nc net.Conn, raw []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mode, w.below = overConn, &below{nc: nc}
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

// where returns what is below now, which may be nil in memory.
func (w *wire) where() (mode, *below) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mode, w.below
}

// Read implements net.Conn. One goroutine at a time calls it.
func (w *wire) Read(p []byte) (int, error) {
	switch mode, b := w.where(); {
	case mode == overLink:
		return w.readLink(b, p)
	case b != nil && len(b.in) > 0:
		return b.read(p), nil
	case mode == inMemory && b != nil && b.end != nil:
		return 0, b.end
	case mode == inMemory:
		return 0, os.ErrDeadlineExceeded // a temporary error
	default:
		return b.nc.Read(p)
	}
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
	switch w.mode {
	case inMemory:
		defer w.mu.Unlock()
		if w.out = append(w.out, p...); !w.sealing {
			w.owed.Store(uint32(len(w.out)))
		}
		return len(p), nil
	case overConn:
		nc := w.below.nc
		w.mu.Unlock()
		return nc.Write(p)
	}
	w.mu.Unlock()
	if err := w.link.Send(&conn.Write{A: p, Wait: conn.ForRoom}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements net.Conn. A context's end calls it during the handshake, and user
// code may at any time: a function of the tls.Config can keep ClientHelloInfo.Conn.
func (w *wire) Close() error { return w.NetConn().Close() }

// NetConn returns what is below, for code that finds a wire below a *tls.Conn: see put.
func (w *wire) NetConn() net.Conn {
	if mode, b := w.where(); mode == overConn {
		return b.nc
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
	if mode, b := w.where(); mode == overConn {
		return set(b.nc, t)
	}
	return nil
}
