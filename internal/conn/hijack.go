package conn

import (
	"net"
	"os"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// Hijack implements Transport. The result is a *net.TCPConn or *net.UnixConn
// over a duplicate of the descriptor; the original is the loop's to close.
func (c *Conn) Hijack() (net.Conn, []byte, error) {
	if err := c.flushHeld(); err != nil {
		return nil, nil, err
	}
	dup, err := sys.Dup(int(c.fd))
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(dup), "hijacked")
	nc, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return nil, nil, err
	}
	c.loop.Poller().Remove(int(c.fd))
	rest := append([]byte(nil), c.Buffered()...)
	c.Discard(len(rest))
	c.state.Or(hijacked)
	c.letGo() // the handler begins a life of its own
	// At once, not when the handler returns: until the original is closed,
	// the new owner's Close would not end the connection.
	c.giveBack(mailHijacked)
	return nc, rest, nil
}

// NetConn implements Transport.
func (c *Conn) NetConn() net.Conn { return hookConn{c} }

// hookConn is the net.Conn that hooks such as ConnState and ConnContext see.
// It tells the addresses and can close; the bytes are the server's.
type hookConn struct{ c *Conn }

func (h hookConn) Read([]byte) (int, error)  { return 0, errNotYours }
func (h hookConn) Write([]byte) (int, error) { return 0, errNotYours }

var errNotYours = &net.OpError{Op: "use", Net: "tcp", Err: os.ErrPermission}

// Close ends the connection; a handler that runs on it sees its calls fail.
func (h hookConn) Close() error {
	if !h.c.loop.Post(h.c.place, Kill) {
		return net.ErrClosed
	}
	return nil
}

func (h hookConn) LocalAddr() net.Addr                { return h.c.LocalAddr() }
func (h hookConn) RemoteAddr() net.Addr               { return h.c.RemoteAddr() }
func (h hookConn) SetDeadline(t time.Time) error      { return os.ErrNoDeadline }
func (h hookConn) SetReadDeadline(t time.Time) error  { return os.ErrNoDeadline }
func (h hookConn) SetWriteDeadline(t time.Time) error { return os.ErrNoDeadline }
