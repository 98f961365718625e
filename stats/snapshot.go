package stats

import (
	"slices"
	"time"
)

// A Snapshot is what a server has counted since it was first used. It shares no memory
// with the server. The parts are collected from the loops one after another, so what
// happens meanwhile may be in one part and not in another.
type Snapshot struct {
	// At is when the snapshot was taken, and Since when the server began to count.
	At, Since time.Time

	Connections Connections
	// Requests counts finished requests. There is one element for each combination
	// that has occurred.
	Requests []Requests
	// Running is how many handlers run now, Waiting how many requests wait for a slot
	// (Server.MaxHandlers) or for a goroutine.
	Running, Waiting int64
	// BytesRead and BytesWritten are what went through the sockets: with TLS, its
	// records, or for connections on goroutines what is in them; over QUIC, its packets.
	BytesRead, BytesWritten uint64
	// Syscalls are the server's own system calls by kind: "read", "write", "sendfile",
	// "wait", "accept", "close" and others. Those of handlers are not among them, nor
	// those of Go's runtime for connections on goroutines.
	Syscalls []Count
	// Timeouts are connections or requests that ended because a limit of time was
	// exceeded, by the limit: "head", "read", "write", "idle", "stall", "ping", "handshake".
	Timeouts []Count
	// Malformed are requests that were refused before a handler ran, by reason. They are
	// among Requests too, but not in the histograms.
	Malformed []Count

	// Total is the time from a request's first byte until its response has been passed
	// to the socket, or to the queue of what a slow client has not accepted yet. The
	// others, except for Write, are parts of it.
	//
	// Requests whose handlers are quick enough to run on a loop are timed one in
	// SampleEvery on average, and such a sample counts for all since the last one.
	// Others are always timed.
	Total Histogram
	// Head is the time until the head was complete, of requests that took more than
	// one read, to about a millisecond; from the accept for a connection's first one.
	Head Histogram
	// Wait is the time a request waited for a slot or a goroutine, if it did.
	Wait Histogram
	// Handler is the time in the handler.
	Handler Histogram
	// Write is the time from the handler's return until the client had accepted the
	// rest of the response, if it did not accept all at once, to about a millisecond.
	// Connections on goroutines wait for that within Total.
	Write Histogram

	// Routes are the routes that a router has named in Request.Pattern, in no
	// particular order; at most a limit of the server's, after which further ones are
	// counted together as Other.
	Routes []Route

	Loops     []Loop
	Placement Placement
	TLS       TLS
	// Buffers is how many pooled buffers are in use, and BufferBytes their size, in all
	// servers of the process.
	Buffers, BufferBytes int64
}

// SampleEvery is how many quick requests there are for one that is timed.
const SampleEvery = 64

// Other is the Pattern of all routes beyond the limit. NoRoute is that of requests
// for which no router has named one.
const (
	Other   = "(other)"
	NoRoute = ""
)

// Count is a counter of a kind of event.
type Count struct {
	Name string
	N    uint64
}

// Get returns the counter with a name, or 0.
func Get(counts []Count, name string) uint64 {
	for _, c := range counts {
		if c.Name == name {
			return c.N
		}
	}
	return 0
}

// Connections counts connections. Gauges are int64, counters uint64.
type Connections struct {
	// Accepted have been admitted, and Closed of them have ended or were hijacked.
	Accepted, Closed uint64
	// Refused are connections that were accepted by the system and closed by a limit,
	// by reason.
	Refused []Count
	// Open is how many there are, and Loops and Goroutines how many of them each
	// engine drives.
	Open, Loops, Goroutines int64
	// Active is how many of Open have a request in progress, or have sent part of one; an
	// estimate if a loop has more than 8192 connections.
	Active int64
	// By protocol: HTTP/1, HTTP/2, HTTP/3, WebSocket connections, and event streams; the last
	// two are also counted when they are streams of HTTP/2 or HTTP/3.
	HTTP1, HTTP2, HTTP3, WebSockets, EventStreams int64
	// Hijacked counts connections that handlers have taken.
	Hijacked uint64
}

// Way is where a handler ran.
type Way uint8

// The ways. Inline handlers run on an event loop, Pooled ones on one of its
// goroutines because they were not known to be quick, Direct ones (package direct) on
// a loop without net/http's types. Goroutine is a connection with a goroutine of its
// own.
const (
	Inline Way = iota
	Pooled
	Direct
	Goroutine
	Ways // how many there are
)

var wayNames = [Ways]string{"inline", "pooled", "direct", "goroutine"}

// String returns a name in lower case.
func (w Way) String() string {
	if w < Ways {
		return wayNames[w]
	}
	return "unknown"
}

// MarshalText returns what String does: that is what JSON has.
func (w Way) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what MarshalText has written. A name that it does not know, of a later
// version, is no error: String returns "unknown" then.
func (w *Way) UnmarshalText(b []byte) error {
	*w = Ways
	if i := slices.Index(wayNames[:], string(b)); i >= 0 {
		*w = Way(i)
	}
	return nil
}

// Requests counts requests of one kind.
type Requests struct {
	// Protocol is "HTTP/1.0", "HTTP/1.1", "HTTP/2.0" or "HTTP/3.0".
	Protocol string
	// Class is the status code's first digit: 1 (a switch of protocols) to 5; 0 if no
	// response was sent. A hijacked request with an Upgrade field counts as such a switch,
	// without it as one that has no response.
	Class int
	Way   Way
	N     uint64
}

// Route counts the requests of one route.
type Route struct {
	// Pattern is the router's, such as "GET /users/{id}".
	Pattern string
	// Classes counts requests by the status code's first digit, as in Requests.Class,
	// and Ways by where their handlers ran, in the order of the constants.
	Classes [6]uint64
	Ways    [Ways]uint64
	// Duration is as Snapshot.Total, Handler as Snapshot.Handler.
	Duration, Handler Histogram
	// Handovers counts runs that took a loop so long that it went on without them,
	// and Demotions how often the route has ceased to run on loops.
	Handovers, Demotions uint64
}

// N returns how many requests r has counted.
func (r *Route) N() (n uint64) {
	for _, c := range r.Classes {
		n += c
	}
	return n
}

// Loop is one event loop.
type Loop struct {
	// Turns is how often the loop has waited for events, Events how many it got.
	Turns, Events uint64
	// Inline, Pooled and Direct count requests by where they ran; see Way.
	Inline, Pooled, Direct uint64
	// Handovers is how often a handler that took long, and Yields how often one that
	// was about to wait, has made the loop go on without it.
	Handovers, Yields uint64
	// Connections is how many the loop drives, AtWork how many of its pooled
	// goroutines run handlers, Spare how many are idle.
	Connections, AtWork, Spare int64
	// Mail and Requeued are how many messages and connections waited for the loop when
	// it was asked for the snapshot.
	Mail, Requeued int64
	// Lag is how long the loop took to answer that. Stale means that it has not
	// answered in time: the other values are those of the snapshot before.
	Lag   time.Duration
	Stale bool
	// Turn is the time that the loop was busy between two waits, of one turn in
	// SampleEvery on average; each counts once.
	Turn Histogram
}

// Placement is what the server has learned about where handlers run.
type Placement struct {
	// Proofs counts routes or paths that have been found to be quick, Demotions those
	// that have lost that.
	Proofs, Demotions uint64
	// Recent are the latest such events, and handovers, the oldest first; at most 64.
	Recent []PlacementEvent
}

// A PlacementEvent is a change of where a handler runs.
type PlacementEvent struct {
	At     time.Time
	Kind   string // "proven", "demoted" or "handover"
	Method string
	Target string // a route's pattern, or the beginning of a path
	// Held is how long a loop was held, for handovers and demotions that were caused
	// by that.
	Held time.Duration
}

// TLS counts handshakes.
type TLS struct {
	// Versions counts finished handshakes by version, "1.2" and "1.3", Resumed those
	// that resumed a session.
	Versions []Count
	Resumed  uint64
	// EarlyRequests have run before the handshake of their connection had finished (0-RTT).
	EarlyRequests uint64
	// Failed handshakes ended with an error.
	Failed uint64
	// Running is how many are in progress on goroutines, Waiting how many wait for
	// their turn.
	Running, Waiting int64
	// Duration is the time from the accept, over QUIC from the client's first packet, to the end of
	// finished handshakes.
	Duration Histogram
}
