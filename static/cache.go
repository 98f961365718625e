package static

import (
	"math"

	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/maypok86/otter/v2"
)

// A kind distinguishes the entries of one name.
//
//	0-3    the file in the coding of that number
//	4-7    the same, sent for paths that do not exist (Options.SPA)
//	8      the file as the body of 404s
//	64-127 the folder's listing, in the coding of bits 0-1: column in bits 4-5,
//	       descending in 3, JSON in 2
type kind uint8

const (
	kindFallback kind = 4
	kindNotFound kind = 8
	kindListing  kind = 64

	// Of a listing.
	kindJSON        kind = 4
	kindDescending  kind = 8
	kindColumnShift      = 4
)

// A key's name is always one that may be served: clean, possible, not hidden. So
// a path that is found as received needs no other check.
type key struct {
	name string
	kind kind
}

func (k key) coding() coding.Coding { return coding.Coding(k.kind & 3) }

func (k key) in(c coding.Coding) key { return key{k.name, k.kind&^3 | kind(c)} }

// cache holds small entries, bounded by their bytes, and entries with a
// descriptor, bounded by their number. Either may be nil, which holds nothing.
//
// otter decides by frequency and recency what stays. It works on the calling
// goroutine: nothing runs between requests.
type cache struct {
	small, large *otter.Cache[key, *entry]
}

func newCache(c *config, keeps bool) *cache {
	inline := func(f func()) { f() }
	out := new(cache)
	if c.CacheBytes > 0 {
		out.small = otter.Must(&otter.Options[key, *entry]{
			MaximumWeight: uint64(c.CacheBytes), Executor: inline,
			Weigher: func(_ key, e *entry) uint32 { return uint32(min(e.weight(), math.MaxUint32)) },
		})
	}
	if keeps && c.OpenFiles > 0 {
		out.large = otter.Must(&otter.Options[key, *entry]{
			MaximumSize: c.OpenFiles, Executor: inline,
			// Also called for entries that are replaced or rejected. It only
			// counts, and closes: it must not call the cache.
			OnDeletion: func(e otter.DeletionEvent[key, *entry]) { e.Value.release() },
		})
	}
	return out
}

// get returns the entry, which the caller must release, or nil. It does not
// keep k.name.
func (c *cache) get(k key) *entry {
	if c.small != nil {
		if e, ok := c.small.GetIfPresent(k); ok {
			return e
		}
	}
	if c.large != nil {
		if e, ok := c.large.GetIfPresent(k); ok && e.acquire() {
			return e
		}
	}
	return nil
}

// put adds e, if there is room.
func (c *cache) put(e *entry) {
	from, to := c.large, c.small
	if e.file != nil {
		from, to = to, from
		if to != nil {
			e.acquire() // the cache's use
		}
	}
	if to != nil {
		to.Set(e.key, e)
	}
	if from != nil {
		// A file that has grown or shrunk.
		from.Invalidate(e.key)
	}
}

// drop removes e, but not an entry that has replaced it.
func (c *cache) drop(e *entry) {
	in := c.small
	if e.file != nil {
		in = c.large
	}
	if in == nil {
		return
	}
	in.ComputeIfPresent(e.key, func(old *entry) (*entry, otter.ComputeOp) {
		if old == e {
			return nil, otter.InvalidateOp
		}
		return nil, otter.CancelOp
	})
}

// shed closes the descriptors that are not in use.
func (c *cache) shed() {
	if c.large != nil {
		c.large.InvalidateAll()
	}
}

// sweep removes the descriptors of files that have been unlinked: those that
// are not requested again would keep their disk space from being freed.
func (c *cache) sweep() {
	if c.large == nil {
		return
	}
	for e := range c.large.Values() {
		if e.acquire() {
			gone := unlinked(e.fd)
			if gone {
				c.drop(e)
			}
			e.release()
		}
	}
}

func (c *cache) clear() {
	c.shed()
	if c.small != nil {
		c.small.InvalidateAll()
	}
}

func (c *cache) bytes() int64 {
	if c.small == nil {
		return 0
	}
	return int64(c.small.WeightedSize())
}

func (c *cache) files() int {
	if c.large == nil {
		return 0
	}
	return c.large.EstimatedSize()
}
