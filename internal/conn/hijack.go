package conn

import (
	"net"
	"os"
	"time"
)

// Hijack implements Lent. The result is a *net.TCPConn or *net.UnixConn over a
// duplicate of the descriptor, or what the layer makes of it; the loop closes the
// original.
func (c *Conn) Hijack() (net.Conn, []byte, error) {
	nc, err := c.loop.Poller().Conn(int(c.fd))
	if err != nil {
		return nil, nil, err
	}
	if q := c.queue.Load(); q != nil {
		q.Close(true) // to other goroutines
		if err := c.awaitSent(); err != nil {
			q.Close(false)
			nc.Close()
			return nil, nil, err
		}
	}
	c.loop.Poller().Remove(int(c.fd))
	if layer := c.layer(); layer != nil {
		layer.unwatch()
		raw := append([]byte(nil), layer.raw.Bytes()...)
		layer.drop()
		nc = layer.Conn(nc, raw)
	}
	rest := append([]byte(nil), c.Buffered()...)
	c.Discard(len(rest))
	c.Yield() // the user code no longer depends on the loop
	c.state.Or(hijacked)
	// At once, not when the user code returns: until the original is closed, the
	// new owner's Close would not end the connection.
	c.post(Detached)
	return nc, rest, nil
}

// NetConn implements Link.
func (c *Conn) NetConn() net.Conn { return hookConn{c} }

// hookConn is the net.Conn that hooks such as ConnState and ConnContext
// receive. It has the addresses and Close; it cannot read or write.
type hookConn struct{ c *Conn }

func (h hookConn) Read([]byte) (int, error)  { return 0, errNotYours }
func (h hookConn) Write([]byte) (int, error) { return 0, errNotYours }

var errNotYours = &net.OpError{Op: "use", Net: "tcp", Err: os.ErrPermission}

// Close ends the connection; calls of user code that runs on it fail.
func (h hookConn) Close() error {
	if !h.c.loop.Post(h.c.handle, Kill) {
		return net.ErrClosed
	}
	return nil
}

func (h hookConn) LocalAddr() net.Addr                { return h.c.localAddr() }
func (h hookConn) RemoteAddr() net.Addr               { return h.c.peer.Net() }
func (h hookConn) SetDeadline(t time.Time) error      { return os.ErrNoDeadline }
func (h hookConn) SetReadDeadline(t time.Time) error  { return os.ErrNoDeadline }
func (h hookConn) SetWriteDeadline(t time.Time) error { return os.ErrNoDeadline }
