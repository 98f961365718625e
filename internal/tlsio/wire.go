package tlsio

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
)

// wire is what a *tls.Conn reads from and writes to: a Link during the handshake,
// then memory, and a net.Conn after the connection was hijacked.
type wire struct {
	tc   *tls.Conn
	link conn.Link
	fill func() error // of the handshake: waits for more; nil once it is over
	left int          // of the record that the handshake is reading
	in   []byte       // of the record that is being opened

	mu      sync.Mutex
	mode    mode
	sealing bool
	many    bool         // records are opened together; immutable once inMemory
	lends   bool         // records to tc, instead of having it copy them; immutable once inMemory
	out     []byte       // written to memory
	owed    atomic.Int64 // bytes of out, if not sealing
	nc      net.Conn     // with overConn
	raw     []byte       // to be read before nc
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
	w.mode, w.fill, w.nc = overConn, nil, nc
	if w.tc == nil || !put(w.tc, nc, raw) {
		w.raw = raw
	}
}

// where returns what is below now; nc is nil except with overConn.
func (w *wire) where() (mode, net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mode, w.nc
}

// Read implements net.Conn. One goroutine at a time calls it.
func (w *wire) Read(p []byte) (int, error) {
	switch mode, nc := w.where(); mode {
	case overLink:
		return w.readLink(p)
	case inMemory:
		if len(w.in) == 0 {
			return 0, os.ErrDeadlineExceeded // a temporary error
		}
		n := copy(p, w.in)
		w.in = w.in[n:]
		return n, nil
	default:
		if len(w.raw) > 0 {
			n := copy(p, w.raw)
			if w.raw = w.raw[n:]; len(w.raw) == 0 {
				w.raw = nil
			}
			return n, nil
		}
		return nc.Read(p)
	}
}

// readLink returns nothing beyond the current record: what follows the handshake is
// for the Layer.
func (w *wire) readLink(p []byte) (int, error) {
	for w.left == 0 {
		b := w.link.Buffered()
		if len(b) >= headerSize {
			w.left = headerSize + int(binary.BigEndian.Uint16(b[3:]))
			break
		}
		if err := w.fill(); err != nil {
			n := copy(p, b) // the next fill returns the error again
			w.link.Discard(n)
			if n > 0 {
				err = nil
			}
			return n, err
		}
	}
	for len(w.link.Buffered()) == 0 {
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, w.link.Buffered()[:min(len(w.link.Buffered()), w.left)])
	w.link.Discard(n)
	w.left -= n
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
			w.owed.Store(int64(len(w.out)))
		}
		return len(p), nil
	case overConn:
		nc := w.nc
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
	if _, nc := w.where(); nc != nil {
		return nc
	}
	return w.link.NetConn()
}

// LocalAddr implements net.Conn.
func (w *wire) LocalAddr() net.Addr { return w.NetConn().LocalAddr() }

// RemoteAddr implements net.Conn.
func (w *wire) RemoteAddr() net.Addr { return w.NetConn().RemoteAddr() }

// SetDeadline implements net.Conn. It has no effect unless w is over a net.Conn:
// crypto/tls sets deadlines when it closes, and the server has its own.
func (w *wire) SetDeadline(t time.Time) error {
	return w.deadline(func(nc net.Conn) error { return nc.SetDeadline(t) })
}

// SetReadDeadline implements net.Conn.
func (w *wire) SetReadDeadline(t time.Time) error {
	return w.deadline(func(nc net.Conn) error { return nc.SetReadDeadline(t) })
}

// SetWriteDeadline implements net.Conn.
func (w *wire) SetWriteDeadline(t time.Time) error {
	return w.deadline(func(nc net.Conn) error { return nc.SetWriteDeadline(t) })
}

func (w *wire) deadline(set func(net.Conn) error) error {
	if _, nc := w.where(); nc != nil {
		return set(nc)
	}
	return nil
}

// memory is a net.Conn that gives what has come and then an error, and keeps what
// is written.
type memory struct {
	wire
	in  []byte
	end error
	out []byte
}

// Read implements net.Conn.
func (m *memory) Read(p []byte) (int, error) {
	if len(m.in) == 0 {
		return 0, m.end
	}
	n := copy(p, m.in)
	m.in = m.in[n:]
	return n, nil
}

// Write implements net.Conn.
func (m *memory) Write(p []byte) (int, error) {
	m.out = append(m.out, p...)
	return len(p), nil
}
