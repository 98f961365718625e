package chert

import (
	"maps"
	"runtime"
	"slices"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/observe"
	"github.com/chert-http/chert/stats"
)

// A Refusal is a request that the server has refused without calling its handler,
// or a connection that it had no place for. The type is wire's so that middleware,
// which runs on other servers too, can log it.
type Refusal = wire.Refusal

// Stats returns what the server has counted: requests, connections, bytes, system calls,
// times, and where handlers run. It can be called at any time, before the server serves
// and after it has shut down, and costs little enough for once a second. It waits for a
// busy loop for 100 ms at most. See docs/observability.md. Safe for concurrent use.
func (s *Server) Stats() stats.Snapshot { return s.watched().Stats() }

// RunningRequests returns requests that are in progress, at most max of each loop and max
// of connections on goroutines, the longest first. Those that run on a loop at the moment
// it is asked are not among them: they end, or move to a goroutine, within two
// milliseconds. Nor are, over HTTP/1 and HTTP/2, those that a direct handler has answered,
// as package static does, while the client accepts the response: OpenConnections shows
// their connections as active. It waits for a busy loop for 100 ms at most, and shows nothing of one
// that does not answer; concurrent calls wait for each other. If max is not positive there
// are none. Safe for concurrent use.
func (s *Server) RunningRequests(max int) []stats.Request { return s.watched().RunningRequests(max) }

// OpenConnections returns open connections, at most max of each loop and max of those on
// goroutines. It waits as RunningRequests does. If max is not positive there are none.
// Safe for concurrent use.
func (s *Server) OpenConnections(max int) []stats.Connection {
	return s.watched().OpenConnections(max)
}

// watched returns the server's observer, when it observes.
func (s *Server) watched() *observe.Server {
	s.lock()
	s.mu.Unlock()
	return &s.observed
}

// observe begins to observe the server. The lock is held.
func (s *Server) observe() {
	o := &s.observed
	o.Logf, o.Refused, o.SlowAfter = s.logf, &s.Refused, &s.SlowHandler
	o.Now = s.now
	o.Serves, o.Reported = s.stillBusy, s.signal
	o.Init(runtime.GOMAXPROCS(0))
}

// busy reports whether something of the server has not ended. The lock is held.
func (s *Server) busy() bool { return len(s.serving)+len(s.sets)+len(s.streams)+s.held > 0 }

// now returns what the server is made of.
func (s *Server) now() observe.Now {
	s.lock()
	defer s.mu.Unlock()
	return observe.Now{
		Loops: s.allLoops(), Streams: slices.Collect(maps.Keys(s.streams)), Slots: s.slots, Handshakes: &s.shaking,
	}
}
