package http3

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/bridge/h3"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/observe"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/successor"
	"github.com/chert-http/chert/internal/tally"
)

// server is a UDP socket and the connections that come on it.
type server struct {
	h         *HTTP3
	secret    [32]byte
	socket    *successor.Packets
	relay     *relay // of the socket
	idKey     idKey
	host      *accept.PacketHost // from Serve on
	places    *accept.Places     // from Serve on
	transport *quic.Transport    // from begin on
	listener  listener
	tickets   *tickets // nil without early data
	config    func() *h3.Config

	shaking atomic.Int64 // connections whose handshakes have not ended
	left    atomic.Bool  // a successor reads the socket

	mu       sync.Mutex
	open     int // connections, those whose handshakes have not ended too
	sessions map[*h3.Session]struct{}
	begun    bool          // the socket is read
	closed   chan struct{} // Close was called
	none     chan struct{} // that, and open is 0
	ended    chan struct{} // the socket is closed
	next     *net.UnixConn // on which a successor is to pass packets on, while it starts
}

// setKeys makes the keys of the transport.
func (s *server) setKeys() error {
	for _, key := range []struct {
		label string
		set   func(key []byte)
	}{
		{"chert stateless reset", func(k []byte) { s.transport.StatelessResetKey = (*quic.StatelessResetKey)(k) }},
		{"chert address token", func(k []byte) { s.transport.TokenGeneratorKey = (*quic.TokenGeneratorKey)(k) }},
	} {
		k, err := hkdf.Key(sha256.New, s.secret[:], nil, key.label, 32)
		if err != nil {
			return err
		}
		key.set(k)
	}
	return nil
}

// tlsConfig is a server's configuration for QUIC: TLS 1.3, and h3 alone by ALPN.
func (s *server) tlsConfig() *tls.Config {
	of, t := s.host.TLS, s.tickets
	c := of.Clone()
	c.NextProtos = []string{"h3"}
	c.MinVersion = tls.VersionTLS13
	if t != nil {
		t.keep(c, c)
	}
	s.guard(c)
	get := guarded(s, of.GetConfigForClient)
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		hello.Context().Value(placeKey{}).(*entry).greet(hello)
		if get == nil {
			return nil, nil
		}
		site, err := get(hello)
		if err != nil || site == nil {
			return nil, err
		}
		own := site.Clone()
		if t != nil {
			t.keep(own, site)
		}
		s.guard(own)
		own.NextProtos, own.MinVersion, own.GetConfigForClient = c.NextProtos, c.MinVersion, nil
		return own, nil
	}
	return c
}

// maxIdle is the transport's limit of a connection without IdleTimeout: QUIC has no other way to
// learn that a client has gone.
const maxIdle = 10 * time.Minute

func (s *server) quicConfig() *quic.Config {
	h := s.host
	c := &quic.Config{
		HandshakeIdleTimeout:           h.HandshakeTimeout / 2, // of which twice that may be used
		MaxIdleTimeout:                 maxIdle,
		InitialStreamReceiveWindow:     uint64(h.StreamWindow),
		MaxStreamReceiveWindow:         uint64(max(h.StreamWindow, h.MaxWindow)),
		InitialConnectionReceiveWindow: uint64(h.ConnWindow),
		MaxConnectionReceiveWindow:     uint64(max(h.ConnWindow, h.MaxWindow)),
		MaxIncomingStreams:             int64(h.MaxStreams),
		MaxIncomingUniStreams:          h3.MaxUni,
		RequireStreamCreditRelease:     true,
	}
	return c
}

// makeConfig is at the first connection, as over TCP.
func (s *server) makeConfig() *h3.Config {
	cfg := s.host.Config()
	bytes, fields := cfg.Head.Get()
	return &h3.Config{
		Config: &cfg.Config, List: pack.Limits{Bytes: bytes, Fields: fields}, MaxStreams: s.host.MaxStreams,
		HeadTime: cfg.HeadTime, IdleTime: cfg.IdleTime,
		ExtendedConnect: s.host.ExtendedConnect, CountError: s.host.CountError, Frugal: s.h.frugal,
	}
}

// maxShaking is above how many handshakes a client has to show that its address is its own.
const maxShaking = 256

// doubts reports whether a client must show that its address is its own, at the cost of a round
// trip, before the server keeps anything of it. When a successor has taken over none begins here
// that has not been asked to.
func (s *server) doubts(net.Addr) bool {
	return s.shaking.Load() >= maxShaking || s.left.Load() || s.places.Crowded()
}

var errNoPlace = errors.New("too many connections")

// placeKey is the key of a connection's entry in the gate.
type placeKey struct{}

// entry is a connection in the gate. Its client counts as one of an address when the handshake has
// shown that the address is the client's own.
type entry struct {
	release func() // of the host's Hold

	mu      sync.Mutex
	counts  string
	shaking bool
	left    bool
	asked   string   // the name in its ClientHello
	way     net.Conn // has the addresses of that; nil before it has come

	began    time.Time // immutable, as verified
	verified bool      // the client had shown its address when the connection began
}

// enter is called for a connection that begins.
func (s *server) enter(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	if !s.places.Enter() {
		s.host.Observed.Refuse(info.RemoteAddr.String(), s.socket.LocalAddr(), 0, observe.NoRoom, nil)
		return nil, errNoPlace
	}
	s.mu.Lock()
	s.open++
	s.mu.Unlock()
	s.shaking.Add(1)
	s.host.Observed.Shaking(1)
	e := &entry{
		began: time.Now(), verified: info.AddrVerified, shaking: true, release: sync.OnceFunc(s.host.Hold()),
	}
	ctx = context.WithValue(ctx, placeKey{}, e)
	context.AfterFunc(ctx, func() { s.leave(e, context.Cause(ctx)) })
	return ctx, nil
}

// some returns up to n of the sessions, in a random order.
func (s *server) some(n int) (some []*h3.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.sessions {
		if len(some) == n {
			break
		}
		some = append(some, session)
	}
	return some
}

// shaken ends a handshake, and reports whether it was under way.
func (s *server) shaken(e *entry) (was bool) {
	e.mu.Lock()
	was = e.shaking
	e.shaking = false
	e.mu.Unlock()
	if was {
		s.shaking.Add(-1)
		s.host.Observed.Shaking(-1)
	}
	return was
}

// leave ends a connection, because of err.
func (s *server) leave(e *entry, err error) {
	if s.shaken(e) {
		s.shakeFailed(e, err)
	}
	e.mu.Lock()
	counts := e.counts
	e.left = true
	e.mu.Unlock()
	s.places.Leave(counts)
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
	e.release()
	s.endIfLast()
}

// admit counts a client that has shown its address, or reports that it has too many connections.
func (s *server) admit(e *entry, peer string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left || !s.host.Gate.Admit(peer) {
		return e.left
	}
	e.counts = peer
	return true
}

// serve serves a connection. What it needs to begin is in another function, as its own frame stays for
// as long as the connection: with more in it, a stack that has grown would be too full to shrink.
func (s *server) serve(c *quic.Conn) {
	if session := s.session(c); session != nil {
		session.Serve()
	}
}

// session makes the session of a connection when that can be served, and otherwise returns nil.
//
//go:noinline
func (s *server) session(c *quic.Conn) *h3.Session {
	peer := c.RemoteAddr().String()
	e := c.Context().Value(placeKey{}).(*entry)
	state, ok := s.ready(c, e)
	if !ok {
		return nil
	}
	early := !state.HandshakeComplete
	if !early {
		s.shaken(e)
	}
	if !s.admit(e, peer) {
		s.host.Observed.Refuse(peer, c.LocalAddr(), http.StatusServiceUnavailable, observe.NoShare, nil)
		c.CloseWithError(quic.ApplicationErrorCode(codec.ExcessiveLoad), "too many connections of an address")
		return nil
	}
	if !early {
		s.host.Observed.Shaken(&state, time.Since(e.began))
	}
	t := s.host.Observed.Shard()
	t.Add(false, tally.Accepted, 1)
	session := s.config().New(connection{c, &state}, t, func(session *h3.Session) {
		t.Add(false, tally.Closed, 1)
		s.mu.Lock()
		delete(s.sessions, session)
		s.mu.Unlock()
		s.host.Untrack(session)
	})
	if early {
		session.Early()
		go s.awaitShaken(c, e, session)
	}
	s.mu.Lock()
	s.sessions[session] = struct{}{}
	s.mu.Unlock()
	s.host.Track(session)
	e.release()
	if s.left.Load() {
		session.Drain()
	}
	return session
}
