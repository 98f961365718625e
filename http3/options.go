package http3

import (
	"cmp"
	"crypto/rand"
	"time"

	"github.com/chert-http/chert/internal/accept"
)

// Options configure HTTP/3. The zero value is usable.
type Options struct {
	// Port is the UDP port that clients are told of, if it is another than the server's own: a
	// container's ports may be mapped. Default the server's own, also if it is negative.
	Port int
	// MaxAge is how long clients may remember that the server speaks HTTP/3. Default 24 hours, also if it is negative.
	MaxAge time.Duration
	// MaxConns bounds the open QUIC connections at each of the server's addresses, which count for
	// Server.MaxConns too: an idle one takes some 70 KB, a hundred times as much as one of TCP. Beyond
	// it a client is refused, and browsers go on over TCP, while idle connections give way to those
	// that come later. Default a quarter of Server.MaxConns, 64 at least; negative: no limit beside
	// Server.MaxConns.
	MaxConns int
	// Secret is what the keys are made of that let a client validate its address and, after a
	// restart, end a connection at once that the server does not know any more. Several instances
	// of a server should have the same. Default a random one.
	Secret *[32]byte
	// EarlyData has requests run that a client that comes back sends before the TLS handshake has
	// ended (0-RTT): those of the methods GET, HEAD and OPTIONS without a body, from an address that
	// the client has shown to be its own within a day; others wait. In their handlers
	// http.Request.TLS.HandshakeComplete is false. An attacker that reads and sends packets on the
	// client's way can have such a request run a second time (RFC 8470), so handlers of these methods
	// must change nothing, or be protected by middleware.NoEarlyData. Of several instances only the one
	// that a client was at last gives it early data. A TLSConfig.GetConfigForClient must return the
	// same Config for the same host.
	EarlyData bool
}

// HTTP3 is HTTP/3 for a chert.Server, or for several. It is safe for concurrent use.
type HTTP3 struct {
	o    Options
	made bool // the secret is no other instance's

	frugal bool // h3.Config.Frugal, of tests
}

var _ accept.Packets = (*HTTP3)(nil)

// New returns HTTP/3 for a Server's field of that name. Nil means the default options.
func New(o *Options) *HTTP3 {
	h := new(HTTP3)
	if o != nil {
		h.o = *o
	}
	h.o.Port, h.o.MaxAge = max(h.o.Port, 0), cmp.Or(max(h.o.MaxAge, 0), 24*time.Hour)
	if h.o.Secret == nil {
		h.o.Secret, h.made = new([32]byte), true
		rand.Read(h.o.Secret[:])
	}
	return h
}
