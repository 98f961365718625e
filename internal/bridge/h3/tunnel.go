package h3

import (
	"io"
	"net"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http3"
	netstream "github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/sys"
)

// This file is streams that another protocol has taken over: WebSockets (RFC 9220). What the client
// sends in DATA frames is for the protocol's session, and what that sends becomes DATA frames. The
// session has the stream's goroutine, as on a connection of package stream.

// tunnel is such a stream: the Link of its session.
type tunnel struct {
	*netstream.Conn
	st *stream
}

// Share implements bridge.Stream: it makes the stream a tunnel.
func (o own) Share() {
	st := o.st
	t := &tunnel{st: st}
	t.Conn = netstream.New(tunnelConn{st}, &st.s.Shared.Limits, st.s.tally, nil)
	t.SetPeer(st.s.peer.Load().RemoteAddr)
	t.Conn.Share()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.tunnel, st.readBy, st.writeBy = t, noTime, noTime // the request's
	st.frame = 0                                         // there is no content
	st.str.SetReadDeadline(noTime)
	st.str.SetWriteDeadline(noTime)
}

// noTime is no deadline.
var noTime time.Time

// serve serves the session when the handler has returned.
func (t *tunnel) serve() {
	st := t.st
	session := st.Taken()
	if st.next != conn.Detached || session == nil { // runtime.Goexit
		st.abort(&http3.StreamError{Code: http3.InternalError})
		t.Kill()
	}
	if session == nil {
		return
	}
	if st.s.Ending() {
		t.Drain()
	}
	t.Post(func() conn.Next { return conn.Requeue }) // the session begins even if the client sends nothing
	t.Run(session)
}

// What follows implements bridge.Stream, for the session.

func (o own) Buffered() []byte                           { return o.st.tunnel.Buffered() }
func (o own) Discard(n int)                              { o.st.tunnel.Discard(n) }
func (o own) OnLoop() bool                               { return false }
func (o own) Post(f func() conn.Next)                    { o.st.tunnel.Post(f) }
func (o own) SetDeadline(ns int64)                       { o.st.tunnel.SetDeadline(ns) }
func (o own) Now() int64                                 { return sys.Nanotime() }
func (o own) Do(u conn.UserCode) (ran, waited bool)      { return o.st.tunnel.Do(u) }
func (o own) Offer(a, b []byte, limit int) (bool, error) { return o.st.tunnel.Out().Offer(a, b, limit) }

// tunnelConn is the stream as a net.Conn, of the payload of its DATA frames.
type tunnelConn struct{ st *stream }

var _ net.Conn = tunnelConn{}

// Read implements net.Conn.
func (c tunnelConn) Read(p []byte) (int, error) {
	st := c.st
	for st.frames.Left() == 0 {
		h, err := st.nextFrame(bodySize)
		if err == nil && h.Type != http3.FrameData {
			err = errAfter // RFC 9114 section 4.4
		}
		if err != nil {
			return 0, c.failed(err)
		}
	}
	n, err := st.readPayload(p)
	if n > 0 {
		err = nil // it comes again
	}
	return n, c.failed(err)
}

func (c tunnelConn) failed(err error) error {
	if err != io.EOF {
		c.st.s.failed(err)
	}
	return err
}

// Write implements net.Conn.
func (c tunnelConn) Write(p []byte) (int, error) {
	if err := c.st.put(nil, nil, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite is that of a *net.TCPConn.
func (c tunnelConn) CloseWrite() error { return c.st.end() }

// SetLinger, which is that of a *net.TCPConn, has Close reset the stream (RFC 8441 section 5).
func (c tunnelConn) SetLinger(int) error {
	c.st.abort(&http3.StreamError{Code: http3.RequestCancelled})
	return nil
}

// Close implements net.Conn.
func (c tunnelConn) Close() error {
	st := c.st
	if !st.ended.Load() && !st.aborted.Load() && st.end() == errPartial && st.str.Context().Err() == nil {
		st.abort(&http3.StreamError{Code: http3.RequestCancelled})
	}
	st.str.Stop(http3.NoError) // a Read that waits ends
	return nil
}

func (c tunnelConn) LocalAddr() net.Addr  { return c.st.s.qc.LocalAddr() }
func (c tunnelConn) RemoteAddr() net.Addr { return c.st.s.qc.RemoteAddr() }

// SetDeadline implements net.Conn.
func (c tunnelConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c tunnelConn) SetReadDeadline(t time.Time) error { return c.st.str.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c tunnelConn) SetWriteDeadline(t time.Time) error {
	own(c).SetWriteDeadline(t)
	return nil
}
