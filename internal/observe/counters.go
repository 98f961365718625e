package observe

import (
	"crypto/tls"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// surveyFor is how long all loops together have to answer for a snapshot.
const surveyFor = 100 * time.Millisecond

// keptShards is how many Shards of loops that have ended are kept apart: handlers that
// have hijacked connections may still run, and are counted when they end.
const keptShards = 1024

// Counters is where a server counts. It must not be copied. Safe for concurrent use after
// Init.
type Counters struct {
	// Names are those of routes, for the Shards of loops.
	Names tally.Names

	since time.Time
	// shards are for connections on goroutines; immutable once there is one.
	shards []*tally.Shard
	next   atomic.Uint32

	mu    sync.Mutex
	ended []*tally.Shard // of loops that have ended
	past  tally.Counts   // of those that are not kept
	last  map[*loop.Loop]*view
	asked map[*loop.Loop]*question
	shook shook

	// inspect is held by the one that looks at requests or connections. late are
	// loops that have not answered it yet.
	inspect sync.Mutex
	late    map[*loop.Loop]<-chan struct{}
}

// A question to a loop is shared by all who ask before the loop begins to answer, so
// that its mail does not grow with them.
type question struct {
	v     view
	begun atomic.Bool
	done  chan struct{}
}

// ask asks a loop.
func (c *Counters) ask(l *loop.Loop) *question {
	c.mu.Lock()
	if q := c.asked[l]; q != nil && !q.begun.Load() {
		c.mu.Unlock()
		return q
	}
	q := &question{done: make(chan struct{})}
	if !slices.Contains(c.ended, &l.Tally) {
		c.asked[l] = q
	}
	c.mu.Unlock()
	l.Survey(func() {
		q.begun.Store(true)
		q.v.read(l)
		close(q.done)
	})
	return q
}

// maxLooks is how many slots of a loop are looked at for a snapshot: 0.5 ms. Of a loop with
// more the share of connections that are active is an estimate.
const maxLooks = 8192

// view is what a loop has answered.
type view struct {
	counts      tally.Counts
	state       loop.State
	connections int64
	active      int64
	at          int64 // when, of sys.Nanotime
}

// shook are handshakes that have ended.
type shook struct {
	versions        [2]uint64 // of shookVersions
	resumed, failed uint64
	late            uint64 // of failed: for want of time
	duration        stats.Histogram
	onGoroutines    atomic.Int64 // are running
}

var shookVersions = [...]string{"1.2", "1.3"}

// Init begins to count, once. goroutines is how many Shards there are for connections on
// goroutines.
func (c *Counters) Init(goroutines int) {
	c.since = time.Now()
	c.last, c.asked = make(map[*loop.Loop]*view), make(map[*loop.Loop]*question)
	c.late = make(map[*loop.Loop]<-chan struct{})
	for range goroutines {
		s := new(tally.Shard)
		s.Init(&c.Names)
		c.shards = append(c.shards, s)
	}
}

// Shard returns one for a connection on a goroutine.
func (c *Counters) Shard() *tally.Shard {
	return c.shards[c.next.Add(1)%uint32(len(c.shards))]
}

// Over keeps what a loop has counted that has ended.
func (c *Counters) Over(l *loop.Loop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, l)
	delete(c.asked, l)
	if c.ended = append(c.ended, &l.Tally); len(c.ended) > keptShards {
		c.past.Read(c.ended[0])
		c.ended = slices.Delete(c.ended, 0, 1)
	}
}

// Shaken counts a handshake that has taken d.
func (c *Counters) Shaken(state *tls.ConnectionState, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &c.shook
	if state.Version >= tls.VersionTLS13 {
		h.versions[1]++
	} else {
		h.versions[0]++
	}
	if state.DidResume {
		h.resumed++
	}
	h.duration.Observe(d, 1)
}

// ShakeFailed counts a handshake that has failed.
func (c *Counters) ShakeFailed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shook.failed++
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.shook.late++
	}
}

// Shaking counts a handshake on a goroutine that begins or, with -1, has ended.
func (c *Counters) Shaking(n int64) { c.shook.onGoroutines.Add(n) }
