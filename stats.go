package chert

import (
	"cmp"
	"crypto/tls"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// This file collects what a server has counted.

// surveyFor is how long all loops together have to answer for a snapshot.
const surveyFor = 100 * time.Millisecond

// keptShards is how many Shards of loops that have ended are kept apart: handlers that
// have hijacked connections may still run, and are counted when they end.
const keptShards = 1024

// counting is where a server counts. It must not be copied.
type counting struct {
	since time.Time
	names tally.Names
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
func (c *counting) ask(l *loop.Loop) *question {
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

// init is called with the server's lock held, before anything is counted.
func (c *counting) init(goroutines int) {
	c.since = time.Now()
	c.last, c.asked = make(map[*loop.Loop]*view), make(map[*loop.Loop]*question)
	c.late = make(map[*loop.Loop]<-chan struct{})
	for range goroutines {
		s := new(tally.Shard)
		s.Init(&c.names)
		c.shards = append(c.shards, s)
	}
}

// shard returns one for a connection on a goroutine.
func (c *counting) shard() *tally.Shard {
	return c.shards[c.next.Add(1)%uint32(len(c.shards))]
}

// over keeps what a loop has counted that has ended.
func (c *counting) over(l *loop.Loop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, l)
	delete(c.asked, l)
	if c.ended = append(c.ended, &l.Tally); len(c.ended) > keptShards {
		c.past.Read(c.ended[0])
		c.ended = slices.Delete(c.ended, 0, 1)
	}
}

// shaken counts a handshake that has taken d.
func (c *counting) shaken(state *tls.ConnectionState, d time.Duration) {
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

func (c *counting) shakeFailed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shook.failed++
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.shook.late++
	}
}

// Stats returns what the server has counted: requests, connections, bytes, system calls,
// times, and where handlers run. It can be called at any time, before the server serves
// and after it has shut down, and costs little enough for once a second. It waits for a
// busy loop for 100 ms at most. See docs/observability.md. Safe for concurrent use.
func (s *Server) Stats() stats.Snapshot {
	sn := stats.Snapshot{At: time.Now()}
	s.lock()
	sn.Since = s.counts.since
	sets := s.loopSets()
	engine := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	all := new(tally.Counts)
	c := &s.counts
	c.mu.Lock()
	ended := slices.Clone(c.ended)
	all.Merge(&c.past)
	c.shook.fill(&sn)
	c.mu.Unlock()
	for _, shard := range ended {
		all.Read(shard)
	}
	s.surveyAll(&sn, all, sets, ended)
	for _, shard := range c.shards {
		all.ReadBeside(shard)
	}
	all.Fill(&sn)
	s.placed.fill(&sn)
	s.fillConnections(&sn, all, engine)
	s.fillRefused(&sn)
	s.fillHandlers(&sn, all)
	n, size := buf.Lent()
	sn.Buffers, sn.BufferBytes = n, size
	return sn
}

// loopSets returns the sets of loops that have not ended, the oldest first. The lock is
// held.
func (s *Server) loopSets() (sets []*loopSet) {
	for set := range s.sets {
		sets = append(sets, set)
	}
	slices.SortFunc(sets, func(a, b *loopSet) int { return cmp.Compare(a.number, b.number) })
	return sets
}

// surveyAll asks all loops that have not ended at once, and waits for their answers.
func (s *Server) surveyAll(sn *stats.Snapshot, all *tally.Counts, sets []*loopSet, ended []*tally.Shard) {
	type asked struct {
		*question
		l    *loop.Loop
		mail int
		at   int64
	}
	var pending []asked
	for _, set := range sets {
		for _, l := range set.loops {
			if slices.Contains(ended, &l.Tally) {
				continue
			}
			a := asked{l: l, mail: l.Mailed(), at: sys.Nanotime()}
			a.question = s.counts.ask(l)
			pending = append(pending, a)
		}
	}
	timeout := time.NewTimer(surveyFor)
	defer timeout.Stop()
	expired := false
	for _, a := range pending {
		if !expired {
			select {
			case <-a.done:
			case <-timeout.C:
				expired = true
			}
		}
		v, stale := &a.v, false
		select {
		case <-a.done:
		default:
			stale = true
		}
		v = s.counts.latest(a.l, v, stale)
		out := stats.Loop{
			Turns: v.counts.Of(tally.Turns), Events: v.counts.Of(tally.Events),
			Inline: v.counts.Way(stats.Inline), Pooled: v.counts.Way(stats.Pooled), Direct: v.counts.Way(stats.Direct),
			Handovers: v.counts.Of(tally.Handovers), Yields: v.counts.Of(tally.Yields),
			Connections: v.connections, AtWork: int64(v.state.AtWork), Spare: int64(v.state.Spare),
			Mail: int64(a.mail), Requeued: int64(v.state.Requeued), Stale: stale, Turn: v.counts.Turn,
		}
		if out.Lag = time.Duration(v.at - a.at); stale {
			out.Lag = time.Duration(sys.Nanotime() - a.at)
		}
		sn.Loops = append(sn.Loops, out)
		sn.Connections.Active += v.active
		sn.Connections.Loops += v.connections
		all.Merge(&v.counts)
	}
}

// latest keeps v as a loop's latest answer, or, if that is stale, returns the one before.
func (c *counting) latest(l *loop.Loop, v *view, stale bool) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !stale {
		if !slices.Contains(c.ended, &l.Tally) {
			c.last[l] = v
		}
		return v
	}
	if v = c.last[l]; v == nil {
		v = new(view)
	}
	return v
}

// read is called by the loop's driver.
func (v *view) read(l *loop.Loop) {
	v.at = sys.Nanotime()
	v.counts.Read(&l.Tally)
	v.state = l.State()
	v.connections = v.counts.Gauge(tally.Accepted, tally.Closed)
	v.counts.AddWaits(v.state.Waits)
	from, looked := 0, int64(0)
	more := l.Slots() - maxLooks
	if more > 0 {
		from = rand.IntN(more + 1)
	}
	l.Socks(from, maxLooks, func(k loop.Sock) bool {
		if c, ok := k.(*conn.Conn); ok {
			if looked++; c.Active() {
				v.active++
			}
		}
		return true
	})
	if more > 0 && looked > 0 { // others must not wait for all of them
		v.active = v.active * max(v.connections, looked) / looked
	}
}

func (s *Server) fillConnections(sn *stats.Snapshot, all *tally.Counts, engine []*stream.Conn) {
	n := &sn.Connections
	n.Goroutines = int64(len(engine))
	for _, c := range engine {
		if c.Active() {
			n.Active++
		}
	}
	n.Open = n.Loops + n.Goroutines
	n.HTTP1 = max(n.Open-n.HTTP2-all.Gauge(tally.TakenBegun, tally.TakenEnded), 0)
}

// Reasons of refusals that concern connections.
var connectionReasons = []string{noPlace, noShare}

// fillRefused sets what was refused.
func (s *Server) fillRefused(sn *stats.Snapshot) {
	r := &s.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, n := range r.counts {
		to := &sn.Malformed
		if slices.Contains(connectionReasons, k.reason) {
			to = &sn.Connections.Refused
		}
		if i := slices.IndexFunc(*to, func(c stats.Count) bool { return c.Name == k.reason }); i >= 0 {
			(*to)[i].N += uint64(n) // of another status
		} else {
			*to = append(*to, stats.Count{Name: k.reason, N: uint64(n)})
		}
	}
	for _, list := range [][]stats.Count{sn.Malformed, sn.Connections.Refused} {
		slices.SortFunc(list, func(a, b stats.Count) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// fillHandlers sets what runs, and what waits. On loops that are the pooled goroutines
// that have something to do, but for those with a handshake.
func (s *Server) fillHandlers(sn *stats.Snapshot, all *tally.Counts) {
	running, waiting := s.shaking.Count()
	sn.TLS.Running += int64(running)
	sn.TLS.Waiting += int64(waiting)
	sn.Running = all.Gauge(tally.HandlersBegun, tally.HandlersEnded) - int64(running)
	for _, l := range sn.Loops {
		sn.Running += l.AtWork
	}
	sn.Running = max(sn.Running, 0)
	if s.slots != nil {
		sn.Waiting = int64(s.slots.Waiting())
	}
}

func (h *shook) fill(sn *stats.Snapshot) {
	for i, n := range h.versions {
		if n > 0 {
			sn.TLS.Versions = append(sn.TLS.Versions, stats.Count{Name: shookVersions[i], N: n})
		}
	}
	sn.TLS.Resumed, sn.TLS.Failed, sn.TLS.Duration = h.resumed, h.failed, h.duration
	sn.TLS.Running = h.onGoroutines.Load()
	if h.late > 0 {
		sn.Timeouts = append(sn.Timeouts, stats.Count{Name: "handshake", N: h.late})
	}
}
