package eventstream

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"time"
)

// Options configure a [Handler].
type Options struct {
	// OnOpen is called by the handler, with the request, when a stream has been opened:
	// the place to send first events and to join topics. r is valid only during the
	// call.
	OnOpen func(s *Stream, r *http.Request)
	// OnClose is called once, on a goroutine of its own, when a stream has ended and OnOpen has
	// returned. The server's Shutdown does not wait for it.
	OnClose func(s *Stream)

	// Heartbeat is after how long without an event a comment is sent, so that proxies do
	// not end the connection and clients that have vanished are noticed. It is kept to
	// an eighth. Default 25 s, below the usual half minute of proxies; negative: none.
	Heartbeat time.Duration
	// MaxAge is how long a stream stays open at most. Each ends after 80 to 100 % of it, so
	// that clients that have come together do not come back together. Default, and
	// negative: no limit.
	MaxAge time.Duration
	// Retry is how long clients wait before they connect again. Each receives a time of
	// its own between this one and twice as long. Default 3 s; negative: they receive
	// none, and browsers wait a few seconds.
	Retry time.Duration
	// Last is what streams get when the server stops, or the Handler is closed, besides
	// a new time to retry. Default an event of type "shutdown" without data.
	Last *Event

	// MaxUnsent bounds, in bytes, what waits in memory for a client that reads too
	// slowly. An event of any size is accepted while no more than half of it waits.
	// Default 64 KiB; negative: no limit.
	MaxUnsent int
	// Slow is what happens to clients that read too slowly.
	Slow Slow
	// MaxStreams is how many streams may be open. Further requests are answered with an
	// empty stream and a time to retry. Default, and negative: no limit.
	MaxStreams int
	// Compression enables gzip for clients that accept it (RFC 9110 section 12.5.3). The
	// package's documentation says what it costs, and when it leaks secrets. Default: none.
	Compression bool
	// LastIDParam is the name of a query parameter that has the ID of the last event if
	// the request has no field Last-Event-ID: an EventSource cannot set that in its
	// first request. Default: none.
	LastIDParam string
	// Logger receives panics of OnClose. Default slog.Default.
	Logger *slog.Logger
}

// Slow is what happens when a client reads more slowly than events are sent to it.
type Slow uint8

const (
	// SlowClose ends the stream. The client connects again and gets from each topic what
	// its history still has.
	SlowClose Slow = iota
	// SlowDrop drops the events that there is no room for: of a topic the oldest, of
	// Stream.Send the newest.
	SlowDrop
)

const (
	defaultHeartbeat = 25 * time.Second
	defaultRetry     = 3 * time.Second
	mostRetry        = math.MaxInt64/2 - 1 // twice as long does not overflow
	defaultMaxUnsent = 64 << 10
)

// appendRetry appends the time after which a client is to reconnect.
func (h *Handler) appendRetry(b []byte) []byte {
	if h.o.Retry < 0 {
		return append(b, ":\n\n"...)
	}
	e := Event{Retry: h.o.Retry + rand.N(h.o.Retry+1)}
	return e.append(b)
}
