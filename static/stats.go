package static

import (
	"sync/atomic"
	"unsafe"

	"github.com/chert-http/chert/direct"
)

// Stats are a Handler's counters and the size of its cache.
type Stats struct {
	// Hits counts requests that were answered from the cache, Misses those that
	// needed the file system, including those that got an error.
	Hits, Misses int64
	// CachedBytes is the approximate memory of the cache, in bytes. OpenFiles is
	// the number of descriptors that are kept open.
	CachedBytes int64
	OpenFiles   int
}

// Stats returns the current statistics. Safe for concurrent use.
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

// at returns the counter for x: servers reuse exchanges, each loop its own.
func (c *counters) at(x *direct.Exchange) int {
	return int(uintptr(unsafe.Pointer(x))>>10) % len(c)
}

func (c *counters) hit(x *direct.Exchange)  { c[c.at(x)].hits.Add(1) }
func (c *counters) miss(x *direct.Exchange) { c[c.at(x)].misses.Add(1) }
