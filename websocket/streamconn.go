package websocket

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/takeover"
)

// streamConn is a stream of HTTP/2 (RFC 8441) as a net.Conn, where the stream cannot be
// taken over: for Options.Serve, and on net/http's server. It lasts as long as the
// handler, with a goroutine for each direction.
type streamConn struct {
	// Our ends of pipes, which have deadlines that can be moved when they have passed.
	in, out net.Conn
	r       *http.Request
	rc      *http.ResponseController
	wait    sync.WaitGroup
	once    sync.Once
}

// useStream opens a connection on the stream of a request.
func useStream(w http.ResponseWriter, r *http.Request, c *Conn) error {
	rc := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	if err := rc.Flush(); err != nil {
		return err
	}
	takeover.FreeSlot(w)
	rc.SetReadDeadline(time.Time{}) // those of the server
	rc.SetWriteDeadline(time.Time{})
	in, received := net.Pipe()
	out, toSend := net.Pipe()
	sc := &streamConn{in: in, out: out, r: r, rc: rc}
	sc.wait.Go(func() {
		io.Copy(received, r.Body)
		received.Close()
	})
	sc.wait.Go(func() {
		io.Copy(flushed{w, rc}, toSend)
		toSend.Close()
		rc.SetReadDeadline(conn.LongAgo) // ends the other one
	})
	c.link = newNetLink(sc, c)
	return nil
}

// flushed flushes each Write.
type flushed struct {
	w  io.Writer
	rc *http.ResponseController
}

func (f flushed) Write(p []byte) (n int, err error) {
	if n, err = f.w.Write(p); err == nil {
		err = f.rc.Flush()
	}
	return n, err
}

// Close implements net.Conn. What was written has been passed to the server.
func (c *streamConn) Close() error {
	c.once.Do(func() {
		c.in.Close()
		c.out.Close()
		c.rc.SetWriteDeadline(time.Now().Add(conn.LingerFor))
		c.wait.Wait()
	})
	return nil
}

// Read, Write and the deadlines implement net.Conn.
func (c *streamConn) Read(p []byte) (int, error)         { return c.in.Read(p) }
func (c *streamConn) Write(p []byte) (int, error)        { return c.out.Write(p) }
func (c *streamConn) SetReadDeadline(t time.Time) error  { return c.in.SetReadDeadline(t) }
func (c *streamConn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }
func (c *streamConn) SetDeadline(t time.Time) error {
	c.in.SetDeadline(t)
	return c.out.SetDeadline(t)
}

func (c *streamConn) LocalAddr() net.Addr {
	a, _ := c.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return a
}

func (c *streamConn) RemoteAddr() net.Addr { return takeover.Addr(c.r.RemoteAddr) }
