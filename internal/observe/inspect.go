package observe

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/stats"
)

// This file shows what a server does at the moment. Each loop walks over its own
// connections, which costs it about 100 ns for each, in parts of 0.1 ms: what the others
// have to do comes between them.

// A part is this many slots of a loop, or, of a loop with more than partSlots * maxParts,
// as many as make maxParts of them: each takes a turn of the loop, and survey waits for
// all.
const (
	partSlots = 1024
	maxParts  = 32
)

// RunningRequests is chert.Server's.
func (o *Server) RunningRequests(max int) []stats.Request {
	all := survey(o, func(c *conn.Conn, index int, to *oldest[stats.Request]) bool {
		c.Running(to.before, func(r stats.Request, since int64) {
			r.Loop = index
			to.add(r, since)
		})
		return true
	}, func(c conn.Driven, to *oldest[stats.Request]) bool {
		c.Running(to.before, func(r stats.Request, since int64) {
			r.Loop = -1
			to.add(r, since)
		})
		return true
	}, max)
	out := make([]stats.Request, 0, len(all))
	at := time.Now().Add(-time.Duration(sys.Nanotime()))
	for _, x := range all {
		x.what.Began = at.Add(time.Duration(x.since))
		out = append(out, x.what)
	}
	return out
}

// OpenConnections is chert.Server's.
func (o *Server) OpenConnections(max int) []stats.Connection {
	all := survey(o, func(c *conn.Conn, index int, to *oldest[stats.Connection]) bool {
		what, since := c.Inspect()
		what.Loop = index
		to.all = append(to.all, aged[stats.Connection]{what, since})
		return len(to.all) < max
	}, func(c conn.Driven, to *oldest[stats.Connection]) bool {
		what, since := c.Inspect()
		to.all = append(to.all, aged[stats.Connection]{what, since})
		return len(to.all) < max
	}, max)
	out := make([]stats.Connection, 0, len(all))
	at := time.Now().Add(-time.Duration(sys.Nanotime()))
	for _, x := range all {
		if x.since != 0 {
			x.what.Since = at.Add(time.Duration(x.since))
		}
		out = append(out, x.what)
	}
	return out
}

// oldest are the max that have begun first.
type oldest[T any] struct {
	max    int
	all    []aged[T]
	before int64 // those that came later are not wanted any more
}

// aged is something since a time of sys.Nanotime.
type aged[T any] struct {
	what  T
	since int64
}

func (o *oldest[T]) add(what T, since int64) {
	if o.all = append(o.all, aged[T]{what, since}); len(o.all) >= 2*o.max {
		o.cut()
	}
}

// cut drops those that are too many.
func (o *oldest[T]) cut() {
	slices.SortStableFunc(o.all, func(a, b aged[T]) int { return cmp.Compare(a.since, b.since) })
	if len(o.all) >= o.max {
		o.all = o.all[:o.max]
		o.before = o.all[o.max-1].since
	}
}

// survey calls onLoop for each connection of the loops, there, and beside for those on
// goroutines, here, until they return false, and returns what they have found. Callers
// wait for each other, and a loop that has not answered one is not asked by the next: what
// a loop has to look at does not grow with them.
func survey[T any](
	o *Server, onLoop func(c *conn.Conn, index int, to *oldest[T]) bool,
	beside func(conn.Driven, *oldest[T]) bool, max int,
) []aged[T] {
	if max <= 0 {
		return nil
	}
	c := &o.Counters
	c.inspect.Lock()
	defer c.inspect.Unlock()
	fresh := func() *oldest[T] { return &oldest[T]{max: max, before: poll.Never} }
	now := o.Now()
	maps.DeleteFunc(c.late, func(l *loop.Loop, done <-chan struct{}) bool {
		select {
		case <-done:
			return true
		default: // one that has failed never will
			return !slices.Contains(now.Loops, l)
		}
	})
	var pending []*surveyed[T]
	for i, l := range now.Loops {
		pending = append(pending, &surveyed[T]{l: l, index: i, to: fresh()})
	}
	answers := make(chan *surveyed[T], len(pending)) // so that no loop waits
	left := 0
	for _, a := range pending {
		if c.late[a.l] == nil {
			a.ask(onLoop, answers)
			left++
		}
	}
	found := fresh()
	for _, c := range now.Streams {
		if !beside(c, found) {
			break
		}
	}
	found.cut()
	all := found.all
	timeout := time.NewTimer(surveyFor)
	defer timeout.Stop()
	for left > 0 {
		select {
		case a := <-answers:
			if a.next != 0 {
				a.ask(onLoop, answers)
				continue
			}
			a.to.cut()
			all = append(all, a.to.all...)
			a.done = nil
			left--
		case <-timeout.C:
			for _, a := range pending {
				if a.done != nil {
					c.late[a.l] = a.done
				}
			}
			left = 0
		}
	}
	slices.SortStableFunc(all, func(a, b aged[T]) int { return cmp.Compare(a.since, b.since) })
	return all
}

// surveyed is a loop that is asked for what it has.
type surveyed[T any] struct {
	l     *loop.Loop
	index int
	next  int // its first slot that it has not looked at; 0 if there is none
	to    *oldest[T]
	done  <-chan struct{} // of the part that it is asked for; nil when it has answered all
}

// ask asks it for the next part.
func (a *surveyed[T]) ask(onLoop func(c *conn.Conn, index int, to *oldest[T]) bool, answers chan<- *surveyed[T]) {
	a.done = a.l.Survey(func() {
		n := max(partSlots, a.l.Slots()/maxParts)
		a.next = a.l.Socks(a.next, n, func(k loop.Sock) bool {
			c, ok := k.(*conn.Conn)
			return !ok || onLoop(c, a.index, a.to)
		})
		answers <- a
	})
}
