package accept

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/chert-http/chert/internal/bridge/h1"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/observe"
)

// Packets serves HTTP over UDP beside a listener of TCP connections: HTTP/3. It is an interface so
// that only programs that use it have the code.
type Packets interface {
	// OpenPackets opens the UDP socket of an address.
	OpenPackets(h *PacketHost, addr *net.TCPAddr) (PacketServer, error)
}

// A PacketServer has an open UDP socket.
type PacketServer interface {
	// Serve begins to accept connections. It does not wait.
	Serve()
	// Close stops accepting connections. When those that there are have ended, the socket is
	// closed.
	Close()
	// AltSvc is the value of the field that tells clients of the socket (RFC 7838).
	AltSvc() string
}

// PacketHost is what a PacketServer needs of its server.
type PacketHost struct {
	TLS  *tls.Config
	Gate *loop.Gate
	// Config is of all connections of the Serve call, whatever they speak.
	Config func() *h1.Config
	// What an http.HTTP2Config says of streams and of their windows, which bound HTTP/3 too.
	MaxStreams               int
	StreamWindow, ConnWindow uint32
	MaxWindow                uint32 // how large both may become; 0: not larger
	ExtendedConnect          bool
	CountError               func(name string)

	Observed         *observe.Server
	Logf             func(format string, args ...any)
	Seek             func() // has an idle connection give way
	Track, Untrack   func(conn.Driven)
	HandshakeTimeout time.Duration
}
