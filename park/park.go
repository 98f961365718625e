package park

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"syscall"

	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/park"
	"github.com/chert-http/chert/internal/tlsio"
)

// Park calls readable(conn), on a goroutine of its own, when there is something to
// read from conn: bytes, the end of the stream, or an error. Until then no goroutine
// waits, and the handler that has hijacked conn may return. readable calls Park again
// to wait for more.
//
// readable may block. A client that sends only the beginning of a message makes it
// wait for the rest: bound that by a deadline. One that does not read makes it wait in
// Write: bound that too. The next call may begin before Park has returned; so after Park
// readable leaves conn alone.
//
// If Park returns nil, readable is called exactly once. If conn is closed meanwhile,
// or its read deadline passes, it is called within about a second (one more for each
// 32,768 parked connections), and its Read returns that error. If Park returns an
// error, because conn is closed or already parked, or for lack of a descriptor,
// readable is not called. A panic of readable is logged by package log, and closes conn.
//
// A parked conn may be written to, and must not be read from. Safe for concurrent use.
func Park(conn net.Conn, readable func(conn net.Conn)) error {
	if conn == nil || readable == nil {
		return errors.New("park: an argument is nil")
	}
	ready := func() { runParked(conn, readable) }
	raw, now, err := socketBelow(conn)
	switch {
	case err != nil:
	case raw == nil:
		go ready()
	default:
		err = park.Park(raw, now, ready)
	}
	if err != nil {
		return fmt.Errorf("park: %w", err)
	}
	return nil
}

// socketBelow returns the socket that nc reads from, nil if that cannot be watched, and
// whether something has been read from it that nc has not returned yet.
func socketBelow(nc net.Conn) (raw syscall.RawConn, now bool, err error) {
	for {
		switch c := nc.(type) {
		case *net.TCPConn:
			raw, err = c.SyscallConn()
			return raw, now, err
		case *net.UnixConn:
			raw, err = c.SyscallConn()
			return raw, now, err
		case *tls.Conn:
			ready, ok := tlsio.Idle(c)
			if !ok {
				return nil, false, nil
			}
			now = now || ready
			nc = c.NetConn()
		case interface {
			Buffered() int
			NetConn() net.Conn
		}:
			now = now || c.Buffered() > 0
			nc = c.NetConn()
		default:
			return nil, false, nil
		}
	}
}

// runParked calls readable. What net/http does for a handler that has hijacked its
// connection, a panic is logged, also happens here.
func runParked(conn net.Conn, readable func(net.Conn)) {
	exec.Call(func() { readable(conn) }, func(e exec.End) {
		if v, ok := e.Panic(); ok {
			log.Printf("park: panic of a function passed to Park, for %v: %v\n%s", conn.RemoteAddr(), v, exec.Stack())
		}
		conn.Close()
	})
}
