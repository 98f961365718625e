package accept

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/sys"
)

// This file closes idle connections at the limit. A listener on a loop first
// tries its own loop; this file tries all others.

// seekFor bounds how long one search keeps others from beginning, in nanoseconds,
// in case the loop that it waits for has ended.
const seekFor = 10 * loop.BarrenFor

// Room looks for connections that can be spared.
type Room struct {
	// Streams returns up to most of the server's connections on goroutines, in a random
	// order, and Loops its loops.
	Streams func(most int) []conn.Driven
	Loops   func() []*loop.Loop

	until atomic.Int64 // before which no other search begins
}

// Seek closes connections that can be spared, on goroutines or on one of the loops, and
// does not wait for the result. The gate notifies waiters when there is room. There is
// one search at a time, and after one that found nothing, or whose connections are about
// to end, none for a while. Safe for concurrent use.
func (r *Room) Seek() {
	now, until := sys.Nanotime(), r.until.Load()
	if until != 0 && now < until || !r.until.CompareAndSwap(until, now+seekFor) {
		return
	}
	// In another goroutine: a loop must not wait for the server's lock.
	go func() {
		sched.Point("room", 0)
		if giveWay(r.Streams(streamSample)) {
			r.until.Store(sys.Nanotime() + loop.BarrenFor) // until they have ended
			return
		}
		r.seekOn(r.Loops())
	}()
}

// seekOn tries loop after loop until one has found something.
func (r *Room) seekOn(loops []*loop.Loop) {
	for i, l := range loops {
		if l.Do(func() {
			if l.GiveWay() {
				r.until.Store(0)
			} else {
				r.seekOn(loops[i+1:])
			}
		}) {
			return
		}
	}
	r.until.Store(sys.Nanotime() + loop.BarrenFor)
}

const (
	// streamSample is how many connections on goroutines are considered.
	streamSample = 256
	// streamsAtOnce bounds how many of them give way in one go: each needs some
	// milliseconds to make sure that no request has arrived meanwhile.
	streamsAtOnce = 32
)

// giveWay is Loop.GiveWay for connections on goroutines. An eighth of those
// that could be spared goes at once, as with nginx.
func giveWay(some []conn.Driven) bool {
	type spare struct {
		c     conn.Driven
		since int64
	}
	var spares []spare
	for _, c := range some {
		if since, ok := c.Spare(); ok {
			spares = append(spares, spare{c, since})
		}
	}
	slices.SortFunc(spares, func(a, b spare) int { return cmp.Compare(a.since, b.since) })
	n := min(max(len(spares)/8, 1), streamsAtOnce)
	done := false
	for _, x := range spares {
		if n > 0 && x.c.GiveWay() {
			done = true
			n--
		}
	}
	return done
}
