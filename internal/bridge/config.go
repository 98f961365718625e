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
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
)

// Config is the configuration that a server's connections share. It is
// immutable once a connection exists.
type Config struct {
	// Handler points to the server's field, which tests change while the
	// server runs; net/http also reads it with each request. Nil there means
	// http.DefaultServeMux.
	Handler *http.Handler
	// Placement selects where handlers on loops run. Places has their records by
	// the requests' targets, Routes by the patterns that a router reports.
	Placement      Placement
	Places, Routes *place.Table
	// DirectLate: direct handlers may need proof, because one has once been late.
	DirectLate atomic.Bool
	// BodiesRead: handlers that are called ahead of bodies need them nevertheless, since one has once
	// called wire.Exchange.Body. Then none is called ahead any more.
	BodiesRead atomic.Bool
	// GeneralOptions makes the server answer "OPTIONS *" itself.
	GeneralOptions bool
	// ReadTimeout and WriteTimeout are http.Server's; 0 means none.
	ReadTimeout, WriteTimeout time.Duration
	// LocalAddr is that of all connections on loops; nil if they differ, as on
	// a listener for all of a host's addresses.
	LocalAddr net.Addr
	// BaseContext is the parent of every request's context. Never nil.
	BaseContext context.Context
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	ConnState   func(net.Conn, http.ConnState)
	// HTTPServer returns the value of http.ServerContextKey. Safe for concurrent use.
	HTTPServer func() *http.Server
	// KeepAlives reports whether connections may be kept now.
	KeepAlives func() bool
	// Stopped reports whether the server's Shutdown or Close has been called.
	Stopped func() bool
	// Stopping is closed when the server begins to stop; see StoppingKey.
	Stopping <-chan struct{}
	// Leaving, if not nil, reports whether connections are asked to end one after another,
	// before Stopping is closed.
	Leaving func() bool
	Logf    func(format string, args ...any)
	// LogSoon is Logf for what clients cause: it does not wait for a slow log, but drops lines. nil logs nothing.
	LogSoon func(format string, args ...any)
	// Refused, if not nil, is called for requests that are refused without
	// calling the handler. local is the address that the client connected to, and
	// head what has arrived of the request. It does not block.
	Refused func(peer string, local net.Addr, status int, reason string, head []byte)
	// RefusalPage, if not nil, returns the body of an answer to what Refused is called for, and
	// its media type; no body means the server's own.
	RefusalPage func(status int) (mediaType string, body []byte)
	// Slots bounds how many handlers run at once; nil means no bound.
	Slots *loop.Semaphore
	// AltSvc is that field of responses.
	AltSvc *AltSvc
	// DrainFor bounds how long the unread rest of a body is drained.
	DrainFor time.Duration
	// Shared is for connections on loops.
	Shared conn.Shared

	// locals caches the local addresses of connections: there are few, and idle
	// connections share them. localsMu guards it.
	localsMu sync.Mutex
	locals   map[netip.AddrPort]*net.Addr
	strays   sync.Map // of stray, by sessions
}

// maxLocals bounds locals, in case a host has very many addresses.
const maxLocals = 1024

// LocalAddrOf returns a pointer to the local address of a connection on a loop, which its
// connections share; nil if it is not known.
func (cfg *Config) LocalAddrOf(fd int) *net.Addr {
	if cfg.LocalAddr != nil {
		return &cfg.LocalAddr
	}
	a := sys.LocalAddr(fd)
	if a == nil {
		return nil
	}
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return new(a)
	}
	key := tcp.AddrPort()
	cfg.localsMu.Lock()
	defer cfg.localsMu.Unlock()
	same := cfg.locals[key]
	if same != nil {
		return same
	}
	if cfg.locals == nil {
		cfg.locals = make(map[netip.AddrPort]*net.Addr)
	}
	same = new(a)
	if len(cfg.locals) < maxLocals {
		cfg.locals[key] = same
	}
	return same
}

// Ending reports whether a Session's Drain is for the end of the server, so that it concerns
// connections that user code has taken over too.
func (c *Config) Ending() bool {
	select {
	case <-c.Stopping:
		return true
	default:
		return c.Leaving != nil && c.Leaving()
	}
}

// KeepsIdle reports whether a connection waits for another request, if its last response has
// promised that: its client may have sent it already.
func (c *Config) KeepsIdle() bool {
	return c.KeepAlives() || c.Leaving != nil && c.Leaving() && !c.Stopped()
}

// MaxDrain is how much of an unread body is read to keep the connection;
// net/http's value.
const MaxDrain = 256 << 10

// DefaultDrainFor is the default of Config.DrainFor.
const DefaultDrainFor = 5 * time.Second
