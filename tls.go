package chert

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/h1"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/tlsio"
)

// ListenAndServeTLS is ListenAndServe with TLS; see ServeTLS.
func (s *Server) ListenAndServeTLS(certFile, keyFile string) error {
	l, err := s.listenAddr(":https")
	if err != nil {
		return err
	}
	defer l.Close()
	return s.ServeTLS(l, certFile, keyFile)
}

// ServeTLS is Serve with TLS on the connections of l. The files may be empty if
// TLSConfig has certificates. ALPN offers HTTP/2 and HTTP/1.1, if Protocols permits
// them, and the protocols in TLSNextProto and TLSConfig.NextProtos. Connections on
// event loops have a goroutine during the handshake, and none afterwards.
// TLSConfig.CipherSuites without what HTTP/2 requires is an error, as in net/http,
// unless HTTP2.PermitProhibitedCipherSuites is set.
//
// Serve on a listener of tls.NewListener serves TLS too, with a goroutine for
// each connection.
func (s *Server) ServeTLS(l net.Listener, certFile, keyFile string) error {
	cfg := &tls.Config{}
	if s.TLSConfig != nil {
		cfg = s.TLSConfig.Clone()
	}
	cfg.NextProtos = s.nextProtos(cfg.NextProtos)
	if err := s.checkCiphers(cfg); err != nil {
		return err
	}
	s.guardKeyLog(cfg)
	if get := cfg.GetConfigForClient; get != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			c, err := get(hello)
			if c != nil && c.KeyLogWriter != nil {
				c = c.Clone() // tickets are sealed with the keys of cfg, unless c has its own
				s.guardKeyLog(c)
			}
			return c, err
		}
	}
	if len(cfg.Certificates) == 0 && cfg.GetCertificate == nil && cfg.GetConfigForClient == nil ||
		certFile != "" || keyFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return err
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return s.serve(&serving{l: tls.NewListener(l, cfg), below: l, tls: cfg, stop: make(chan struct{})})
}

// errCiphers is net/http's, word for word.
var errCiphers = errors.New("http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher " +
	"(need at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)")

// checkCiphers returns an error if the cipher suites of cfg, which offers the protocols of nextProtos, do not
// suffice for HTTP/2 over TLS 1.2 (RFC 9113 section 9.2.2): its clients would be refused after their handshakes.
func (s *Server) checkCiphers(cfg *tls.Config) error {
	_, own := s.TLSNextProto["h2"]
	permitted := s.HTTP2 != nil && s.HTTP2.PermitProhibitedCipherSuites
	if own || permitted || cfg.CipherSuites == nil || cfg.MinVersion >= tls.VersionTLS13 ||
		!slices.Contains(cfg.NextProtos, "h2") ||
		slices.Contains(cfg.CipherSuites, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) ||
		slices.Contains(cfg.CipherSuites, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256) {
		return nil
	}
	return errCiphers
}

// guardKeyLog replaces the KeyLogWriter of cfg, if it has one.
func (s *Server) guardKeyLog(cfg *tls.Config) {
	if cfg.KeyLogWriter != nil {
		cfg.KeyLogWriter = keyLog{cfg.KeyLogWriter, s.observed.LogSoon}
	}
}

// keyLog is a KeyLogWriter whose panic, or end of the goroutine, fails the handshake alone. crypto/tls calls it with a
// lock of all configurations, which it does not release then: later handshakes that log keys would wait for ever.
// So w has a goroutine of its own. The log may panic as well, or block, so logf is not to call it there.
type keyLog struct {
	w    io.Writer
	logf func(format string, args ...any)
}

var errKeyLog = errors.New("KeyLogWriter has not returned")

// Write implements io.Writer.
func (k keyLog) Write(p []byte) (n int, err error) {
	err = errKeyLog
	done := make(chan struct{})
	go func() {
		defer close(done)
		exec.Call(func() { n, err = k.w.Write(p) }, func(e exec.End) {
			if v, ok := e.Panic(); ok {
				k.logf("http: panic of KeyLogWriter: %v\n%s", v, exec.Stack())
			}
		})
	}()
	<-done
	return n, err
}

// nextProtos returns the protocols that ALPN offers: those in want, and the versions
// of HTTP that the server supports. A version that it does not support is not offered
// even if want has it.
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

// defaultHandshakeTimeout bounds a TLS handshake if the server's timeouts do not.
const defaultHandshakeTimeout = 10 * time.Second

// handshakeTimeout returns the shortest of the timeouts that could end a first
// request, as net/http does, which has none if they are not set.
func (s *Server) handshakeTimeout() time.Duration {
	d := time.Duration(0)
	for _, t := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout} {
		if t > 0 && (d == 0 || t < d) {
			d = t
		}
	}
	if d == 0 {
		d = defaultHandshakeTimeout
	}
	return d
}

// handshakes returns an h1.Config.Handshake for TLS with cfg.
func (s *Server) handshakes(cfg *tls.Config, c *h1.Config) func(conn.Link, *h1.Session, int64) (conn.Session, int64) {
	t := &tlsio.Config{
		TLS:     cfg,
		Timeout: s.handshakeTimeout(),
		Bound:   &s.shaking,
		Failed: func(l conn.Link, tc *tls.Conn, err error) []byte {
			return s.handshakeFailed(l.Peer().RemoteAddr, l.NetConn().LocalAddr(), tc, err)
		},
		Shaken: s.observed.Shaken,
		Other: func(u tlsio.Upper, tc *tls.Conn, state *tls.ConnectionState, take func() error) bool {
			return s.nextProto(u.(*h1.Session), tc, state, &c.Shared.Limits, take)
		},
	}
	protos := s.protocols()
	if _, own := s.TLSNextProto["h2"]; protos.HTTP2() && !own {
		t.Second = func(u tlsio.Upper, s conn.Secured) conn.Session {
			return c.Second(&u.(*h1.Session).Client, s)
		}
	}
	return func(l conn.Link, h *h1.Session, now int64) (conn.Session, int64) {
		return t.Handshake(l, h, now), t.Deadline(now)
	}
}

// handshakeFailed logs err, and returns the response for a client that speaks
// HTTP without TLS. tc may be nil.
func (s *Server) handshakeFailed(peer string, local net.Addr, tc *tls.Conn, err error) (answer []byte) {
	var state tls.ConnectionState
	if tc != nil {
		state = tc.ConnectionState()
	}
	s.shakeFailed(peer, local, &state, err)
	if err == tlsio.ErrPlain {
		s.observed.Refuse(peer, local, http.StatusBadRequest, err.Error(), nil)
		answer = plainRefusal()
	}
	return answer
}

// shakeFailed counts a handshake that has failed with err, and logs it. state is what has been
// negotiated.
func (s *Server) shakeFailed(peer string, local net.Addr, state *tls.ConnectionState, err error) {
	s.observed.ShakeFailed(err)
	s.observed.LogSoon("http: TLS handshake error from %s: %v%s", peer, err, wanted(local, state))
}

// maxLoggedName is the longest name of the DNS in text (RFC 1035 section 2.3.4). A
// client may send 64 KiB of anything (RFC 6066 section 3).
const maxLoggedName = 253

// wanted returns what is logged about the host that the client of a failed handshake
// wanted: the server name, or the address that it connected to. It is empty if the
// failure came before a version was selected, as net/http's line is.
func wanted(local net.Addr, state *tls.ConnectionState) string {
	switch name := state.ServerName; {
	case len(name) > maxLoggedName:
		return fmt.Sprintf(" (server name %q...)", name[:maxLoggedName])
	case name != "":
		return fmt.Sprintf(" (server name %q)", name)
	case state.Version != 0 && local != nil:
		return fmt.Sprintf(" (to %s)", local)
	}
	return ""
}

// plainRefusal returns net/http's response to a client that speaks HTTP without
// TLS.
func plainRefusal() []byte {
	const text = "Client sent an HTTP request to an HTTPS server.\n"
	b := bridge.AppendDate([]byte("HTTP/1.0 400 Bad Request\r\n"), sys.Nanotime())
	const rest = "Content-Length: %d\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s"
	return fmt.Appendf(b, rest, len(text), text)
}

// nextProto serves a connection of a loop by TLSNextProto, and reports whether that
// has an entry for it. From then on the connection is on a goroutine.
func (s *Server) nextProto(
	h *h1.Session, tc *tls.Conn, state *tls.ConnectionState, limits *conn.Limits, take func() error,
) bool {
	next := s.TLSNextProto[state.NegotiatedProtocol]
	if next == nil {
		return false
	}
	nc := &takenConn{Conn: tc}
	t := s.observed.Shard()
	c := stream.New(nc, limits, t, func(c *stream.Conn) { s.untrack(c) })
	c.Lend()
	s.track(c) // before the loop forgets the connection: Shutdown waits for one or the other
	defer c.Gone()
	peer := h.Link.Peer().RemoteAddr
	s.gate.Continue(peer)
	defer s.gate.Leave(peer)
	if err := take(); err != nil {
		return false
	}
	defer func() { // also after runtime.Goexit
		tc.Close()
		t.Add(false, tally.Closed, 1)
		h.Closed(false)
	}()
	t.Add(false, tally.Closed, ^uint64(0)) // the loop counts it as closed, which it is not
	nc.take()
	h.NextProto(tc, next)
	return true
}

// takenConn is a connection that moves from a loop to TLSNextProto. Until it has
// moved, its loop closes it.
type takenConn struct {
	*tls.Conn
	mu            sync.Mutex
	taken, closed bool
}

func (c *takenConn) take() {
	c.mu.Lock()
	c.taken = true
	closed := c.closed
	c.mu.Unlock()
	if closed {
		c.NetConn().Close()
	}
}

// Close implements net.Conn. Only Server.Close calls it, which does not wait: that of TLS would, for
// a Read that sends an alert to a client that accepts nothing, and for room for its own.
func (c *takenConn) Close() error {
	c.mu.Lock()
	c.closed = true
	taken := c.taken
	c.mu.Unlock()
	if !taken {
		return nil
	}
	return c.NetConn().Close()
}

// SetReadDeadline implements net.Conn: there is none, as another protocol is
// spoken.
func (c *takenConn) SetReadDeadline(time.Time) error { return nil }
