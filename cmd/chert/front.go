package main

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/static"
)

// front is the server's handler for as long as it runs. It counts, and passes requests to the current generation,
// which a reload replaces. It supports the fast path, and allocates nothing there.
type front struct {
	now   atomic.Pointer[generation]
	tally tally

	mu   sync.Mutex
	old  map[*generation]struct{} // replaced, and not closed yet
	past static.Stats             // of those that are closed
}

// generation is a configuration that is ready to serve. It is immutable except for its counts of users.
type generation struct {
	handler http.Handler   // the logs included
	direct  direct.Handler // handler, or nil if it has no fast path
	files   []*static.Handler
	limits  io.Closer             // the shared store; nil if there is none
	release []func()              // of what other generations may use too
	logs    *logs                 // nil for none
	access  *middleware.AccessLog // of requests that are refused before they have a site; nil for none
	refusal func(status int) (mediaType string, body []byte)
	users   [shards]struct {
		n atomic.Int64
		_ [120]byte
	}
}

// newGeneration makes a generation. access is the log of refused requests, nil for none.
func newGeneration(h http.Handler, access *middleware.AccessLog, files ...*static.Handler) *generation {
	g := &generation{handler: h, access: access, files: files}
	g.refusal = func(int) (string, []byte) { return "", nil }
	g.direct, _ = h.(direct.Handler)
	return g
}

// shards is the number of copies of each counter. Connections are spread over them, so that loops seldom write to the
// same cache line.
const shards = 16

// shardOf uses the last digits of the peer's port. A peer on a unix socket has none.
func shardOf(remote string) int {
	n := 0
	for i := max(0, len(remote)-3); i < len(remote); i++ {
		n = n*10 + int(remote[i]&15)
	}
	return n >> 1 % shards // some kernels assign only even ports
}

// enter makes the caller a user of the current generation; it must leave with the same shard.
func (f *front) enter(shard int) *generation {
	for {
		g := f.now.Load()
		g.users[shard].n.Add(1)
		// Counted, and still current: a later replacement will see the user. Otherwise it may be closed already.
		if f.now.Load() == g {
			return g
		}
		g.leave(shard)
	}
}

func (g *generation) leave(shard int) { g.users[shard].n.Add(-1) }

// idle reports whether a generation that was replaced has no user any more. A request that enters too late is counted
// only for a moment and then leaves, so a shard that was 0 once needs no second check.
func (g *generation) idle() bool {
	for i := range g.users {
		if g.users[i].n.Load() != 0 {
			return false
		}
	}
	return true
}

// TakesAhead is what wire.TakesAhead asks.
func (f *front) TakesAhead() bool { return true }

// ServeDirect implements direct.Handler.
func (f *front) ServeDirect(x *direct.Exchange) bool {
	shard := shardOf(x.RemoteAddr())
	g := f.enter(shard)
	defer g.leave(shard)
	start, path := x.Wire().Now(), view.String(x.Path()) // now: the handler may change it
	if g.direct == nil || !x.Wire().Admits(g.direct) || !g.direct.ServeDirect(x) {
		return false
	}
	x.Wire().Watch(f.tally.watch(shard, x.Method(), path, start))
	return true
}

// refused is the server's Refused.
func (f *front) refused(r wire.Refusal) {
	if access := f.now.Load().access; access != nil {
		access.Refused(r)
	}
}

// refusalPage is the server's RefusalPage.
func (f *front) refusalPage(status int) (mediaType string, body []byte) {
	return f.now.Load().refusal(status)
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	shard := shardOf(r.RemoteAddr)
	g := f.enter(shard)
	defer g.leave(shard)
	c := f.tally.watch(shard, r.Method, r.URL.Path, wire.Clock())
	if !wire.Watch(w, c) { // not chert's server
		defer c.Sent(wire.Delivery{})
	}
	g.handler.ServeHTTP(w, r)
}

// replace makes g the current generation. The previous one is closed when its last request is done.
func (f *front) replace(g *generation) {
	old := f.now.Swap(g)
	if old == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.old == nil {
		f.old = make(map[*generation]struct{})
	}
	f.old[old] = struct{}{}
	go f.retire(old)
}

// A generation that was replaced is checked after firstLook, then less and less often. After mostLooks it is closed
// all the same, so that a slow download does not keep a whole cache in memory: static.Handler finishes the responses
// that it has begun, and by then it has begun all of them.
const (
	firstLook = 5 * time.Millisecond
	mostLooks = 10 * time.Second
)

func (f *front) retire(g *generation) {
	for wait := firstLook; wait < mostLooks && !g.idle(); wait *= 2 {
		time.Sleep(wait)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g.addStats(&f.past)
	delete(f.old, g)
	g.close()
}

func (g *generation) close() {
	for _, h := range g.files {
		h.Close()
	}
	if g.limits != nil {
		g.limits.Close()
	}
	for _, f := range g.release {
		f()
	}
	g.logs.close()
}

// cache returns the sum over all generations.
func (f *front) cache() (s static.Stats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s = f.past
	for g := range f.old {
		g.addStats(&s)
	}
	f.now.Load().addStats(&s)
	return s
}

func (g *generation) addStats(s *static.Stats) {
	for _, h := range g.files {
		one := h.Stats()
		s.Hits += one.Hits
		s.Misses += one.Misses
	}
}
