package http3_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"

	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// relay passes datagrams between a client and a server, and can keep some of the client's.
type relay struct {
	t      testing.TB
	client *net.UDPConn // the client's packets come here
	server *net.UDPConn

	mu    sync.Mutex
	peer  net.Addr
	holds func(p []byte) bool
	held  [][]byte
	first [][]byte // the client's datagrams without a packet that belongs to the handshake's end
	mutes bool     // said has what the server sends
	said  [][]byte
	heard int // datagrams of the server
}

// newRelay relays to a server at addr. The server sees 127.0.0.1 as its client.
func newRelay(t testing.TB, addr string) *relay {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, holds: func([]byte) bool { return false }}
	if r.server, err = net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, to); err != nil {
		t.Fatal(err)
	}
	if r.client, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		r.client.Close()
		r.server.Close()
		all.Wait()
	})
	all.Go(r.toServer)
	all.Go(func() {
		var b [1 << 16]byte
		for {
			n, err := r.server.Read(b[:])
			if errors.Is(err, net.ErrClosed) { // others are those of a server that has gone
				return
			}
			r.mu.Lock()
			r.heard++
			switch {
			case err != nil:
			case r.mutes:
				r.said = append(r.said, append([]byte(nil), b[:n]...))
			default:
				r.client.WriteTo(b[:n], r.peer)
			}
			r.mu.Unlock()
		}
	})
	return r
}

func (r *relay) toServer() {
	var b [1 << 16]byte
	for {
		n, from, err := r.client.ReadFrom(b[:])
		if err != nil {
			return
		}
		p := append([]byte(nil), b[:n]...)
		r.mu.Lock()
		r.peer = from
		if !completes(p) {
			r.first = append(r.first, p)
		}
		holds := r.holds(p)
		if holds {
			r.held = append(r.held, p)
		}
		r.mu.Unlock()
		if !holds {
			r.server.Write(p)
		}
	}
}

// hold keeps the client's datagrams that which selects.
func (r *relay) hold(which func(p []byte) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds, r.first = which, nil
}

// mute keeps what the server sends until unmute: until the client knows of the server's answer all that it sends is
// early.
func (r *relay) mute() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mutes = true
}

func (r *relay) unmute() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.said {
		r.client.WriteTo(p, r.peer)
	}
	r.mutes, r.said = false, nil
}

// release sends what was kept, and keeps nothing more.
func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.held {
		r.server.Write(p)
	}
	r.holds, r.held = func([]byte) bool { return false }, nil
}

// state reports whether something is kept, and whether the server has said something.
func (r *relay) state() (holds, heard bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held) > 0, r.heard > 0
}

// flight returns what the client has sent since hold without what completes its handshake.
func (r *relay) flight() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][]byte(nil), r.first...)
}

func everything([]byte) bool { return true }

// The types of packets (RFC 9000 section 17).
const (
	initialPacket = iota
	earlyPacket
	handshakePacket
	retryPacket
	shortPacket
)

// packets returns the types of the packets in a datagram.
func packets(p []byte) (kinds []int) {
	for len(p) > 0 {
		kind := int(p[0] >> 4 & 3)
		switch {
		case p[0] == 0: // a datagram may be filled with zeros
			return kinds
		case p[0]&0x80 == 0:
			return append(kinds, shortPacket)
		}
		kinds = append(kinds, kind)
		at := 6 + int(p[5])
		at += 1 + int(p[at])
		if kind == initialPacket {
			n, size, _ := quicvarint.Parse(p[at:])
			at += size + int(n)
		}
		n, size, _ := quicvarint.Parse(p[at:])
		p = p[min(at+size+int(n), len(p)):]
	}
	return kinds
}

// completes reports whether a datagram has a packet of the types without which no handshake ends.
func completes(p []byte) bool {
	kinds := packets(p)
	return slices.Contains(kinds, handshakePacket) || slices.Contains(kinds, shortPacket)
}

// hasToken reports whether a datagram begins with an Initial packet that has a token.
func hasToken(p []byte) bool {
	kinds := packets(p)
	if len(kinds) == 0 || kinds[0] != initialPacket {
		return false
	}
	at := 6 + int(p[5])
	n, _, _ := quicvarint.Parse(p[at+1+int(p[at]):])
	return n > 0
}

// hasEarly reports whether the client has sent early data since hold.
func (r *relay) hasEarly() bool {
	return slices.ContainsFunc(r.flight(), func(p []byte) bool { return slices.Contains(packets(p), earlyPacket) })
}

// returning is a client that comes back: it has a session's ticket, and a token of its address.
type returning struct {
	t     testing.TB
	relay *relay
	tr    *quic.Transport
	tls   *tls.Config
	quic  *quic.Config

	ticketed, tokened chan bool
}

// sessions and tokens tell what they are given.
type sessions struct {
	tls.ClientSessionCache
	put chan bool
}

func (s *sessions) Put(key string, state *tls.ClientSessionState) {
	s.ClientSessionCache.Put(key, state)
	if state != nil {
		s.put <- true
	}
}

type tokens struct {
	quic.TokenStore
	put chan bool
}

func (s *tokens) Put(key string, token *quic.ClientToken) {
	s.TokenStore.Put(key, token)
	s.put <- true
}

// returns makes a client that has been at the server. token: it has kept its token.
func (r *running) returns(token bool) *returning {
	r.t.Helper()
	c := &returning{t: r.t, relay: newRelay(r.t, r.addr), tr: dialer(r.t), tls: clientTLS(), quic: &quic.Config{},
		ticketed: make(chan bool, 100), tokened: make(chan bool, 100)}
	c.tls.ServerName = "example.com"
	c.tls.ClientSessionCache = &sessions{tls.NewLRUClientSessionCache(10), c.ticketed}
	c.quic.TokenStore = &tokens{quic.NewLRUTokenStore(10, 10), c.tokened}
	first := c.dial()
	if a := first.get("/first"); a.status() == "" {
		r.t.Fatalf("%+v", a)
	}
	servertest.Await(r.t, c.ticketed, "a ticket")
	servertest.Await(r.t, c.tokened, "a token")
	first.CloseWithError(0x100, "")
	if !token {
		c.quic.TokenStore = nil
	}
	if r.Server != nil { // it is not another process's
		servertest.Eventually(r.t, "the first connection has ended", func() bool { return r.Stats().Connections.Open == 0 })
	}
	return c
}

// dial is a connection on which requests are early if client and server have all for that.
func (c *returning) dial() *raw {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	conn, err := c.tr.DialEarly(ctx, c.relay.client.LocalAddr(), c.tls, c.quic)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.CloseWithError(0x100, "") })
	r := &raw{Conn: conn, t: c.t}
	r.control = r.uni(codec.StreamControl, codec.AppendSettings(nil))
	return r
}

// copier is a socket that sends copies of datagrams.
type copier struct{ *net.UDPConn }

func (r *running) copier() copier {
	r.t.Helper()
	to, err := net.ResolveUDPAddr("udp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	u, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, to)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { u.Close() })
	return copier{u}
}

func (c copier) send(flight [][]byte) {
	for _, p := range flight {
		c.Write(p)
	}
}

// answered reports whether the server answers, with its part of a handshake.
func (c copier) answered() bool {
	var b [1 << 16]byte
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	n, err := c.Read(b[:])
	return err == nil && n > 0 && b[0]&0x80 != 0
}
