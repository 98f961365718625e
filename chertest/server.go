package chertest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert"
)

// Server is an HTTP server on a port of the loopback interface that the system
// chose. One that is not made by NewUnstartedServer needs a Listener and a
// Config. Its methods may be called concurrently, except for Start and
// StartTLS; its fields must not be changed after these.
type Server struct {
	// URL is "http://127.0.0.1:port", or https, without a slash at the end.
	// Empty until the server is started.
	URL string
	// Listener is the listener that the server accepts from. It may be replaced before Start.
	Listener net.Listener
	// TLS, if set before StartTLS, is cloned as its configuration. Afterwards
	// it is the configuration in use.
	TLS *tls.Config
	// Config may be changed or replaced before Start.
	Config *chert.Server
	// EnableHTTP2 has StartTLS offer HTTP/2, and Client use it. Without it the server
	// speaks HTTP/1.1 alone, unless Config.Protocols or TLS.NextProtos say otherwise.
	EnableHTTP2 bool

	certificate *x509.Certificate
	client      *http.Client

	mu      sync.Mutex
	changed sync.Cond // one of the following has; L is &mu once started
	closed  bool
	serving bool
	// conns contains every connection that is neither closed nor hijacked.
	// Close waits until it is empty.
	conns map[net.Conn]http.ConnState
}

// NewServer starts a server. The caller should call Close when finished.
func NewServer(handler http.Handler) *Server {
	s := NewUnstartedServer(handler)
	s.Start()
	return s
}

// NewTLSServer starts a server that speaks TLS. The caller should call Close
// when finished.
func NewTLSServer(handler http.Handler) *Server {
	s := NewUnstartedServer(handler)
	s.StartTLS()
	return s
}

// NewUnstartedServer returns a server that listens and does not serve yet. The
// caller may change it, then call Start or StartTLS, and should call Close when
// finished.
func NewUnstartedServer(handler http.Handler) *Server {
	s := &Server{Config: &chert.Server{Handler: handler}}
	var err error
	if s.Listener, err = s.Config.Listen("tcp", "127.0.0.1:0"); err != nil {
		var err6 error
		if s.Listener, err6 = s.Config.Listen("tcp6", "[::1]:0"); err6 != nil {
			panic(fmt.Sprintf("chertest: cannot listen on the loopback: %v", err))
		}
	}
	return s
}

// Start starts a server that NewUnstartedServer made.
func (s *Server) Start() {
	s.prepare()
	s.client = &http.Client{Transport: s.transport(nil)}
	s.URL = "http://" + s.Listener.Addr().String()
	s.serve(func() error { return s.Config.Serve(s.Listener) })
}

// StartTLS starts TLS on a server that NewUnstartedServer made.
func (s *Server) StartTLS() {
	s.prepare()
	if s.TLS != nil {
		s.TLS = s.TLS.Clone()
	} else {
		s.TLS = new(tls.Config)
	}
	if s.Config.Protocols == nil && s.Config.TLSNextProto == nil {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP1(true)
		s.Config.Protocols.SetHTTP2(s.EnableHTTP2 || slices.Contains(s.TLS.NextProtos, "h2"))
	}
	if len(s.TLS.Certificates) == 0 {
		s.TLS.Certificates = []tls.Certificate{selfSigned()}
	}
	var err error
	if s.certificate, err = x509.ParseCertificate(s.TLS.Certificates[0].Certificate[0]); err != nil {
		panic(fmt.Sprintf("chertest: TLS.Certificates: %v", err))
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.certificate)
	s.client = &http.Client{Transport: s.transport(&tls.Config{RootCAs: roots})}
	s.URL = "https://" + s.Listener.Addr().String()
	// Not Serve with a TLS listener: that would hide the socket from the
	// server, which then could not choose its engine.
	s.Config.TLSConfig = s.TLS
	s.serve(func() error { return s.Config.ServeTLS(s.Listener, "", "") })
}

func (s *Server) prepare() {
	if s.URL != "" {
		panic("chertest: the server was started already")
	}
	s.changed.L = &s.mu
	s.conns = make(map[net.Conn]http.ConnState)
}

func (s *Server) serve(run func() error) {
	hook := s.Config.ConnState
	s.Config.ConnState = func(c net.Conn, state http.ConnState) { s.note(c, state, hook) }
	s.serving = true
	go func() {
		// Serving ends when the listener closes; its error says nothing new.
		_ = run()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.serving = false
		s.changed.Broadcast()
	}()
}

// note keeps track of the connections. It may run on an event loop, which the
// lock does not delay: no goroutine waits while holding it.
func (s *Server) note(c net.Conn, state http.ConnState, hook func(net.Conn, http.ConnState)) {
	over := state == http.StateClosed || state == http.StateHijacked
	if !over {
		s.mu.Lock()
		// The hook is also called for a hijacked connection, by who serves it: x/net's h2c
		// does. The end of that is not told.
		_, known := s.conns[c]
		if known = known || state == http.StateNew; known {
			s.conns[c] = state
			s.changed.Broadcast()
		}
		late := known && s.closed && state != http.StateActive
		s.mu.Unlock()
		if late {
			c.Close()
		}
	}
	if hook != nil {
		hook(c, state)
	}
	if over { // after the hook, so that Close waits for it
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
		s.changed.Broadcast()
	}
}

// Close stops accepting, closes the connections without a request, and blocks
// until the requests under way have been answered. A hijacked connection
// belongs to its handler and is neither closed nor awaited. It also closes the
// idle connections of the server's client and of http.DefaultTransport.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	var unused []net.Conn
	for c, state := range s.conns {
		if state != http.StateActive {
			unused = append(unused, c)
		}
	}
	s.mu.Unlock()
	if first {
		s.Listener.Close()
		s.Config.SetKeepAlivesEnabled(false)
		defer time.AfterFunc(5*time.Second, s.complain).Stop()
	}
	for _, c := range unused {
		c.Close()
	}
	new(http.Client).CloseIdleConnections() // http.DefaultTransport's
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.mu.Lock()
	for s.serving || len(s.conns) > 0 {
		s.changed.Wait()
	}
	s.mu.Unlock()
	// The rest has not reached ConnState: TLS handshakes.
	s.Config.Close()
}

// complain logs the connections that a hanging Close waits for.
func (s *Server) complain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for c, state := range s.conns {
		fmt.Fprintf(&b, "\n\t%v in state %v", c.RemoteAddr(), state)
	}
	log.Printf("chertest: Close has waited 5 s for connections:%s", &b)
}

// CloseClientConnections closes all connections, also those that serve a
// request, except for hijacked ones. What a handler that calls it sends at once
// may still arrive.
func (s *Server) CloseClientConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unused []net.Conn
	for c, state := range s.conns {
		// It only asks the server to close and makes no callback meanwhile.
		c.Close()
		if state != http.StateActive {
			unused = append(unused, c)
		}
	}
	// A handler may take any time to notice; those without one end at once.
	for _, c := range unused {
		for s.has(c) {
			s.changed.Wait()
		}
	}
}

// has reports whether c is still one without a handler. mu is held.
func (s *Server) has(c net.Conn) bool {
	state, ok := s.conns[c]
	return ok && state != http.StateActive
}

// Certificate returns the server's certificate, nil without TLS.
func (s *Server) Certificate() *x509.Certificate { return s.certificate }

// Client returns a client, nil before the start, that trusts the server's certificate. It connects to
// the server for example.com and its subdomains too, and Close closes its idle
// connections.
func (s *Server) Client() *http.Client { return s.client }
