package chert

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/bridge/h1"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// acceptor is a Serve call on a listener that chert did not open: it calls
// l.Accept, the only call that returns when the listener's owner closes it.
// Connections go to the loops in turn, or each to a goroutine.
type acceptor struct {
	s    *Server
	sv   *serving
	cfg  func() *h1.Config
	free chan struct{} // there may be room
	// awaiting: the gate will send on free.
	awaiting atomic.Bool

	onLoops bool
	set     *loopSet
	opening sync.WaitGroup // connections being attached to a loop
	next    int
	loops   *loop.Accept
}

// job is a connection for a goroutine. It is tracked from its creation.
type job struct {
	nc net.Conn
	c  *stream.Conn
	p  *h1.Session
}

// serveAccepting accepts from l until that fails.
func (s *Server) serveAccepting(sv *serving, l net.Listener, cfg func() *h1.Config, onLoops bool) error {
	a := &acceptor{s: s, sv: sv, cfg: cfg, free: make(chan struct{}, 1), loops: s.accept(sv.l, cfg, onLoops && sv.tls != nil), onLoops: onLoops}
	defer func() {
		// ConnState must have seen all of them before Serve returns.
		a.opening.Wait()
		if a.set != nil {
			s.releaseLoops(a.set)
		}
	}()
	var pause time.Duration
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			// Not before: room that is reserved during Accept would be lost to
			// the connections of other listeners.
			if s.gate.Enter() || a.awaitPlace() {
				err = a.admit(nc)
			} else {
				a.refuse(nc, noPlace)
			}
			if err != nil {
				return err
			}
			continue
		}
		if ne, ok := err.(net.Error); !ok || !temporary(ne) || s.stopping.Load() {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		a.loops.Complain(err)
		if e, ok := errors.AsType[syscall.Errno](err); ok && sys.NoFiles(e) && pending(sv.l) {
			s.seekRoom()
		}
		select {
		case <-time.After(pause):
		case <-sv.stop:
		}
	}
}

// pending reports whether a connection waits in l, or that cannot be told: accept4
// takes a descriptor before it looks for one.
func pending(l net.Listener) (yes bool) {
	yes = true
	if sc, ok := l.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { yes = sys.Pending(int(fd)) })
		}
	}
	return yes
}

// temporary is net.Error's deprecated Temporary: there is still no other way to
// tell which accept errors are transient.
func temporary(err net.Error) bool {
	t, ok := err.(interface{ Temporary() bool })
	return ok && t.Temporary()
}

// awaitPlace makes an idle connection close, waits briefly for that one or another
// to end, and reports whether the gate was entered.
func (a *acceptor) awaitPlace() bool {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	again := time.NewTicker(time.Duration(loop.BarrenFor)) // some connection may be idle by then
	defer again.Stop()
	for {
		if !a.awaiting.Swap(true) {
			a.s.gate.Await(func() {
				a.awaiting.Store(false)
				select {
				case a.free <- struct{}{}:
				default:
				}
			})
		}
		a.s.seekRoom()
		select {
		case <-a.free:
			if a.s.gate.Enter() {
				return true
			}
		case <-again.C:
		case <-t.C:
			return a.s.gate.Enter()
		case <-a.sv.stop:
			return a.s.gate.Enter()
		}
	}
}

// refusing bounds the goroutines that answer 503: in a flood most are only
// closed.
var refusing = make(chan struct{}, 64)

func (a *acceptor) refuse(nc net.Conn, reason string) {
	select {
	case refusing <- struct{}{}:
		go func() {
			peer, local := a.addrsOf(nc)
			a.s.refused(peer, local, http.StatusServiceUnavailable, reason, nil)
			sayNo(a.s.guard(nc, func() string { return peer }), a.loops.Refusal())
		}()
	default:
		a.s.guard(nc, unknown).Close()
		a.s.refused("", a.sv.l.Addr(), 0, reason, nil) // whose RemoteAddr may block; see admit
	}
}

// sayNo sends answer. It reads a little, in case a request has arrived: closing
// with unread bytes sends a reset, which can overtake the response.
func sayNo(nc net.Conn, answer []byte) {
	defer func() {
		nc.Close()
		<-refusing
	}()
	nc.SetDeadline(time.Now().Add(time.Second))
	if _, err := nc.Write(answer); err == nil && stream.CloseWrite(nc) == nil {
		io.CopyN(io.Discard, nc, 64<<10)
	}
}

// admit passes a connection that has entered the gate to its engine. An error
// means that no engine can drive the connections of this listener.
func (a *acceptor) admit(nc net.Conn) error {
	var peer string
	if a.onLoops || a.s.MaxConnsPerAddr > 0 {
		// Otherwise not yet: RemoteAddr may be user code that first reads it
		// from the connection (the PROXY protocol), and must not delay the
		// others.
		var ok bool
		if peer, ok = a.s.peerOf(nc); !ok {
			a.s.guard(nc, unknown).Close()
			a.s.gate.Leave("")
			return nil
		}
	}
	if !a.s.gate.Admit(peer) {
		a.s.gate.Leave("")
		a.refuse(nc, noShare)
		return nil
	}
	if a.onLoops {
		return a.toLoop(nc, peer)
	}
	t := a.s.counts.shard()
	var c *stream.Conn
	c = stream.New(a.s.guard(nc, func() string { return c.Peer() }), &a.cfg().Shared.Limits, t, func(c *stream.Conn) {
		t.Add(false, tally.Closed, 1)
		a.s.untrack(c)
		a.s.gate.Leave(peer)
	})
	if a.cfg().Preface {
		// As net/http: there are listeners whose connections compare the bytes of this read,
		// and no others, with the preface.
		c.ReadFirst(len(h1.Preface))
	}
	t.Add(false, tally.Accepted, 1)
	a.s.track(c)
	go a.serve(job{nc, c, a.cfg().New(c)})
	return nil
}

// toLoop passes a socket to the next loop.
func (a *acceptor) toLoop(nc net.Conn, peer string) error {
	fd, err := socketOf(nc)
	if fd < 0 && err == nil {
		nc.Close()
		a.s.gate.Leave(peer)
		return fmt.Errorf("chert: event loops cannot drive a %T", nc)
	}
	if err == nil && a.set == nil {
		a.set, err = a.s.useLoops()
	}
	if err != nil {
		a.s.logf("chert: a new connection was dropped: %v", err)
		nc.Close()
		a.s.gate.Leave(peer)
		return nil
	}
	nc.Close() // fd is a duplicate
	l := a.set.loops[a.next%len(a.set.loops)]
	a.next++
	// While this call uses the set, its loops do not end.
	a.opening.Add(1)
	if !l.Do(func() {
		defer a.opening.Done()
		if err := a.loops.Open(l, fd, peer); err != nil {
			a.s.logf("chert: a new connection was dropped: %v", err)
			sys.Close(fd)
			a.s.gate.Leave(peer)
		}
	}) {
		// Its poller has failed.
		a.opening.Done()
		sys.Close(fd)
		a.s.gate.Leave(peer)
	}
	return nil
}

// socketOf duplicates the descriptor of a TCP or unix connection; -1 for
// anything else, including types that wrap one: their methods must be called.
func socketOf(nc net.Conn) (int, error) {
	switch c := nc.(type) {
	case *net.TCPConn:
		return dup(c.SyscallConn())
	case *net.UnixConn:
		return dup(c.SyscallConn())
	}
	return -1, nil
}

// guard returns nc so that a panic in a method of it, if it is of another package, ends that
// connection alone, and is logged as net/http logs one.
func (s *Server) guard(nc net.Conn, peer func() string) net.Conn {
	return stream.Guard(nc, func(e any) { s.logf("http: panic serving %v: %v\n%s", peer(), e, exec.Stack()) })
}

// addrsOf returns the addresses of a connection that is refused; that of the listener if its
// own may panic.
func (a *acceptor) addrsOf(nc net.Conn) (peer string, local net.Addr) {
	peer, ok := a.s.peerOf(nc)
	if !ok || stream.Guard(nc, nil) != nc {
		return peer, a.sv.l.Addr()
	}
	return peer, nc.LocalAddr()
}

func unknown() string { return "an unknown address" }

// peerOf is peerOf of a connection whose RemoteAddr may panic: then that is logged.
func (s *Server) peerOf(nc net.Conn) (peer string, ok bool) {
	ok = exec.Call(func() { peer = peerOf(nc) }, func(e exec.End) {
		if v, report := e.Panic(); report {
			s.logf("http: panic serving %v: %v\n%s", unknown(), v, exec.Stack())
		}
	})
	return peer, ok
}

// peerOf returns the remote address as handlers see it. That of a unix socket is
// "@", as on loops: its peer may have bound it to a file of any name, and
// "10.0.0.1:80" would be taken for an IP address.
func peerOf(nc net.Conn) string {
	switch a := nc.RemoteAddr().(type) {
	case nil:
		return ""
	case *net.UnixAddr:
		return "@"
	default:
		if strings.HasPrefix(a.Network(), "unix") {
			return "@"
		}
		return a.String()
	}
}
