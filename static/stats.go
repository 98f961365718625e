package static

import (
	"sync/atomic"
	"unsafe"

	"github.com/chert-http/chert/direct"
)

// Stats are what a Handler has done and holds.
type Stats struct {
	// Hits are requests that were answered from the cache, Misses those for
	// which a file or folder had to be looked at: also those that got an error.
	Hits, Misses int64
	// CachedBytes is the memory of the cache, in bytes, about. OpenFiles are the
	// descriptors that are kept open.
	CachedBytes int64
	OpenFiles   int
}

// Stats may be called at any time.
func (h *Handler) Stats() Stats {
	s := Stats{CachedBytes: h.cache.bytes(), OpenFiles: h.cache.files()}
	for i := range h.count {
		s.Hits += h.count[i].hits.Load()
		s.Misses += h.count[i].misses.Load()
	}
	return s
}

// counters are spread, so that event loops do not share a cache line for each
// request.
type counters [16]struct {
	hits, misses atomic.Int64
	_            [112]byte
}

// at is the place for x: servers reuse exchanges, each loop its own.
func (c *counters) at(x *direct.Exchange) int {
	return int(uintptr(unsafe.Pointer(x))>>10) % len(c)
}

func (c *counters) hit(x *direct.Exchange)  { c[c.at(x)].hits.Add(1) }
func (c *counters) miss(x *direct.Exchange) { c[c.at(x)].misses.Add(1) }
