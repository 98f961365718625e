package observe

import (
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// This file keeps what the placement has learned lately.

// keptEvents is how many events are kept, and maxEventTarget how much of their targets,
// in bytes.
const (
	keptEvents     = 64
	maxEventTarget = 128
)

// placed are the events of a server's placement. They are rare: a proof takes dozens of
// requests. Safe for concurrent use.
type placed struct {
	mu                sync.Mutex
	proofs, demotions uint64
	recent            [keptEvents]stats.PlacementEvent // a ring
	n                 uint64                           // how many there have been
	// routes are the demotions of routes, and said those that were logged; at most
	// tally.MaxRoutes each.
	routes map[string]uint64
	said   map[string]bool
}

// add records an event. route: target is a route's pattern. It reports whether the log is
// to say so, and then a copy of target.
func (p *placed) add(e place.Event, route bool, method, target string, held time.Duration) (say bool, copied string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := strings.Clone(target[:min(len(target), maxEventTarget)])
	p.recent[p.n%keptEvents] = stats.PlacementEvent{
		At: time.Now(), Kind: e.String(), Method: strings.Clone(method), Target: name, Held: held,
	}
	p.n++
	switch e {
	case place.Proven:
		p.proofs++
	case place.Demoted:
		p.demotions++
		if _, ok := p.routes[name]; route && (ok || len(p.routes) < tally.MaxRoutes) {
			if p.routes == nil {
				p.routes = make(map[string]uint64)
			}
			p.routes[name]++
		}
		key := method + " " + name
		if say = !p.said[key] && len(p.said) < tally.MaxRoutes; say {
			if p.said == nil {
				p.said = make(map[string]bool)
			}
			p.said[key] = true
		}
	}
	return say, name
}

// fill sets what in a Snapshot is recorded here.
func (p *placed) fill(sn *stats.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sn.Placement.Proofs, sn.Placement.Demotions = p.proofs, p.demotions
	for i := max(p.n, keptEvents) - keptEvents; i < p.n; i++ {
		sn.Placement.Recent = append(sn.Placement.Recent, p.recent[i%keptEvents])
	}
	for i := range sn.Routes {
		r := &sn.Routes[i]
		r.Demotions += p.routes[r.Pattern[:min(len(r.Pattern), maxEventTarget)]]
	}
}

// Placed returns a place.Table's Changed. route: of the table of routes.
func (o *Server) Placed(route bool) func(place.Event, string, string, time.Duration) {
	return func(e place.Event, method, target string, held time.Duration) {
		say, name := o.placed.add(e, route, method, target, held)
		if say && *o.SlowAfter > 0 {
			// A loop may be waiting for this.
			go o.LogSoon("chert: %s %q is not quick any more, and runs on goroutines "+
				"until it is (a loop was held for %v)", method, name, held)
		}
	}
}
