package tally

import "github.com/chert-http/chert/stats"

// ID is a counter.
type ID uint16

// The counters.
const (
	Accepted ID = iota // connections
	Closed
	Hijacked
	BytesRead
	BytesWritten
	Turns
	Events
	Handovers
	Yields
	// Pairs of which the difference is a gauge.
	HTTP2Begun
	HTTP2Ended
	HTTP3Begun
	HTTP3Ended
	WebSocketsBegun
	WebSocketsEnded
	EventStreamsBegun
	EventStreamsEnded
	TakenBegun // connections, and not streams, of which WebSockets and the like have all
	TakenEnded
	HandlersBegun // on goroutines of connections, or that have lost the lead of one of QUIC
	HandlersEnded
	// System calls.
	Reads
	Writes
	Sendfiles
	Splices
	Waits // of a loop's poller, which counts them itself
	Accepts
	Closes
	Others
	Early // requests that have run before the end of the handshake
	// Limits of time that were exceeded.
	LateHead
	LateRead
	LateWrite
	LateIdle
	LateStall
	LatePing
	// Answers is the first of one for each kind of answer; see AnswerOf.
	Answers
	IDs = Answers + Protos*Classes*ID(stats.Ways)
)

// Proto is a version of HTTP.
type Proto uint8

// The versions, and how many there are, and classes of status codes.
const (
	HTTP10 Proto = iota
	HTTP11
	HTTP2
	HTTP3
	Protos  = 4
	Classes = 6
)

// String returns the version as net/http writes it.
func (p Proto) String() string { return [...]string{"HTTP/1.0", "HTTP/1.1", "HTTP/2.0", "HTTP/3.0"}[p] }

// ClassOf returns the first digit of a status code; 0 for a code of which nothing was
// sent, or that has no class.
func ClassOf(status int) uint8 {
	if c := status / 100; c > 0 && c < Classes {
		return uint8(c)
	}
	return 0
}

// AnswerOf returns the counter of requests of one kind.
func AnswerOf(p Proto, class uint8, w stats.Way) ID {
	return Answers + (ID(p)*Classes+ID(class))*ID(stats.Ways) + ID(w)
}

// names are those of counters that a Snapshot has as a list.
var (
	syscalls = map[ID]string{Reads: "read", Writes: "write", Sendfiles: "sendfile", Splices: "splice", Waits: "wait",
		Accepts: "accept", Closes: "close", Others: "other"}
	timeouts = map[ID]string{LateHead: "head", LateRead: "read", LateWrite: "write", LateIdle: "idle",
		LateStall: "stall", LatePing: "ping"}
)
