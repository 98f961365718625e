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
	// OpenPackets opens the UDP socket of a listener's address. The result is nil if the listener
	// is to have none. upgrades: processes pass the socket to each other, as those of package
	// successor do.
	OpenPackets(l net.Listener, upgrades bool) (PacketServer, error)
}

// A PacketServer has an open UDP socket.
type PacketServer interface {
	// Serve begins to accept connections, or does so when this process may. It does not wait.
	Serve(h *PacketHost) error
	// Close stops accepting connections. When those that there are have ended, the socket is
	// closed.
	Close()
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

	// Tell tells clients of TCP connections of the socket, by the value of the field Alt-Svc (RFC
	// 7838).
	Tell func(value string)

	Observed         *observe.Server
	Logf             func(format string, args ...any)
	Seek             func() // has an idle connection give way
	Track, Untrack   func(conn.Driven)
	HandshakeTimeout time.Duration
	// HandshakeFailed counts and logs a handshake that has failed with err.
	HandshakeFailed func(peer string, local net.Addr, state *tls.ConnectionState, err error)
	// Hold has Shutdown wait for something that is not tracked yet, a handshake, until release is
	// called.
	Hold func() (release func())
}
