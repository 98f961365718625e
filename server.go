package chert

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/observe"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/tlsio"
)

// ErrServerClosed is http.ErrServerClosed. Serve and ListenAndServe return it
// after Shutdown or Close.
var ErrServerClosed = http.ErrServerClosed

// Server is an HTTP server with http.Server's fields and methods. The zero
// value serves http.DefaultServeMux on ":http". Fields must not be changed once
// a Serve method has been called, except Handler and ErrorLog, which are read
// at each use. Methods are safe for concurrent use.
//
// For times and sizes zero means the default given here and a negative value
// means none. The fields are in groups:
//
//   - Handlers: Handler, DisableGeneralOptionsHandler
//   - Limits: MaxHeaderBytes, MaxHeaderFields, MaxConns, MaxConnsPerAddr, MaxHandlers,
//     QueueLength
//   - Times: ReadHeaderTimeout, ReadTimeout, ReadStallTimeout, WriteTimeout,
//     WriteStallTimeout, IdleTimeout, SlowHandler
//   - Address, TLS and protocols: Addr, TLSConfig, TLSNextProto, Protocols, HTTP2,
//     ExtendedConnect, HTTP3, ProxyProtocol, Upgrader
//   - Engine: Engine, Placement
//   - Hooks: ErrorLog, Refused, RefusalPage, ConnState, BaseContext, ConnContext
type Server struct {
	// Handlers.

	// Handler handles requests. Default http.DefaultServeMux.
	Handler http.Handler
	// DisableGeneralOptionsHandler passes "OPTIONS *" to Handler instead of
	// answering 200 with Content-Length: 0.
	DisableGeneralOptionsHandler bool

	// Limits of requests, connections and handlers.

	// MaxHeaderBytes bounds a request's head, request line included; beyond
	// it the answer is 431 or 414. Default 64 KiB, at most 1 GiB.
	MaxHeaderBytes int
	// MaxHeaderFields bounds the number of a request's fields; beyond it the
	// answer is 431. Default 128.
	MaxHeaderFields int
	// MaxConns bounds the open connections. At the limit a new connection closes
	// the one that has been idle longest, between requests or before its first; if
	// none is idle, the one whose incomplete request head is oldest, and at least
	// five seconds old. Each event loop compares only its own connections, and of
	// more than 64 a part. If there is no such connection, accepting pauses;
	// connections that then wait for about 100 ms are refused, a few at a time:
	// with 503 or, in a flood, without a response. A connection counts until it is
	// hijacked: a handler that hijacks must bound its connections itself. Default:
	// the process's limit of open files, less a reserve and a second descriptor for
	// each connection, for 65,536 at most, as a request may need another one. If you
	// set more, leave enough for files, hijacked connections and connections to other
	// servers.
	MaxConns int
	// MaxConnsPerAddr bounds the open connections of one client address, but for
	// hijacked ones. Further connections receive 503: a client's own idle
	// connections do not give way to them. An IPv6 /64 counts as one address.
	// Clients behind one proxy or NAT share it; peers of unix sockets are not
	// counted. Default none.
	MaxConnsPerAddr int
	// MaxHandlers bounds how many handlers run at the same time, on loops and
	// on goroutines. Up to QueueLength further requests wait in order of
	// arrival; requests beyond that receive 503 with Retry-After. A handler
	// that has hijacked its connection does not count, nor one that has
	// returned while its response is still being sent, nor one whose Write
	// waits for the rest of a body that it has not read. A handler that waits
	// for a slow client in Body.Read or Write does count: also set ReadTimeout
	// and WriteTimeout, or short ReadStallTimeout and WriteStallTimeout.
	// Default none.
	MaxHandlers int
	// QueueLength bounds the requests that wait for MaxHandlers. Default as many
	// as those; a negative value means that none wait.
	QueueLength int

	// Times.

	// ReadHeaderTimeout bounds the reading of a request's head, from its
	// first byte, or from the accept for a connection's first. Default
	// ReadTimeout, or 60 s without one. A client that exceeds it receives 408
	// if it had begun a request.
	ReadHeaderTimeout time.Duration
	// ReadTimeout bounds the reading of a whole request, body included.
	// Default none: ReadHeaderTimeout and ReadStallTimeout limit slow clients
	// without limiting the duration of uploads.
	ReadTimeout time.Duration
	// ReadStallTimeout bounds each wait for more of a request's body. Default
	// 60 s. A body Read that exceeds it returns an error whose Timeout method
	// reports true; if the handler then writes nothing, the response is 408.
	ReadStallTimeout time.Duration
	// WriteTimeout bounds the time from the end of a request's head to the
	// end of its response. A handler that does not write meanwhile is notified
	// by its context over HTTP/2 only, as on net/http. Default none; see
	// WriteStallTimeout.
	WriteTimeout time.Duration
	// WriteStallTimeout bounds each wait for the client to accept more of the
	// response; then the connection is reset. Default 60 s. A connection on a
	// goroutine detects progress only every 16 KiB, and less often with large
	// socket buffers: a client that reads less than a few megabytes in this
	// time may be disconnected there.
	WriteStallTimeout time.Duration
	// IdleTimeout bounds the wait for the next request on a kept connection.
	// Default ReadTimeout, or 75 s without one. On event loops it ends
	// up to a tenth and at most 4 s earlier, so that those of many clients are spread.
	IdleTimeout time.Duration
	// SlowHandler makes the server log handlers that run for longer, once a minute for
	// each route; where they wait is in the goroutine profile (see package admin).
	// Handlers that last by their nature, such as event streams, are logged too. It also
	// logs, once for each, which routes have ceased to be quick; see Placement. Default
	// none, as a negative value.
	SlowHandler time.Duration

	// Address, TLS and protocols.

	// Addr is the TCP address that ListenAndServe listens on, "host:port". Default ":http".
	Addr string
	// TLSConfig configures ServeTLS and ListenAndServeTLS, which clone it.
	TLSConfig *tls.Config
	// TLSNextProto serves protocols that ALPN has selected for a TLS connection
	// instead of HTTP/1.1 or chert's HTTP/2. When an entry returns, the connection
	// is closed. Its *http.Server argument is the value of http.ServerContextKey. A
	// map that is not nil and has no "h2" disables HTTP/2, unless Protocols has it.
	TLSNextProto map[string]func(*http.Server, *tls.Conn, http.Handler)
	// Protocols are the protocols that the server supports. Nil means HTTP/1 and,
	// over TLS, HTTP/2, unless TLSNextProto is not nil and has no "h2".
	// UnencryptedHTTP2 is for clients that begin with the connection preface of
	// HTTP/2 (RFC 9113 section 3.3).
	Protocols *http.Protocols
	// HTTP2 bounds what clients may do over HTTP/2. Its MaxEncoderHeaderTableSize
	// has no effect, since header fields are sent without a dynamic table, nor has
	// WriteByteTimeout: see WriteStallTimeout. Nil and invalid values mean the
	// defaults: 250 streams, a table of 4 KiB, frames of 16 KiB, windows of 1 MiB
	// for a stream and for the connection. See docs/http2.md.
	HTTP2 *http.HTTP2Config
	// ExtendedConnect tells HTTP/2 clients that they may open WebSockets on streams, by
	// extended CONNECT (RFC 8441). Browsers take that as a promise for the whole
	// origin: they then open all its WebSockets so if they have such a connection. Set
	// it only if every endpoint accepts that, as those of package websocket do. A
	// handler gets such a request with the method CONNECT, a path, and the key
	// ":protocol" in its Header, as net/http has it. Default off.
	ExtendedConnect bool
	// HTTP3, if not nil, has ServeTLS and ListenAndServeTLS serve HTTP/3 too, on the UDP port of
	// the listener's TCP address; see [HTTP3]. Default nil.
	HTTP3 HTTP3
	// ProxyProtocol, if not nil, reports whether connections of a listener that come from peer
	// begin with a header of haproxy's PROXY protocol, version 1 or 2, in which a proxy tells
	// the address of its client. That is the address of the connection then, for RemoteAddr,
	// MaxConnsPerAddr, TLS and all else; if the header has none, as that of a proxy's own
	// health check, the peer's is. The local address remains the connection's own. A
	// connection whose header is missing, malformed, longer than 4 KiB or not there within 10 s
	// is closed, which is logged; a header from another peer is a malformed request. So it must
	// name the proxies alone: any other peer could choose its own address. peer has no zone; it
	// is the zero Addr for unix sockets. It is called on event loops, for each connection, and
	// must not block. The net.Conn that a handler hijacks has the proxy's address, as that of
	// hooks has on goroutines. See ProxiesFrom. Default nil.
	ProxyProtocol func(l net.Listener, peer netip.Addr) bool
	// Upgrader, if not nil, lets a new version of the program take the server's place without
	// refusing a connection: Listen and ListenAndServe use the sockets that the process was
	// started with, and Run upgrades at SIGUSR2. Default nil.
	Upgrader *Upgrader

	// Engine.

	// Engine selects how connections are driven. Default EngineAuto.
	Engine Engine
	// Placement selects where the handlers of connections on event loops run.
	// Default PlacementAdaptive.
	Placement Placement

	// Hooks.

	// ErrorLog receives the server's errors. Default package log's standard
	// logger. What clients cause, such as failed TLS handshakes, is logged by a
	// goroutine of its own, for which only Shutdown waits: if the log is too slow,
	// lines are dropped, and it is told how many. Panics of handlers are logged where
	// they ran, so the logger should not wait for long.
	ErrorLog *log.Logger
	// Refused, if not nil, is called for what was refused without calling Handler:
	// malformed requests (400, 431 and the like), heads that do not arrive in time
	// (408), and requests and connections beyond the limits (503). It is called by
	// one goroutine at a time, after the response, and never by one that serves
	// requests. It receives at most 20 refusals a second; if there are more, it
	// receives their number. Stats counts them all. middleware.AccessLog has a
	// method for it.
	Refused func(Refusal)
	// RefusalPage, if not nil, returns the body of the server's own answer to a request that is
	// refused without calling Handler because it is malformed, too large or late, and its media
	// type. It must not be changed afterwards. A nil body means the server's own, one line of
	// plain text, which is sent as well where the body is larger than 16 KiB, or than a client
	// has room for, over HTTP/2; malformed requests of HTTP/2 get none. It is not called for
	// what is beyond MaxConns, MaxConnsPerAddr and MaxHandlers, nor for plain HTTP where TLS
	// is expected. It is called on event loops, concurrently, and must not block.
	// middleware.RefusalPages makes one.
	RefusalPage func(status int) (mediaType string, body []byte)
	// ConnState is called when a connection changes its state. On event loops
	// it must not block, and the net.Conn is not one of package net's types: it
	// has addresses, can be closed, and is the same value each time. ConnState
	// must not wait for Shutdown, which waits for the connection in question.
	ConnState func(net.Conn, http.ConnState)
	// BaseContext returns the context that all requests of a listener derive
	// from. Default context.Background.
	BaseContext func(net.Listener) context.Context
	// ConnContext may change the context of a new connection's requests. With
	// it EngineAuto uses goroutines, so that the net.Conn is the connection
	// itself. With EngineLoops it is what ConnState sees. As in net/http a panic of
	// it ends the process, and so does nil as its result.
	ConnContext func(ctx context.Context, c net.Conn) context.Context

	stopping     atomic.Bool // Shutdown or Close was called
	closing      atomic.Bool // Close was called
	leaving      atomic.Bool // Drain was called
	noKeepAlives atomic.Bool
	room         accept.Room
	observed     observe.Server
	shaking      tlsio.Bound // TLS handshakes on loops

	mu         sync.Mutex
	gate       *loop.Gate
	places     *place.Table    // of requests by their targets
	routes     *place.Table    // of those whose route a router reports
	slots      *loop.Semaphore // nil without MaxHandlers
	mirrorOnce sync.Once
	mirror     atomic.Pointer[http.Server] // nil until httpServer is called
	current    *loopSet                    // the loops that new Serve calls use; nil when none run
	sets       map[*loopSet]struct{}       // all whose loops have not ended
	begunSets  int
	serving    map[*serving]struct{} // the Serve calls under way
	begunCalls int                   // of Serve
	streams    map[conn.Driven]struct{}
	held       int               // handshakes of HTTP/3
	layer      func() conn.Layer // wraps connections on loops; for tests
	drainFor   time.Duration     // of a body that the handler left unread; for tests; 0 is the default
	frugal     bool              // h2.Config.Frugal; for tests
	kernel     *testhook.Kernel  // in place of the system's sockets; for tests
	quiet      *sync.Cond        // signalled when one of the above has ended
	told       chan struct{}     // closed when Shutdown or Close has closed the listeners; see Stopping
	onShutdown []func()
}

// Placement is where the handlers of connections on event loops run.
type Placement uint8

const (
	// PlacementAdaptive runs handlers on the loop once they have been quick for a
	// while, less than 100 us, and all others on pooled goroutines. A handler that
	// was quick and then blocks or computes makes the loop change its goroutine
	// after one or two milliseconds, and runs in the pool from then on. While
	// that happens often, handlers that have not been quick for long run in the
	// pool.
	PlacementAdaptive Placement = iota
	// PlacementInline runs all handlers on the loop, which changes its goroutine
	// for each one that takes long.
	PlacementInline
	// PlacementPooled runs all handlers on pooled goroutines.
	PlacementPooled
)

// Engine is a way to drive connections.
type Engine uint8

const (
	// EngineAuto uses event loops for listeners of Server.Listen and package
	// net, on systems with a poller that chert supports, and goroutines for all
	// others and for servers with a ConnContext.
	EngineAuto Engine = iota
	// EngineLoops uses event loops or fails. The listener may be of any type
	// whose Accept returns *net.TCPConn or *net.UnixConn; the server duplicates
	// their sockets and closes the connections, so no other code can use them
	// afterwards. Serve returns an error at a connection of another type.
	EngineLoops
	// EngineGoroutines uses a goroutine per connection.
	EngineGoroutines
)

// SetKeepAlivesEnabled sets whether connections are kept open after a response,
// as they are by default.
func (s *Server) SetKeepAlivesEnabled(v bool) {
	s.noKeepAlives.Store(!v)
	if !v {
		s.notifyAll(conn.CloseIdle, conn.Driven.CloseIdle)
	}
}

func (s *Server) keepAlives() bool { return !s.noKeepAlives.Load() && !s.ending() }

// ending reports whether Drain, Shutdown or Close was called.
func (s *Server) ending() bool { return s.stopping.Load() || s.leaving.Load() }

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}

// lock locks the server and initializes what a zero Server lacks.
func (s *Server) lock() {
	s.mu.Lock()
	if s.quiet == nil {
		s.quiet = sync.NewCond(&s.mu)
		s.told = make(chan struct{})
		s.sets = make(map[*loopSet]struct{})
		s.serving = make(map[*serving]struct{})
		s.streams = make(map[conn.Driven]struct{})
		s.places = place.New()
		s.routes = s.places.NewRoutes()
		s.places.Changed, s.routes.Changed = s.observed.Placed(false), s.observed.Placed(true)
		if s.MaxHandlers > 0 {
			s.slots = loop.NewSemaphore(s.MaxHandlers, s.queueLength())
		}
		s.gate = loop.NewGate(s.maxConns(), s.MaxConnsPerAddr)
		s.room.Streams, s.room.Loops = s.someStreams, s.openLoops
		s.observe()
	}
}
