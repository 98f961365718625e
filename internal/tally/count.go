package tally

import (
	"slices"

	"github.com/chert-http/chert/stats"
)

// Counts are what one or several Shards have counted.
type Counts struct {
	of     [IDs]uint64
	times  [stages]stats.Histogram
	Turn   stats.Histogram
	routes map[string]*stats.Route
}

// Read adds what s has counted. The caller drives the loop, or knows that nothing
// drives it any more.
func (c *Counts) Read(s *Shard) {
	for i, n := range s.local {
		c.of[i] += n
	}
	c.add(&s.own)
	c.ReadBeside(s)
}

// ReadBeside adds what goroutines that do not drive the loop have counted. Safe for
// concurrent use of s.
func (c *Counts) ReadBeside(s *Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.add(&s.others)
	for i := range s.beside {
		c.of[i] += s.beside[i].Load()
	}
}

func (c *Counts) add(e *ended) {
	for i := range e.times {
		c.times[i].Merge(&e.times[i])
	}
	c.Turn.Merge(&e.turn)
	for name, r := range e.routes.by {
		c.route(name).merge(r)
	}
}

// Merge adds o.
func (c *Counts) Merge(o *Counts) {
	for i, n := range o.of {
		c.of[i] += n
	}
	for i := range o.times {
		c.times[i].Merge(&o.times[i])
	}
	c.Turn.Merge(&o.Turn)
	for name, r := range o.routes {
		c.route(name).merge(r)
	}
}

type route stats.Route

func (c *Counts) route(name string) *route {
	r, ok := c.routes[name]
	if !ok {
		if c.routes == nil {
			c.routes = make(map[string]*stats.Route)
		}
		r = &stats.Route{Pattern: name}
		c.routes[name] = r
	}
	return (*route)(r)
}

func (r *route) merge(o *stats.Route) {
	for i, n := range o.Classes {
		r.Classes[i] += n
	}
	for i, n := range o.Ways {
		r.Ways[i] += n
	}
	r.Duration.Merge(&o.Duration)
	r.Handler.Merge(&o.Handler)
	r.Handovers += o.Handovers
	r.Demotions += o.Demotions
}

// Of returns a counter.
func (c *Counts) Of(id ID) uint64 { return c.of[id] }

// AddWaits adds system calls that wait for events, which a loop's poller counts.
func (c *Counts) AddWaits(n uint64) { c.of[Waits] += n }

// Gauge returns how many of what begun counts have not ended.
func (c *Counts) Gauge(begun, ended ID) int64 { return int64(c.of[begun] - c.of[ended]) }

// Way returns how many requests have gone one way.
func (c *Counts) Way(w stats.Way) (n uint64) {
	for p := range Proto(Protos) {
		for class := range uint8(Classes) {
			n += c.of[AnswerOf(p, class, w)]
		}
	}
	return n
}

// Fill sets what in a Snapshot is counted here.
func (c *Counts) Fill(s *stats.Snapshot) {
	n := &s.Connections
	n.Accepted, n.Closed, n.Hijacked = c.of[Accepted], c.of[Closed], c.of[Hijacked]
	n.HTTP2 = c.Gauge(HTTP2Begun, HTTP2Ended)
	n.HTTP3 = c.Gauge(HTTP3Begun, HTTP3Ended)
	n.WebSockets = c.Gauge(WebSocketsBegun, WebSocketsEnded)
	n.EventStreams = c.Gauge(EventStreamsBegun, EventStreamsEnded)
	s.TLS.EarlyRequests = c.of[Early]
	s.BytesRead, s.BytesWritten = c.of[BytesRead], c.of[BytesWritten]
	s.Syscalls, s.Timeouts = c.list(syscalls), append(s.Timeouts, c.list(timeouts)...)
	s.Total, s.Head, s.Wait, s.Handler, s.Write = c.times[total], c.times[head], c.times[wait], c.times[handler],
		c.times[write]
	c.fillRequests(s)
	c.fillRoutes(s)
}

// list returns the counters that are not 0, in the order of their IDs.
func (c *Counts) list(names map[ID]string) (all []stats.Count) {
	for id := range IDs {
		if name := names[id]; name != "" && c.of[id] != 0 {
			all = append(all, stats.Count{Name: name, N: c.of[id]})
		}
	}
	return all
}

func (c *Counts) fillRequests(s *stats.Snapshot) {
	for p := range Proto(Protos) {
		for class := range Classes {
			for w := range stats.Ways {
				if n := c.of[AnswerOf(p, uint8(class), w)]; n != 0 {
					s.Requests = append(s.Requests, stats.Requests{Protocol: p.String(), Class: class, Way: w, N: n})
				}
			}
		}
	}
}

// fillRoutes sets the routes. Requests without one are not counted as such, which would
// cost each of them something: they are what is left of all.
func (c *Counts) fillRoutes(s *stats.Snapshot) {
	rest := stats.Route{Pattern: stats.NoRoute, Duration: s.Total, Handler: s.Handler}
	for _, r := range s.Requests {
		rest.Classes[r.Class] += r.N
		rest.Ways[r.Way] += r.N
	}
	for _, r := range c.routes {
		s.Routes = append(s.Routes, *r)
		take(rest.Classes[:], r.Classes[:])
		take(rest.Ways[:], r.Ways[:])
		take(rest.Duration.Counts[:], r.Duration.Counts[:])
		take(rest.Handler.Counts[:], r.Handler.Counts[:])
		rest.Duration.Sum = max(rest.Duration.Sum-r.Duration.Sum, 0)
		rest.Handler.Sum = max(rest.Handler.Sum-r.Handler.Sum, 0)
	}
	if rest.N() > 0 {
		s.Routes = append(s.Routes, rest)
	}
	slices.SortFunc(s.Routes, func(a, b stats.Route) int {
		switch {
		case a.Pattern < b.Pattern:
			return -1
		case a.Pattern > b.Pattern:
			return 1
		}
		return 0
	})
}

// take subtracts b. Shards are read so that the whole has what its parts have; if one was
// not, less than nothing would be a very large number.
func take(a, b []uint64) {
	for i, n := range b {
		a[i] -= min(n, a[i])
	}
}
