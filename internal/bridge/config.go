package bridge

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
)

// Config is what connections need to know of their server. It is immutable
// once a connection exists.
type Config struct {
	// Handler points to the server's field, which tests change while the
	// server runs; net/http looks at it with each request too. Nil there is
	// http.DefaultServeMux.
	Handler *http.Handler
	// Placement says where handlers on loops run; Places what is known of them by
	// the requests' targets, Routes by the patterns of a router that names them.
	Placement      Placement
	Places, Routes *place.Table
	// DirectLate: direct handlers may need proof, since one has once been late.
	DirectLate atomic.Bool
	// ReuseRequests keeps what requests are made of for others.
	ReuseRequests bool
	// GeneralOptions answers "OPTIONS *" without the handler.
	GeneralOptions bool
	// ReadTimeout and WriteTimeout are http.Server's; 0 is none.
	ReadTimeout, WriteTimeout time.Duration
	// LocalAddr is that of all connections on loops; nil if they differ, as on
	// a listener for all of a host's addresses.
	LocalAddr net.Addr
	// BaseContext is the parent of every request's context. Never nil.
	BaseContext context.Context
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	ConnState   func(net.Conn, http.ConnState)
	// HTTPServer is what http.ServerContextKey gives. Any goroutine calls it.
	HTTPServer func() *http.Server
	// KeepAlives reports whether connections may be kept now.
	KeepAlives func() bool
	// Stopping is closed when the server begins to stop; see StoppingKey.
	Stopping <-chan struct{}
	Logf     func(format string, args ...any)
	// Refused is told of requests that are refused without the handler, nil for
	// nobody. head is what has come of the request. It does not wait.
	Refused func(peer string, status int, reason string, head []byte)
	// Slots bound how many handlers run at once; nil for no bound.
	Slots *conn.Semaphore
	// DrainFor bounds how long the rest of a body is read that nobody wants.
	DrainFor time.Duration
	// Shared is for connections on loops.
	Shared conn.Shared

	locals locals
}

// locals keeps the local addresses of connections: there are few, and idle
// connections share them. All methods may be called concurrently.
type locals struct {
	mu   sync.RWMutex
	seen map[netip.AddrPort]net.Addr
}

// maxLocals bounds what locals keeps, should a host have very many addresses.
const maxLocals = 1024

// LocalAddrOf is the local address of a connection on a loop.
func (cfg *Config) LocalAddrOf(fd int) net.Addr {
	if cfg.LocalAddr != nil {
		return cfg.LocalAddr
	}
	a := sys.LocalAddr(fd)
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return a
	}
	key := tcp.AddrPort()
	l := &cfg.locals
	l.mu.RLock()
	same, ok := l.seen[key]
	l.mu.RUnlock()
	if ok {
		return same
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = make(map[netip.AddrPort]net.Addr)
	}
	if len(l.seen) < maxLocals {
		l.seen[key] = a
	}
	return a
}

// maxDrain is how much of an unread body is read to keep the connection;
// net/http's value.
const maxDrain = 256 << 10

// DefaultDrainFor is Config.DrainFor as a rule.
const DefaultDrainFor = 5 * time.Second
