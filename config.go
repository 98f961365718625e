package chert

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/h1"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
)

// The defaults of Server's fields.
const (
	defaultHeaderTimeout = 60 * time.Second
	defaultIdleTimeout   = 75 * time.Second
	defaultStall         = 60 * time.Second
)

// orDefault resolves v: 0 means the default and negative means none, which the
// inner packages write as 0.
func orDefault(v, def time.Duration) int64 {
	switch {
	case v < 0:
		return 0
	case v == 0:
		return int64(def)
	}
	return int64(v)
}

// baseContext is the parent of the contexts of listener l.
func (s *Server) baseContext(l net.Listener) context.Context {
	if s.BaseContext == nil {
		return context.Background()
	}
	ctx := s.BaseContext(l)
	if ctx == nil {
		panic("BaseContext returned a nil context")
	}
	return ctx
}

// config returns the configuration of the connections of a Serve call.
func (s *Server) config(base context.Context, altSvc *bridge.AltSvc) *h1.Config {
	header, idle := s.ReadHeaderTimeout, s.IdleTimeout
	if header == 0 {
		header = max(s.ReadTimeout, 0)
	}
	if idle == 0 {
		idle = max(s.ReadTimeout, 0)
	}
	headerTime := orDefault(header, defaultHeaderTimeout)
	if s.ReadTimeout > 0 && (headerTime == 0 || headerTime > int64(s.ReadTimeout)) {
		headerTime = int64(s.ReadTimeout)
	}
	cfg := &h1.Config{
		Head:     http1.Limits{HeadBytes: s.MaxHeaderBytes, Fields: s.MaxHeaderFields},
		HeadTime: headerTime,
		IdleTime: orDefault(idle, defaultIdleTimeout),
		Slice:    h1.DefaultSlice,
		Layer:    s.layer,
		Config: bridge.Config{
			Handler:        &s.Handler,
			Placement:      bridge.Placement(s.Placement),
			Places:         s.places,
			Routes:         s.routes,
			GeneralOptions: !s.DisableGeneralOptionsHandler,
			ReadTimeout:    max(s.ReadTimeout, 0),
			WriteTimeout:   max(s.WriteTimeout, 0),
			BaseContext:    base,
			ConnContext:    s.ConnContext,
			ConnState:      s.ConnState,
			HTTPServer:     s.httpServer,
			KeepAlives:     s.keepAlives,
			Stopped:        s.stopping.Load,
			Stopping:       s.told,
			Leaving:        s.leaving.Load,
			Logf:           s.logf,
			LogSoon:        s.observed.LogSoon,
			Refused:        s.observed.Refuse,
			RefusalPage:    s.RefusalPage,
			Slots:          s.slots,
			AltSvc:         altSvc,
			DrainFor:       cmp.Or(s.drainFor, bridge.DefaultDrainFor),
			Shared: conn.Shared{Gate: s.gate, Limits: conn.Limits{
				ReadStall:  orDefault(s.ReadStallTimeout, defaultStall),
				WriteStall: orDefault(s.WriteStallTimeout, defaultStall),
			}},
		},
	}
	if cfg.Head.HeadBytes < 0 {
		cfg.Head.HeadBytes = 1 << 30
	}
	if cfg.Head.Fields < 0 {
		cfg.Head.Fields = 1 << 30
	}
	p := s.protocols()
	cfg.Only, cfg.Preface = !p.HTTP1(), p.UnencryptedHTTP2()
	if p.HTTP2() || p.UnencryptedHTTP2() {
		second := s.http2Config(cfg)
		cfg.Second = func(of *bridge.Client, s conn.Secured) conn.Session {
			return second.New(of.Link, of, s)
		}
	}
	return cfg
}

// queueLength is how many requests may wait for MaxHandlers.
func (s *Server) queueLength() int {
	if s.QueueLength != 0 {
		return max(s.QueueLength, 0)
	}
	return s.MaxHandlers
}

// maxConns is the Gate's limit.
func (s *Server) maxConns() int {
	if s.MaxConns != 0 {
		return s.MaxConns
	}
	return loop.DefaultConns()
}

// limitOfConns names what maxConns comes from.
func (s *Server) limitOfConns() string {
	if s.MaxConns != 0 {
		return "MaxConns"
	}
	return sys.Limits().String()
}

// httpServer returns the value of http.ServerContextKey: programs assert its
// type and read its fields. It is created at its first use. Functions
// registered on it with RegisterOnShutdown are called, and its Shutdown begins
// the Server's, for which it does not wait.
func (s *Server) httpServer() *http.Server {
	s.mirrorOnce.Do(func() { s.mirror.Store(s.asHTTP()) })
	return s.mirror.Load()
}

func (s *Server) asHTTP() *http.Server {
	m := &http.Server{
		Addr: s.Addr, Handler: s.Handler, DisableGeneralOptionsHandler: s.DisableGeneralOptionsHandler,
		TLSConfig: s.TLSConfig, ReadTimeout: s.ReadTimeout, ReadHeaderTimeout: s.ReadHeaderTimeout,
		WriteTimeout: s.WriteTimeout, IdleTimeout: s.IdleTimeout, MaxHeaderBytes: s.MaxHeaderBytes,
		ConnState: s.ConnState, ErrorLog: s.ErrorLog, BaseContext: s.BaseContext, ConnContext: s.ConnContext,
		TLSNextProto: s.TLSNextProto, HTTP2: s.HTTP2, Protocols: s.Protocols,
	}
	m.RegisterOnShutdown(func() {
		if !s.stopping.Load() { // otherwise Shutdown calls it
			s.shutdown(context.Background(), nil)
		}
	})
	return m
}

// ProxiesFrom returns a function for Server.ProxyProtocol that reports whether a peer's address
// is in one of the prefixes. Those of IPv4 may not be written as IPv6 (::ffff:10.0.0.0/104): they
// would have no address. Peers of unix sockets are in none.
func ProxiesFrom(prefixes ...netip.Prefix) func(l net.Listener, peer netip.Addr) bool {
	prefixes = slices.Clone(prefixes)
	return func(_ net.Listener, peer netip.Addr) bool {
		return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(peer) })
	}
}

// proxied is ProxyProtocol for the peers of a listener; nil without it.
func (s *Server) proxied(l net.Listener) func(peer string) bool {
	f := s.ProxyProtocol
	if f == nil {
		return nil
	}
	return func(peer string) (yes bool) {
		var addr netip.Addr
		if ap, err := netip.ParseAddrPort(peer); err == nil {
			addr = ap.Addr().Unmap().WithZone("")
		}
		exec.Call(func() { yes = f(l, addr) }, func(e exec.End) {
			if v, report := e.Panic(); report {
				s.logf("chert: panic of ProxyProtocol for %s: %v\n%s", peer, v, exec.Stack())
			}
		})
		return yes
	}
}
