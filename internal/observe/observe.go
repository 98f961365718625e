package observe

import (
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/tlsio"
)

// Server observes one server. Its exported fields are set before Init. Safe for concurrent
// use after it.
type Server struct {
	Counters
	Logf func(format string, args ...any)
	// Refused and SlowAfter are the server's fields, read at each use.
	Refused   *func(wire.Refusal)
	SlowAfter *time.Duration
	// Now returns what the server is made of.
	Now func() Now
	// Serves reports whether the server serves still.
	Serves func() bool
	// Reported is called when no refusal is to be reported, or no line to be logged, any more.
	Reported func()

	placed   placed
	slow     slow
	refusals refusals
	lines    lines
}

// Now is what a server is made of at a moment.
type Now struct {
	Loops      []*loop.Loop // that have not ended, the oldest first
	Streams    []conn.Driven
	Slots      *loop.Semaphore // nil for none
	Handshakes *tlsio.Bound    // on loops
}
