package chert

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/chert-http/chert/internal/bridge/h1"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
)

// ListenAndServe listens on Addr and serves until Shutdown or Close, after
// which it returns ErrServerClosed. Its error is never nil.
func (s *Server) ListenAndServe() error {
	if s.stopping.Load() {
		return ErrServerClosed
	}
	addr := s.Addr
	if addr == "" {
		addr = ":http"
	}
	l, err := s.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return s.Serve(l)
}

// ListenAndServeTLS is ListenAndServe with TLS; see ServeTLS.
func (s *Server) ListenAndServeTLS(certFile, keyFile string) error {
	if s.stopping.Load() {
		return ErrServerClosed
	}
	addr := s.Addr
	if addr == "" {
		addr = ":https"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	return s.ServeTLS(l, certFile, keyFile)
}

// ServeTLS serves TLS connections of l with a goroutine each. The files may be
// empty when TLSConfig has certificates. HTTP/2 and HTTP/1.1 are negotiated, as
// Protocols has them, and what TLSNextProto and TLSConfig.NextProtos name.
func (s *Server) ServeTLS(l net.Listener, certFile, keyFile string) error {
	cfg := &tls.Config{}
	if s.TLSConfig != nil {
		cfg = s.TLSConfig.Clone()
	}
	cfg.NextProtos = s.nextProtos(cfg.NextProtos)
	if len(cfg.Certificates) == 0 && cfg.GetCertificate == nil && cfg.GetConfigForClient == nil || certFile != "" || keyFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return err
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return s.Serve(tls.NewListener(l, cfg))
}

// nextProtos is what ALPN offers: what the user wants, and the versions of HTTP that
// the server speaks. Who wants one that it does not speak does not get it.
func (s *Server) nextProtos(want []string) []string {
	p := s.protocols()
	out := slices.Clone(want)
	for _, v := range []struct {
		name string
		on   bool
	}{{"h2", p.HTTP2()}, {"http/1.1", p.HTTP1()}} {
		switch i := slices.Index(out, v.name); {
		case v.on && i < 0:
			out = append(out, v.name)
		case !v.on && i >= 0:
			out = slices.DeleteFunc(out, func(name string) bool { return name == v.name })
		}
	}
	return out
}

// Serve serves the connections of l until l is closed, by Shutdown, Close or
// anybody else. It closes l, and returns ErrServerClosed after Shutdown or
// Close, else l's error; never nil. Several may run at the same time.
//
// Connections of package net's TCP and unix listeners are driven by event
// loops, those of any other type of listener by goroutines; see Engine. What
// Listen has opened is accepted by the loops themselves, which is cheaper for
// each connection than l.Accept.
func (s *Server) Serve(l net.Listener) error {
	sv := &serving{l: l, stop: make(chan struct{})}
	if !s.begin(sv) {
		l.Close()
		return ErrServerClosed
	}
	defer s.done(sv)
	err := s.serveWith(sv)
	if s.stopping.Load() {
		return ErrServerClosed
	}
	return err
}

// serving is a call of Serve.
type serving struct {
	l    net.Listener
	once sync.Once
	err  error
	stop chan struct{} // closed by Shutdown and Close
}

// close closes the listener once, as net/http does.
func (sv *serving) close() error {
	sv.once.Do(func() {
		close(sv.stop)
		sv.err = sv.l.Close()
	})
	return sv.err
}

func (s *Server) begin(sv *serving) bool {
	s.lock()
	defer s.mu.Unlock()
	if s.stopping.Load() {
		return false
	}
	s.serving[sv] = struct{}{}
	return true
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
	// With the first connection, as late as net/http looks at these fields:
	// tests set them when the server has been started already.
	cfg := sync.OnceValue(func() *h1.Config {
		c := s.config(base)
		if own, ok := sv.l.(*listener); ok {
			// Not of others: IP_TRANSPARENT, for one, gives each connection
			// the address that its client has asked for.
			c.LocalAddr = oneAddr(own.Addr())
		}
		return c
	})
	loops := sys.HavePoller && s.Engine != EngineGoroutines
	if s.Engine == EngineAuto && s.ConnContext != nil {
		// What it is shown must be the connection itself: it may ask a
		// *net.UnixConn who the peer is, or keep the connection to close it.
		loops = false
	}
	if s.Engine == EngineLoops && !sys.HavePoller {
		return errors.New("chert: event loops are not available on this system")
	}
	switch l := sv.l.(type) {
	case *listener:
		if loops {
			return s.serveOwn(sv, l, cfg)
		}
	case *net.TCPListener, *net.UnixListener:
	default:
		// Its Accept may be somebody's who keeps what it returns, to close it
		// later or to know it again in ConnState.
		loops = s.Engine == EngineLoops
	}
	return s.serveAccepting(sv, cfg, loops)
}

// oneAddr is the local address of all TCP connections of a listener, nil if each
// may have another. A system call for each connection is saved by it.
func oneAddr(a net.Addr) net.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok && len(tcp.IP) > 0 && !tcp.IP.IsUnspecified() {
		return tcp
	}
	return nil
}

// accept is what listeners on loops do with new connections.
func (s *Server) accept(cfg func() *h1.Config) *loop.Accept {
	return &loop.Accept{
		Gate:    s.gate,
		Seek:    s.seekRoom,
		Refusal: refusal,
		Refused: func(peer string, share bool) {
			reason := noPlace
			if share {
				reason = noShare
			}
			s.refused(peer, http.StatusServiceUnavailable, reason, nil)
		},
		Log: s.logf,
		Open: func(l *loop.Loop, fd int, peer string) error {
			c, err := cfg().Open(l, fd, peer)
			// What was accepted before the listener closed may be attached
			// after the others were told.
			switch {
			case err != nil:
			case s.closing.Load():
				c.Mail(conn.Kill)
			case s.stopping.Load():
				c.Mail(conn.Drain)
			}
			return err
		},
	}
}

// serveOwn gives every loop a listening socket.
func (s *Server) serveOwn(sv *serving, l *listener, cfg func() *h1.Config) error {
	set, err := s.useLoops()
	if err != nil {
		return err
	}
	defer s.releaseLoops(set)
	defer l.goneOnce.Do(func() { close(l.gone) })
	fds, err := l.sockets(len(set.loops))
	if err != nil {
		return err
	}
	// The loops have the socket; the runtime's poller need not wake for it.
	l.moved.Store(true)
	l.TCPListener.Close()
	stop, err := set.listen(fds, s.accept(cfg))
	if err != nil {
		return err
	}
	select {
	case <-l.closed:
	case <-sv.stop:
	}
	stop()
	return &net.OpError{Op: "accept", Net: l.network, Addr: l.Addr(), Err: net.ErrClosed}
}
