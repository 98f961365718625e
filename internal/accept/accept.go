package accept

import (
	"crypto/tls"
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
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/observe"
	"github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// Server is what acceptors need of their server. It is set before the first of them, and
// immutable then.
type Server struct {
	Gate     *loop.Gate
	Observed *observe.Server
	Logf     func(format string, args ...any)
	Stopping func() bool // Drain, Shutdown or Close was called
	Seek     func()      // has an idle connection give way
	// Peers: addresses are counted, so that they have to be known at once.
	Peers bool
	// Loops returns the server's loops, and release ends their use.
	Loops func() (set *Set, release func(), err error)
	// Track is called with each connection on a goroutine when it opens, Untrack when it has ended.
	Track, Untrack func(conn.Driven)
	// HandshakeTimeout bounds a TLS handshake, and HandshakeFailed logs its error and
	// returns the response to a client that does not speak TLS.
	HandshakeTimeout func() time.Duration
	HandshakeFailed  func(peer string, local net.Addr, tc *tls.Conn, err error) (answer []byte)
	// Other returns what serves a protocol that ALPN has selected, nil if nothing does.
	Other func(proto string) func(*http.Server, *tls.Conn, http.Handler)
	// HTTP2: h2 is served over TLS.
	HTTP2 func() bool
}

// Acceptor is a Serve call on a listener that chert did not open: it calls Accept, the
// only call that returns when the listener's owner closes it. Connections go to the loops
// in turn, or each to a goroutine.
type Acceptor struct {
	*Server
	// Listener is what Accept is called of.
	Listener net.Listener
	Config   func() *h1.Config
	OnLoops  bool
	// New is what loops do with new connections, and how they are refused.
	New  *loop.Accept
	Stop <-chan struct{} // closed when the server stops

	free chan struct{} // there may be room
	// awaiting: the gate will send on free.
	awaiting atomic.Bool
	set      *Set           // nil before the first connection
	release  func()         // ends the use of set
	opening  sync.WaitGroup // connections being attached to a loop
	next     int
}

// job is a connection for a goroutine. It is tracked from its creation.
type job struct {
	nc      net.Conn
	c       *stream.Conn
	p       *h1.Session
	proxied bool   // a header of the PROXY protocol comes first
	counts  string // the address that it counts for; the owner's
}

// Serve accepts until that fails.
func (a *Acceptor) Serve() error {
	a.free = make(chan struct{}, 1)
	defer func() {
		// ConnState must have seen all of them before Serve returns.
		a.opening.Wait()
		if a.set != nil {
			a.release()
		}
	}()
	var pause time.Duration
	for {
		nc, err := a.Listener.Accept()
		if err == nil {
			pause = 0
			// Not before: room that is reserved during Accept would be lost to
			// the connections of other listeners.
			if a.Gate.Enter() || a.awaitPlace() {
				err = a.admit(nc)
			} else {
				a.refuse(nc, observe.NoRoom)
			}
			if err != nil {
				return err
			}
			continue
		}
		if ne, ok := err.(net.Error); !ok || !temporary(ne) || a.Stopping() {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		a.New.Complain(err)
		if e, ok := errors.AsType[syscall.Errno](err); ok && sys.NoFiles(e) && pending(a.Listener) {
			a.Seek()
		}
		select {
		case <-time.After(pause):
		case <-a.Stop:
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
func (a *Acceptor) awaitPlace() bool {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	again := time.NewTicker(time.Duration(loop.BarrenFor)) // some connection may be idle by then
	defer again.Stop()
	for {
		if !a.awaiting.Swap(true) {
			a.Gate.Await(func() {
				a.awaiting.Store(false)
				select {
				case a.free <- struct{}{}:
				default:
				}
			})
		}
		a.Seek()
		select {
		case <-a.free:
			if a.Gate.Enter() {
				return true
			}
		case <-again.C:
		case <-t.C:
			return a.Gate.Enter()
		case <-a.Stop:
			return a.Gate.Enter()
		}
	}
}

// refusing bounds the goroutines that answer 503: in a flood most are only
// closed.
var refusing = make(chan struct{}, 64)

func (a *Acceptor) refuse(nc net.Conn, reason string) {
	select {
	case refusing <- struct{}{}:
		go func() {
			defer func() { <-refusing }()
			peer, local := a.addrsOf(nc)
			a.Observed.Refuse(peer, local, http.StatusServiceUnavailable, reason, nil)
			sayNo(a.guard(nc, func() string { return peer }), a.New.Refusal())
		}()
	default:
		a.guard(nc, unknown).Close()
		a.Observed.Refuse("", a.Listener.Addr(), 0, reason, nil) // whose RemoteAddr may block; see admit
	}
}

// sayNo sends answer on nc, no method of which panics. It reads a little, in case a request has arrived: closing
// with unread bytes sends a reset, which can overtake the response.
func sayNo(nc net.Conn, answer []byte) {
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Second))
	late := time.AfterFunc(time.Second, func() { nc.Close() }) // there are connections without deadlines
	defer late.Stop()
	if _, err := nc.Write(answer); err == nil && stream.CloseWrite(nc) == nil {
		io.CopyN(io.Discard, nc, 64<<10)
	}
}

// admit passes a connection that has entered the gate to its engine. An error
// means that no engine can drive the connections of this listener.
func (a *Acceptor) admit(nc net.Conn) error {
	var peer string
	if a.OnLoops || a.Peers || a.New.Proxied != nil || stream.Guard(nc, nil) == nc {
		// Otherwise not yet: RemoteAddr of other packages may first read it
		// from the connection (the PROXY protocol), and must not delay the
		// others.
		var ok bool
		if peer, ok = a.peerOf(nc); !ok {
			a.guard(nc, unknown).Close()
			a.Gate.Leave("")
			return nil
		}
	}
	counted, proxied := a.New.Counted(peer)
	if !a.Gate.Admit(counted) {
		a.Gate.Leave("")
		a.refuse(nc, observe.NoShare)
		return nil
	}
	if a.OnLoops {
		return a.toLoop(nc, peer, counted, proxied)
	}
	t := a.Observed.Shard()
	j := &job{nc: nc, counts: counted, proxied: proxied}
	name := func() string { return j.c.Peer().RemoteAddr }
	c := stream.New(a.guard(nc, name), &a.Config().Shared.Limits, t, func(c *stream.Conn) {
		t.Add(false, tally.Closed, 1)
		a.Untrack(c)
		a.Gate.Leave(j.counts)
	})
	j.c = c
	if !proxied && peer != "" {
		c.SetPeer(peer) // before the hooks of a new connection, whose panics are logged with it
	}
	if a.Config().Preface {
		// As net/http: there are listeners whose connections compare the bytes of this read,
		// and no others, with the preface.
		c.ReadFirst(len(h1.Preface))
	}
	t.Add(false, tally.Accepted, 1)
	a.Track(c)
	j.p = a.Config().New(c)
	go a.serve(j)
	return nil
}

// toLoop passes a socket to the next loop.
func (a *Acceptor) toLoop(nc net.Conn, peer, counted string, proxied bool) error {
	fd, err := socketOf(nc)
	if fd < 0 && err == nil {
		nc.Close()
		a.Gate.Leave(counted)
		return fmt.Errorf("chert: event loops cannot drive a %T", nc)
	}
	if err == nil && a.set == nil {
		a.set, a.release, err = a.Loops()
	}
	if err != nil {
		a.Observed.LogSoon("chert: a new connection was dropped: %v", err)
		nc.Close()
		a.Gate.Leave(counted)
		return nil
	}
	nc.Close() // fd is a duplicate
	l := a.set.Loops[a.next%len(a.set.Loops)]
	a.next++
	// While this call uses the set, its loops do not end.
	a.opening.Add(1)
	if !l.Do(func() {
		defer a.opening.Done()
		if err := a.New.Open(l, fd, peer, proxied); err != nil {
			a.Observed.LogSoon("chert: a new connection was dropped: %v", err)
			sys.Close(fd)
			a.Gate.Leave(counted)
		}
	}) {
		// Its poller has failed.
		a.opening.Done()
		sys.Close(fd)
		a.Gate.Leave(counted)
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
	return stream.Guard(nc, func(e any) { s.Logf("http: panic serving %v: %v\n%s", peer(), e, exec.Stack()) })
}

// addrsOf returns the addresses of a connection that is refused; that of the listener if its
// own may panic.
func (a *Acceptor) addrsOf(nc net.Conn) (peer string, local net.Addr) {
	peer, ok := a.peerOf(nc)
	if !ok || stream.Guard(nc, nil) != nc {
		return peer, a.Listener.Addr()
	}
	return peer, nc.LocalAddr()
}

func unknown() string { return "an unknown address" }

// peerOf is peerOf of a connection whose RemoteAddr may panic: then that is logged.
func (s *Server) peerOf(nc net.Conn) (peer string, ok bool) {
	ok = exec.Call(func() { peer = peerOf(nc) }, func(e exec.End) {
		if v, report := e.Panic(); report {
			s.Logf("http: panic serving %v: %v\n%s", unknown(), v, exec.Stack())
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
