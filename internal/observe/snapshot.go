package observe

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// This file makes snapshots of what has been counted.

// Stats is chert.Server's.
func (o *Server) Stats() stats.Snapshot {
	sn := stats.Snapshot{At: time.Now()}
	now := o.Now()
	c := &o.Counters
	sn.Since = c.since
	all := new(tally.Counts)
	c.mu.Lock()
	ended := slices.Clone(c.ended)
	all.Merge(&c.past)
	c.shook.fill(&sn)
	c.mu.Unlock()
	for _, shard := range ended {
		all.Read(shard)
	}
	c.surveyAll(&sn, all, now.Loops, ended)
	for _, shard := range c.shards {
		all.ReadBeside(shard)
	}
	all.Fill(&sn)
	o.placed.fill(&sn)
	fillConnections(&sn, all, now.Streams)
	o.refusals.fill(&sn)
	now.fillHandlers(&sn, all)
	n, size := buf.Lent()
	sn.Buffers, sn.BufferBytes = n, size
	return sn
}

// surveyAll asks all loops that have not ended at once, and waits for their answers.
func (c *Counters) surveyAll(sn *stats.Snapshot, all *tally.Counts, loops []*loop.Loop, ended []*tally.Shard) {
	type asked struct {
		*question
		l    *loop.Loop
		mail int
		at   int64
	}
	var pending []asked
	for _, l := range loops {
		if slices.Contains(ended, &l.Tally) {
			continue
		}
		a := asked{l: l, mail: l.Mailed(), at: sys.Nanotime()}
		a.question = c.ask(l)
		pending = append(pending, a)
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
		v = c.latest(a.l, v, stale)
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
func (c *Counters) latest(l *loop.Loop, v *view, stale bool) *view {
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

func fillConnections(sn *stats.Snapshot, all *tally.Counts, engine []conn.Driven) {
	n := &sn.Connections
	n.Goroutines = int64(len(engine))
	for _, c := range engine {
		if c.Active() {
			n.Active++
		}
	}
	n.Open = n.Loops + n.Goroutines
	n.HTTP1 = max(n.Open-n.HTTP2-n.HTTP3-all.Gauge(tally.TakenBegun, tally.TakenEnded), 0)
}

// fillHandlers sets what runs, and what waits. On loops that are the pooled goroutines
// that have something to do, but for those with a handshake.
func (n *Now) fillHandlers(sn *stats.Snapshot, all *tally.Counts) {
	running, waiting := n.Handshakes.Count()
	sn.TLS.Running += int64(running)
	sn.TLS.Waiting += int64(waiting)
	sn.Running = all.Gauge(tally.HandlersBegun, tally.HandlersEnded) - int64(running)
	for _, l := range sn.Loops {
		sn.Running += l.AtWork
	}
	sn.Running = max(sn.Running, 0)
	if n.Slots != nil {
		sn.Waiting = int64(n.Slots.Waiting())
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
