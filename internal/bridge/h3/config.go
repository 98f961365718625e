package h3

import (
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/pack"
)

// Config is what the HTTP/3 sessions of a server have in common. It is immutable once there is one.
type Config struct {
	*bridge.Config
	// List bounds a request's fields. Its Bytes bound a section on the wire too.
	List pack.Limits
	// MaxStreams bounds the requests that a client has under way at a time; the transport does.
	MaxStreams int
	// HeadTime is what a client has for each field section, IdleTime for the next request when
	// none is under way, in nanoseconds; 0 is no limit.
	HeadTime, IdleTime int64
	// ExtendedConnect tells clients that they may open tunnels (RFC 9220).
	ExtendedConnect bool
	// CountError, if not nil, is called for errors, with names of lower-case letters and
	// underscores. Any goroutine calls it.
	CountError func(name string)
	// Frugal: what clients may do in vain does not grow with time. A test of that would depend on how fast it runs.
	Frugal bool

	pool  loop.Pool // of goroutines that serve streams
	watch watch
	rests rests
}

const (
	// MaxUni is how many unidirectional streams a client may have: three that it needs, and some
	// of types that a server does not know (RFC 9114 section 6.2.3).
	MaxUni = 8
	// lingerFor is how long a connection is kept after its last answer for what QUIC may have to
	// send again, when the server ends it.
	lingerFor = 2 * time.Second
	// lingerSlow is how much longer that may be for a slow client, and lingerTransits for how many transits nothing
	// is sent to one that has got all.
	lingerSlow     = 5 * time.Second
	lingerTransits = 4
)
