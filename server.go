package chert

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/stream"
)

// ErrServerClosed is http.ErrServerClosed: what Serve and ListenAndServe
// return after Shutdown or Close.
var ErrServerClosed = http.ErrServerClosed

// Server has http.Server's fields and methods. The zero value serves
// http.DefaultServeMux on ":http". Fields must not be changed once a Serve
// method has been called, but for Handler and ErrorLog, which are looked at
// with each use. Methods may be called by any goroutine.
//
// For times and sizes 0 means the default given here and a negative value
// means none.
type Server struct {
	// Addr is the TCP address of ListenAndServe, "host:port". Default ":http".
	Addr string
	// Handler answers requests. Default http.DefaultServeMux.
	Handler http.Handler
	// DisableGeneralOptionsHandler passes "OPTIONS *" to Handler instead of
	// answering 200 with Content-Length: 0.
	DisableGeneralOptionsHandler bool
	// TLSConfig is for ServeTLS and ListenAndServeTLS, which clone it.
	TLSConfig *tls.Config

	// ReadTimeout bounds the reading of a whole request, body included.
	// Default none: ReadHeaderTimeout and ReadStallTimeout bound what a slow
	// client can do without bounding uploads.
	ReadTimeout time.Duration
	// ReadHeaderTimeout bounds the reading of a request's head, from its
	// first byte, or from the accept for a connection's first. Default
	// ReadTimeout, or 60 s without one. A client that exceeds it is answered
	// 408 if it had begun a request.
	ReadHeaderTimeout time.Duration
	// WriteTimeout bounds the time from the end of a request's head to the
	// end of its response. Default none; see WriteStallTimeout.
	WriteTimeout time.Duration
	// IdleTimeout bounds the wait for the next request on a kept connection.
	// Default ReadTimeout, or 75 s without one.
	IdleTimeout time.Duration
	// ReadStallTimeout bounds each wait for more of a request's body. Default
	// 60 s. A body Read that exceeds it gives an error whose Timeout method
	// is true; if the handler then writes nothing, 408 is answered.
	ReadStallTimeout time.Duration
	// WriteStallTimeout bounds each wait for the client to take more of the
	// response; then the connection is reset. Default 60 s. A connection on a
	// goroutine sees only every 16 KiB of progress, and with large socket
	// buffers less: a client that takes less than a few megabytes in this
	// time may be cut there.
	WriteStallTimeout time.Duration

	// MaxHeaderBytes bounds a request's head, request line included; beyond
	// it the answer is 431 or 414. Default 64 KiB, at most 1 GiB.
	MaxHeaderBytes int
	// MaxHeaderFields bounds the number of a request's fields; beyond it the
	// answer is 431. Default 128.
	MaxHeaderFields int
	// MaxConns bounds the open connections. At the limit the connection that has
	// been idle longest, between requests or before its first, is closed for a new
	// one; after those, the one that has sent a part of a request's head for
	// longest, and for five seconds at least. Each event loop knows the order of
	// its own connections, and with more than 64 of them nearly. If there is
	// none, accepting pauses; connections that then wait for more than about
	// 100 ms are answered 503 a few at a time. Hijacked connections count until
	// they are closed, if Hijack gave a *net.TCPConn, a *net.UnixConn or a
	// *tls.Conn over one. Default: half of the process's limit of open files, less
	// a reserve, as a request may need another descriptor. Who sets more must
	// leave enough for files and connections to other servers.
	MaxConns int
	// MaxConnsPerAddr bounds the open connections of one client address, hijacked
	// ones as for MaxConns. More are answered 503: a client's own idle connections
	// do not give way to it. A /64 of IPv6 is one address. Clients behind one
	// proxy or NAT share it; peers of unix sockets are not counted. Default none.
	MaxConnsPerAddr int

	// TLSNextProto serves protocols that ALPN has chosen for a TLS connection
	// instead of HTTP/1.1. An entry closes the connection by returning. The
	// *http.Server it gets is what http.ServerContextKey gives. A map
	// that is not nil and has no "h2" switches HTTP/2 off, unless Protocols has it.
	TLSNextProto map[string]func(*http.Server, *tls.Conn, http.Handler)
	// ConnState is called when a connection changes its state. On event loops
	// it must not block, and the net.Conn is none of package net's types: it
	// tells addresses, can be closed, and is the same one each time. It must
	// not wait for Shutdown, which waits for the connection it is about.
	ConnState func(net.Conn, http.ConnState)
	// ErrorLog takes what the server has to say. Default package log's
	// standard logger.
	ErrorLog *log.Logger
	// Refused, if not nil, is told what was refused without Handler: malformed
	// requests (400, 431 and the like), heads that do not come in time (408), and
	// requests and connections for which there is no room (503). One goroutine at a
	// time calls it, after the answer, and never one that serves requests. It is
	// told of 20 refusals a second at most; of more it is told how many there were.
	// Stats counts them all. middleware.AccessLog has a method for it.
	Refused func(direct.Refusal)
	// BaseContext gives the context that all requests of a listener derive
	// from. Default context.Background.
	BaseContext func(net.Listener) context.Context
	// ConnContext may change the context of a new connection's requests. With
	// it EngineAuto uses goroutines, so that the net.Conn is the connection
	// itself. With EngineLoops it is what ConnState sees.
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	// HTTP2 bounds what clients may do over HTTP/2. Of its fields
	// MaxEncoderHeaderTableSize has no effect, as header fields are sent without a
	// dynamic table, nor has WriteByteTimeout: see WriteStallTimeout. Nil and values
	// that are not valid are the defaults: 250 streams, a table of 4 KiB, frames of
	// 16 KiB, windows of 1 MiB for a stream and for the connection. See docs/http2.md.
	HTTP2 *http.HTTP2Config
	// Protocols are the protocols that the server speaks. Nil is HTTP/1 and, over TLS,
	// HTTP/2, unless TLSNextProto is there and has no "h2". UnencryptedHTTP2 is spoken
	// with clients that begin with HTTP/2's preface (RFC 9113 section 3.3).
	Protocols *http.Protocols

	// Placement says where handlers run on event loops. Default Adaptive.
	Placement Placement
	// ReuseRequests makes the server keep the *http.Request, its URL, header,
	// strings and context, and the header of the response, for a later
	// request. A handler that does not allocate is then served without an
	// allocation. Off by default, because it takes something away that
	// net/http grants: nothing of a request may be used after the handler has
	// returned, not by goroutines it has started and not in copies made with
	// WithContext; strings (a path, a header's value) must be cloned to be
	// kept (strings.Clone). A handler that breaks this sees another client's
	// data, and the race detector does not always tell. Bodies are not reused:
	// a Read that comes too late gives http.ErrBodyReadAfterClose. Requests
	// whose context's Done or Err was called, or whose client waits for 100
	// (Continue), are not reused either.
	ReuseRequests bool
	// Engine says how connections are driven. Default EngineAuto.
	Engine Engine
	// Workers, if positive, bounds how many connections the goroutine engine
	// serves at the same time. Up to QueueLength further ones wait; while any
	// do, connections are closed after the request at hand, and one whose request
	// or TLS handshake has not come whole within five seconds is closed too.
	// Beyond that the answer is 503. A protocol of TLSNextProto holds its worker
	// for as long as it likes. Event loops ignore Workers.
	Workers int
	// MaxHandlers bounds how many handlers run at the same time, on loops and
	// on goroutines. Up to QueueLength further requests wait in the order in
	// which they came; beyond that the answer is 503 with Retry-After. A
	// handler that has hijacked its connection does not count, nor one that has
	// returned while its answer is sent, nor one whose Write waits for the rest
	// of a body that it has not read. A handler that waits for a slow client in
	// Body.Read, or since the client does not take what it writes, does: set
	// ReadTimeout and WriteTimeout, or short ReadStallTimeout and
	// WriteStallTimeout, beside it. Default none.
	MaxHandlers int
	// QueueLength bounds the requests that wait for MaxHandlers, and the
	// connections that wait for one of Workers. Default as many as those; a
	// negative value means that none wait.
	QueueLength int

	stopping     atomic.Bool // Shutdown or Close was called
	closing      atomic.Bool // Close was called
	noKeepAlives atomic.Bool
	seeking      atomic.Int64 // until when no other search for room begins; see seekRoom
	refusals     refusals

	mu         sync.Mutex
	gate       *loop.Gate
	places     *place.Table    // of requests by their targets
	routes     *place.Table    // of those whose route a router names
	slots      *loop.Semaphore // nil without MaxHandlers
	mirrorOnce sync.Once
	mirror     atomic.Pointer[http.Server] // nil until httpServer is called
	current    *loopSet                    // the loops that new Serve calls use; nil when none run
	sets       map[*loopSet]struct{}       // all whose loops have not ended
	serving    map[*serving]struct{}       // the Serve calls under way
	streams    map[*stream.Conn]bool       // true: somebody serves it, it does not wait for a worker
	layer      func() conn.Layer           // what connections on loops go through; for tests
	drainFor   time.Duration               // of a body that nobody reads; for tests; 0 is the default
	quiet      *sync.Cond                  // signalled when something of the above has ended
	told       chan struct{}               // closed when Shutdown or Close has closed the listeners; see Stopping
	onShutdown []func()
}

// Placement is where the handlers of connections on event loops run.
type Placement uint8

const (
	// Adaptive runs handlers on the loop that have been quick for a while,
	// less than 100 us, and others on pooled goroutines. What was quick once
	// and blocks or computes now costs the loop a change of goroutines after
	// one or two milliseconds, and goes to the pool from then on. While that
	// happens often, all handlers go to the pool that have not been quick for
	// long.
	Adaptive Placement = iota
	// Inline runs all handlers on the loop, which changes its goroutine for
	// every one that takes long.
	Inline
	// Pooled runs all handlers on pooled goroutines.
	Pooled
)

// Engine is a way to drive connections.
type Engine uint8

const (
	// EngineAuto uses event loops for what Server.Listen or package net has
	// opened, where the system has a poller that chert knows, and goroutines
	// for everything else, and for everything with ConnContext.
	EngineAuto Engine = iota
	// EngineLoops uses event loops or fails. A listener of any type may accept
	// the *net.TCPConn and *net.UnixConn; the server takes their sockets out
	// and closes them, which whoever else keeps them will notice.
	EngineLoops
	// EngineGoroutines uses a goroutine per connection.
	EngineGoroutines
)

// SetKeepAlivesEnabled says whether connections are kept after a response, as
// they are by default.
func (s *Server) SetKeepAlivesEnabled(v bool) {
	s.noKeepAlives.Store(!v)
	if !v {
		s.closeIdle()
	}
}

func (s *Server) keepAlives() bool { return !s.noKeepAlives.Load() && !s.stopping.Load() }

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}

// lock takes the server's lock and makes what a zero Server lacks.
func (s *Server) lock() {
	s.mu.Lock()
	if s.quiet == nil {
		s.quiet = sync.NewCond(&s.mu)
		s.told = make(chan struct{})
		s.sets = make(map[*loopSet]struct{})
		s.serving = make(map[*serving]struct{})
		s.streams = make(map[*stream.Conn]bool)
		s.places = place.New()
		s.routes = s.places.NewRoutes()
		if s.MaxHandlers > 0 {
			s.slots = loop.NewSemaphore(s.MaxHandlers, s.queueLength(s.MaxHandlers))
		}
		s.gate = loop.NewGate(s.maxConns(), s.MaxConnsPerAddr)
	}
}
