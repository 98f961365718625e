package proxy

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// PoolOptions are the options of NewPool. The zero value is the default.
type PoolOptions struct {
	// Logger receives one line for each change of a server's state, with the cause and the
	// end. Default: slog.Default.
	Logger *slog.Logger
}

// Server is a server of an Upstream.
type Server struct {
	// Addr is where the server listens: "10.0.0.1:8080", "[::1]:80" or "unix:/run/app.sock".
	// "app.internal:8080" has a name, which is resolved again every 10 s, 20 % more or less;
	// each of its addresses is a server. If a name cannot be resolved its last addresses
	// stay in use.
	Addr string
	// Weight is the server's part of the requests, relative to others. Default 1; negative: no
	// requests.
	Weight int
	// Backup servers get requests only if no others can.
	Backup bool
	// MaxRequests are the most requests at a time. Default UpstreamOptions.MaxRequests; negative:
	// no limit.
	MaxRequests int
}

// UpstreamOptions are the options of Pool.Upstream. Of times and numbers zero is the
// default.
type UpstreamOptions struct {
	// Name is for logs, the live page and metrics. It is required, and a token (RFC 9110
	// section 5.6.2).
	Name string
	// Servers are the servers. Either they or SRV are required.
	Servers []Server
	// SRV is a name with SRV records in place of Servers, such as "_http._tcp.app.internal".
	// Servers of the lowest priority are used, and others are backups; weights are weights.
	SRV string

	// Balance chooses the server of a request. The zero value takes the better of two random
	// ones, by latency and requests in flight.
	Balance Balance
	// Check asks servers whether they work. nil: only requests tell.
	Check *Check
	// Health is what requests say of a server.
	Health Health
	// SlowStart is for how long a server gets less than its weight that comes back, after an
	// ejection, failed checks or draining, or that a name has got since. Default 10 s;
	// negative: it gets all at once. At most an hour.
	SlowStart time.Duration

	// TLS is for servers that speak TLS; nil: none. Certificates are verified unless it says
	// otherwise. An empty ServerName is the host of Server.Addr. Connections are kept for
	// Upstreams that have the same *tls.Config.
	TLS *tls.Config
	// Protocol is the version of HTTP that the servers speak.
	Protocol Protocol

	// MaxRequests are the most requests at a time for each server. Default and negative: no
	// limit.
	MaxRequests int
	// Queue is how many requests wait if all servers have their most. Default and negative:
	// none, they are answered 503.
	Queue int
	// QueueTimeout is how long one waits at most. Default 1 s; negative: without limit.
	QueueTimeout time.Duration

	// ConnectTimeout is for a connection and its TLS handshake together. Default 3 s;
	// negative: no limit.
	ConnectTimeout time.Duration
	// ResponseTimeout is from the end of a request to the end of the response's head.
	// Default 60 s; negative: no limit.
	ResponseTimeout time.Duration
	// StallTimeout is for the bytes of a body to make progress, in each direction apart.
	// Default 60 s; negative: no limit. It is not for tunnels, nor while more of the request is
	// waited for, for which the Server has limits.
	StallTimeout time.Duration
	// IdleTimeout is how long a connection is kept without a request. Default 60 s; negative:
	// none are kept. It is less for a server that announces less by Keep-Alive, or is seen to
	// close connections earlier.
	IdleTimeout time.Duration
	// MaxIdle are the most connections that are kept for each server. Default 1024; negative:
	// none are kept.
	MaxIdle int

	// Retry is what may be sent twice.
	Retry Retry
}

// Protocol is a version of HTTP.
type Protocol uint8

const (
	// ProtocolHTTP1 is HTTP/1.1.
	ProtocolHTTP1 Protocol = iota
	// ProtocolHTTP2 is HTTP/2, by ALPN with TLS and by prior knowledge without. gRPC needs
	// it.
	ProtocolHTTP2
)

// Check is a request that servers are sent to see whether they work: a GET on a connection
// of its own. Servers that several Upstreams check in the same way are checked once. Negative
// times and numbers are an error: a nil Check is none.
type Check struct {
	// Path is the target, such as "/healthz". Required.
	Path string
	// Host is the Host field. Default: the server's address.
	Host string
	// Interval is the time between two checks. Default 5 s.
	Interval time.Duration
	// Timeout is for each of them. Default 2 s.
	Timeout time.Duration
	// Fall and Rise are how many in sequence must fail or succeed. Default 2.
	Fall, Rise int
	// Status is what the server must answer, from 200 to 599. Default any 2xx.
	Status int
}

// Health says which failures of requests eject a server. The zero value is the default.
type Health struct {
	// Consecutive failures, at most 16, eject a server if they come within Within. Default 5
	// in 10 s; a negative Consecutive: no such rule.
	Consecutive int
	Within      time.Duration
	// Percent of failures among at least Least requests of 10 s eject it. Default 50 of 20; a
	// negative Percent: no such rule.
	Percent, Least int
	// Ejection is for how long. Each one in sequence doubles it, up to MaxEjection, at most a
	// day. Default 5 s, and 60 s. As of Within and Least, negative is an error: see Off.
	Ejection, MaxEjection time.Duration
	// Off: servers are never ejected.
	Off bool
}

// Retry is what may be sent twice, beyond what no server can have acted on.
type Retry struct {
	// Timeouts: idempotent requests, if no response has come in time.
	Timeouts bool
	// Statuses: idempotent requests, if the server answers 502, 503 or 504.
	Statuses bool
	// Keys: requests with an Idempotency-Key are idempotent, whatever their method.
	Keys bool
	// Off: nothing is tried again.
	Off bool
}
