package tally

import (
	"strings"
	"sync"
	"unsafe"

	"github.com/chert-http/chert/stats"
)

// MaxRoutes is how many routes a server counts by themselves.
const MaxRoutes = 256

// maxName is the length of the longest name, in bytes: a program could make patterns of
// what clients send.
const maxName = 512

// Names are the routes that a server counts by themselves: those that have come first.
// Safe for concurrent use.
type Names struct {
	mu  sync.Mutex
	all map[string]string
}

// of returns a copy of pattern, or stats.Other.
func (n *Names) of(pattern string) string {
	if n == nil || len(pattern) > maxName {
		return stats.Other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.all[pattern]
	switch {
	case ok:
		return name
	case len(n.all) >= MaxRoutes:
		return stats.Other
	case n.all == nil:
		n.all = make(map[string]string)
	}
	name = strings.Clone(pattern)
	n.all[name] = name
	return name
}

// routes are the routes of a Shard, or of a half of it.
type routes struct {
	names *Names
	by    map[string]*stats.Route
	// recent are those that were found last, by the address of the pattern that was
	// looked for: routers use the same string each time. It is compared nevertheless: the
	// memory of a pattern that was freed may hold other bytes by now.
	recent [recentRoutes]*stats.Route
}

const recentRoutes = 32

func (t *routes) find(pattern string) *stats.Route {
	at := uintptr(unsafe.Pointer(unsafe.StringData(pattern)))
	r := &t.recent[(at>>4^at>>10)%recentRoutes]
	if *r == nil || (*r).Pattern != pattern {
		*r = t.lookup(pattern)
	}
	return *r
}

func (t *routes) lookup(pattern string) *stats.Route {
	r, ok := t.by[pattern]
	if ok {
		return r
	}
	name := t.names.of(pattern)
	if r, ok = t.by[name]; ok {
		return r // Other
	}
	if t.by == nil {
		t.by = make(map[string]*stats.Route)
	}
	r = &stats.Route{Pattern: name}
	t.by[name] = r
	return r
}
