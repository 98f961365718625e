package chert

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/bridge/h1"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/observe"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/successor"
	"github.com/chert-http/chert/internal/sys"
)

// ListenAndServe listens on Addr and serves until Shutdown or Close, after
// which it returns ErrServerClosed. It always returns a non-nil error.
func (s *Server) ListenAndServe() error {
	l, err := s.listenAddr(":http")
	if err != nil {
		return err
	}
	return s.Serve(l)
}

// listenAddr opens the listener of Addr, by default def, unless the server is ending.
func (s *Server) listenAddr(def string) (net.Listener, error) {
	if s.ending() {
		return nil, ErrServerClosed
	}
	return s.Listen("tcp", cmp.Or(s.Addr, def))
}

// Listen opens the listener that ListenAndServe would use, without serving it
// yet: Addr returns its address, and Serve accepts it. For "tcp", "tcp4" and
// "tcp6" each event loop will have a socket of its own on the address
// (SO_REUSEPORT). Other networks are passed to net.Listen. With an Upgrader it is that one's Listen.
func (s *Server) Listen(network, addr string) (net.Listener, error) {
	if s.Upgrader != nil {
		return s.Upgrader.listen(network, addr, s.Engine != EngineGoroutines)
	}
	return listen(network, addr, s.Engine != EngineGoroutines)
}

// listen opens a listener, on which event loops accept if they may.
func listen(network, addr string, loops bool) (net.Listener, error) {
	if !ownSockets(network, loops) {
		return net.Listen(network, addr)
	}
	l, err := accept.Listen(network, addr)
	if err != nil {
		return nil, err // not a nil *accept.Listener
	}
	return l, nil
}

// ownSockets reports whether event loops, if they may be used, have sockets of their own on a network.
func ownSockets(network string, loops bool) bool {
	return loops && sys.HavePoller && (network == "tcp" || network == "tcp4" || network == "tcp6")
}

// Serve serves the connections of l until l is closed, by Shutdown, Close or
// its owner. It closes l, and returns ErrServerClosed after Shutdown or Close,
// otherwise l's error; never nil. Safe for concurrent use.
//
// Connections of package net's TCP and unix listeners are driven by event
// loops, those of any other type of listener by goroutines; see Engine. On a
// listener from Listen the loops themselves accept, which costs less per
// connection than l.Accept. No other Server can share that: its Serve fails, and
// leaves l open.
func (s *Server) Serve(l net.Listener) error {
	return s.serve(&serving{l: l, below: l, stop: make(chan struct{})})
}

func (s *Server) serve(sv *serving) error {
	if own, ok := sv.below.(*accept.Listener); ok && !own.Use(s, s.onLoops(own)) {
		return errServed // and the listener stays open: it is the other server's
	}
	// Before others know of the call: then the program may tell a process before it that it has all
	// it wants.
	err := s.openPackets(sv)
	if err == nil && !s.begin(sv) {
		err = ErrServerClosed
	}
	if err != nil {
		sv.closeSockets()
		return err
	}
	defer s.done(sv)
	if s.Upgrader != nil {
		select {
		case <-successor.Current().Accepting():
		case <-sv.stop:
		}
	}
	err = s.serveWith(sv)
	if s.ending() {
		return ErrServerClosed
	}
	return err
}

var errServed = errors.New("chert: another Server serves this listener already, and its event loops cannot share it: " +
	"each needs a listener of its own")

// serving is a call of Serve.
type serving struct {
	number int // in the order of their beginning
	l      net.Listener
	// below is l, but for ServeTLS: there l is TLS with the configuration tls over
	// below.
	below   net.Listener
	tls     *tls.Config
	packets accept.PacketServer // of HTTP/3; nil for none
	once    sync.Once
	err     error
	stop    chan struct{} // closed by Shutdown and Close
}

// close closes the listener once, as net/http does.
func (sv *serving) close() error {
	sv.once.Do(func() {
		close(sv.stop)
		sv.err = sv.closeSockets()
	})
	sched.Point("close", uint64(sv.number))
	return sv.err
}

func (sv *serving) closeSockets() error {
	if sv.packets != nil {
		sv.packets.Close()
	}
	return sv.l.Close()
}

func (s *Server) begin(sv *serving) bool {
	s.lock()
	begun := !s.ending()
	if begun {
		s.begunCalls++
		sv.number = s.begunCalls
		s.serving[sv] = struct{}{}
		s.quiet.Broadcast() // Run may wait for it
	}
	s.mu.Unlock()
	if begun {
		s.observed.WatchHandlers()
	}
	return begun
}

func (s *Server) done(sv *serving) {
	sv.close()
	s.lock()
	delete(s.serving, sv)
	s.quiet.Broadcast()
	s.mu.Unlock()
}

func (s *Server) serveWith(sv *serving) error {
	base := s.baseContext(sv.l)
	loops := s.onLoops(sv.below)
	switch {
	case s.Engine > EngineGoroutines:
		return fmt.Errorf("chert: Server: Engine: unknown value %d", s.Engine)
	case s.Placement > PlacementPooled:
		return fmt.Errorf("chert: Server: Placement: unknown value %d", s.Placement)
	case s.Engine == EngineLoops && !sys.HavePoller:
		return errors.New("chert: event loops are not available on this system")
	}
	altSvc, err := s.servePackets(sv, base)
	if err != nil {
		return err
	}
	own, _ := sv.below.(*accept.Listener)
	// At the first connection, as late as net/http reads these fields: tests
	// set them when the server has already been started.
	cfg := sync.OnceValue(func() *h1.Config {
		c := s.config(base, altSvc)
		if sv.tls != nil && loops {
			c.Handshake = s.handshakes(sv.tls, c)
		}
		if own != nil {
			// Not for other listeners: with IP_TRANSPARENT, for example, each
			// connection has the address that its client connected to.
			c.LocalAddr = oneAddr(own.Addr())
		}
		return c
	})
	switch {
	case own != nil && loops:
		return s.serveOwn(sv, own, cfg)
	case loops:
		return s.serveAccepting(sv, sv.below, cfg, true)
	}
	return s.serveAccepting(sv, sv.l, cfg, false)
}

// onLoops reports whether event loops drive the connections of l.
func (s *Server) onLoops(l net.Listener) bool {
	switch {
	case !sys.HavePoller || s.Engine == EngineGoroutines:
		return false
	case s.Engine == EngineAuto && s.ConnContext != nil:
		// It must receive the connection itself: it may ask a *net.UnixConn for
		// the peer's credentials, or keep the connection to close it.
		return false
	}
	switch l.(type) {
	case *accept.Listener, *net.TCPListener, *net.UnixListener:
		return true
	}
	// Its Accept may be user code that keeps the connections it returns, to
	// close them later or to recognize them in ConnState.
	return s.Engine == EngineLoops
}

// oneAddr returns the local address of all TCP connections of a listener, nil if
// they may differ. It saves a system call for each connection.
func oneAddr(a net.Addr) net.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok && len(tcp.IP) > 0 && !tcp.IP.IsUnspecified() {
		return tcp
	}
	return nil
}

// newConns is what loops do with new connections of a Serve call. shakes: they begin with a TLS
// handshake.
func (s *Server) newConns(sv *serving, cfg func() *h1.Config, shakes bool) *loop.Accept {
	no := accept.Refusal
	if shakes {
		no = accept.Alert
	}
	addr := sv.l.Addr()
	a := &loop.Accept{
		Gate:    s.gate,
		Seek:    s.room.Seek,
		Refusal: no,
		Refused: func(peer string, share bool) {
			reason := observe.NoRoom
			if share {
				reason = observe.NoShare
			}
			s.observed.Refuse(peer, addr, http.StatusServiceUnavailable, reason, nil)
		},
		Log:     s.observed.LogSoon,
		Limit:   s.limitOfConns,
		Proxied: s.proxied(sv.below),
	}
	a.Open = func(l *loop.Loop, fd int, peer string, proxied bool) error {
		var c *conn.Conn
		var err error
		if proxied {
			c, err = cfg().OpenAfter(l, fd, accept.Proxied(a, peer, l.Now()))
		} else {
			c, err = cfg().Open(l, fd, peer)
		}
		// A connection accepted before the listener closed may be attached
		// after the others were notified.
		switch {
		case err != nil:
		case s.closing.Load():
			c.Mail(conn.Kill)
		case s.stopping.Load():
			c.Mail(conn.Drain)
		}
		return err
	}
	return a
}

// serveOwn gives every loop a listening socket.
func (s *Server) serveOwn(sv *serving, l *accept.Listener, cfg func() *h1.Config) error {
	set, err := s.useLoops()
	if err != nil {
		return err
	}
	defer s.releaseLoops(set)
	var open func(n int) ([]int, error)
	if s.kernel != nil {
		open = s.kernel.Sockets
	}
	return l.Serve(set.Set, s.newConns(sv, cfg, sv.tls != nil), open, sv.stop, sv.number)
}

// serveAccepting accepts from l until that fails.
func (s *Server) serveAccepting(sv *serving, l net.Listener, cfg func() *h1.Config, onLoops bool) error {
	a := &accept.Acceptor{
		Server: s.acceptors(), Listener: l, Config: cfg, OnLoops: onLoops, Stop: sv.stop,
		New: s.newConns(sv, cfg, onLoops && sv.tls != nil),
	}
	return a.Serve()
}

// acceptors is what acceptors need of s.
func (s *Server) acceptors() *accept.Server {
	return &accept.Server{
		Gate: s.gate, Observed: &s.observed, Logf: s.logf, Stopping: s.ending, Seek: s.room.Seek,
		Peers: s.MaxConnsPerAddr > 0,
		Loops: func() (*accept.Set, func(), error) {
			set, err := s.useLoops()
			if err != nil {
				return nil, nil, err
			}
			return set.Set, func() { s.releaseLoops(set) }, nil
		},
		Track: s.track, Untrack: s.untrack,
		HandshakeTimeout: s.handshakeTimeout, HandshakeFailed: s.handshakeFailed,
		Other: func(proto string) func(*http.Server, *tls.Conn, http.Handler) { return s.TLSNextProto[proto] },
		HTTP2: func() bool {
			p := s.protocols()
			return p.HTTP2()
		},
	}
}
