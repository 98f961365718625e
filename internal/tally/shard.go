package tally

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/stats"
)

// A Shard has the counters of a loop, or of some connections on goroutines. Arguments
// named driving say that the caller drives the loop and runs no user code, so that it
// may use what the driver alone uses.
type Shard struct {
	local [IDs]uint64 // used by the driver
	own   ended       // the same
	// Sampling of requests, of user code of connections that were taken over, and of the
	// loop's turns; used by the driver.
	Requests, Messages, Sampled Sampler
	// GivingWay: the connection that is being ended makes room for another, so that what
	// its session takes for a time that has passed is none; used by the driver.
	GivingWay bool

	beside [IDs]atomic.Uint64
	mu     sync.Mutex
	others ended // of requests, guarded by mu
	names  *Names
}

// ended are requests that have ended.
type ended struct {
	times  [stages]stats.Histogram
	turn   stats.Histogram
	routes routes
}

// seed is that of a Sampler. It is of crypto/rand, whose bytes a simulation decides.
func seed() uint32 {
	var b [4]byte
	rand.Read(b[:])
	return binary.NativeEndian.Uint32(b[:]) | 1
}

// Init prepares s, which counts routes by the names in n. It comes before any other use.
func (s *Shard) Init(n *Names) {
	s.names = n
	s.own.routes.names, s.others.routes.names = n, n
}

// Add counts n events.
func (s *Shard) Add(driving bool, id ID, n uint64) {
	if driving {
		s.local[id] += n
	} else {
		s.beside[id].Add(n)
	}
}

// Late counts a limit of time that was exceeded.
func (s *Shard) Late(driving bool, id ID) {
	if !driving || !s.GivingWay {
		s.Add(driving, id, 1)
	}
}

// stage is a part of a request.
type stage uint8

const (
	total stage = iota
	head
	wait
	handler
	write
	stages
)

// Times are how long a request has taken, and its stages. Those that are 0 are not
// counted.
type Times struct {
	// Weight is how many requests it stands for.
	Weight                     uint32
	Total, Head, Wait, Handler time.Duration
}

// Answer counts a request that has ended. pattern is its route, "" for none; t is nil
// if it was not timed. handover: it has held a loop for so long that this went on
// without it.
func (s *Shard) Answer(driving bool, id ID, pattern string, t *Times, handover bool) {
	if driving && pattern == "" && t == nil { // inlined
		s.local[id]++
		return
	}
	s.answer(driving, id, pattern, t, handover)
}

func (s *Shard) answer(driving bool, id ID, pattern string, t *Times, handover bool) {
	if driving {
		s.local[id]++
		if t == nil && pattern != "" && !handover { // as most are
			count(s.own.routes.find(pattern), id)
			return
		}
		s.own.add(id, pattern, t, handover)
		return
	}
	if pattern == "" && t == nil {
		s.beside[id].Add(1)
		return
	}
	// Both under mu: a reader that had one without the other would take the request for one
	// without a route, and not the next time.
	s.mu.Lock()
	s.beside[id].Add(1)
	s.others.add(id, pattern, t, handover)
	s.mu.Unlock()
}

func (e *ended) add(id ID, pattern string, t *Times, handover bool) {
	var r *stats.Route
	if pattern != "" {
		r = e.routes.find(pattern)
		count(r, id)
		if handover {
			r.Handovers++
		}
	}
	if t == nil {
		return
	}
	n := uint64(t.Weight)
	for st, d := range [...]time.Duration{total: t.Total, head: t.Head, wait: t.Wait, handler: t.Handler} {
		if d != 0 {
			e.times[st].Observe(d, n)
		}
	}
	if r != nil {
		r.Duration.Observe(t.Total, n)
		if t.Handler != 0 {
			r.Handler.Observe(t.Handler, n)
		}
	}
}

// count counts a request of a route.
func count(r *stats.Route, id ID) {
	k := id - Answers
	r.Classes[k/ID(stats.Ways)%Classes]++
	r.Ways[k%ID(stats.Ways)]++
}

// Write counts a response that the client has accepted d after its handler returned.
func (s *Shard) Write(driving bool, d time.Duration) {
	if driving {
		s.own.times[write].Observe(d, 1)
		return
	}
	s.mu.Lock()
	s.others.times[write].Observe(d, 1)
	s.mu.Unlock()
}

// Turn counts a turn of the loop that was selected by Sampled. Only the driver may call
// it.
func (s *Shard) Turn(d time.Duration) {
	s.own.turn.Observe(d, 1)
}
