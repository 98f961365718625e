package stream

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// errPanicked is the error of a connection one of whose methods has panicked.
var errPanicked = errors.New("stream: a method of the net.Conn has panicked")

// guarded is a net.Conn of another package, any method of which may panic: on goroutines of
// this package too, where that would end the process. A panic becomes an error, which ends
// the connection: nothing is read or written afterwards.
type guarded struct {
	net.Conn
	panicked func(v any) // called once, on the stack of the panic; may be nil
	broken   atomic.Bool // there was a panic
}

// Guard returns nc so that a panic in one of its methods is reported to panicked, with its
// stack still there, and returned as an error. Connections of std's are returned as they are.
func Guard(nc net.Conn, panicked func(v any)) net.Conn {
	under := nc
	if t, ok := nc.(*tls.Conn); ok {
		under = t.NetConn()
	}
	switch under.(type) {
	case *net.TCPConn, *net.UnixConn, *guarded:
		return nc
	}
	return &guarded{Conn: nc, panicked: panicked}
}

// bare is nc without a guard.
func bare(nc net.Conn) net.Conn {
	if g, ok := nc.(*guarded); ok {
		return g.Conn
	}
	return nc
}

// guard runs f, which calls a method of nc.
func guard(nc net.Conn, f func() error) error {
	if g, ok := nc.(*guarded); ok {
		return g.run(f)
	}
	return f()
}

// CloseWrite closes the sending side of nc if it can do that.
func CloseWrite(nc net.Conn) error {
	half, ok := bare(nc).(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return guard(nc, half.CloseWrite)
}

func (g *guarded) run(f func() error) (err error) {
	defer g.recovered(&err)
	return f()
}

// recovered is deferred by what calls a method.
func (g *guarded) recovered(err *error) {
	v := recover()
	if v == nil {
		return
	}
	*err = errPanicked
	if !g.broken.Swap(true) && g.panicked != nil && v != http.ErrAbortHandler {
		g.panicked(v)
	}
}

func (g *guarded) Read(p []byte) (int, error)  { return g.transfer(net.Conn.Read, p) }
func (g *guarded) Write(p []byte) (int, error) { return g.transfer(net.Conn.Write, p) }

func (g *guarded) transfer(f func(net.Conn, []byte) (int, error), p []byte) (n int, err error) {
	if g.broken.Load() {
		return 0, errPanicked
	}
	defer g.recovered(&err)
	return f(g.Conn, p)
}

func (g *guarded) Close() error { return g.run(g.Conn.Close) }

func (g *guarded) SetDeadline(t time.Time) error     { return g.deadline(net.Conn.SetDeadline, t) }
func (g *guarded) SetReadDeadline(t time.Time) error { return g.deadline(net.Conn.SetReadDeadline, t) }
func (g *guarded) SetWriteDeadline(t time.Time) error {
	return g.deadline(net.Conn.SetWriteDeadline, t)
}

func (g *guarded) deadline(set func(net.Conn, time.Time) error, t time.Time) error {
	return g.run(func() error { return set(g.Conn, t) })
}
