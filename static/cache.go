package static

import (
	"math"

	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/maypok86/otter/v2"
)

// A kind tells apart what is kept under one name.
//
//	0-3    the file in the coding of that number
//	4-7    the same, answered for paths that are not there (Options.SPA)
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
// a path that is found as it came needs no other look.
type key struct {
	name string
	kind kind
}

func (k key) coding() coding.Coding { return coding.Coding(k.kind & 3) }

func (k key) in(c coding.Coding) key { return key{k.name, k.kind&^3 | kind(c)} }

// cache is what is kept: small entries by their bytes, entries with a
// descriptor by their number. Either may be nil, which keeps nothing.
//
// otter decides by frequency and recency what stays. It works on the calling
// goroutine: nothing runs when no request does.
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
			// Also for those that are replaced, or not let in. It only counts,
			// and closes: no call of the cache from here.
			OnDeletion: func(e otter.DeletionEvent[key, *entry]) { e.Value.release() },
		})
	}
	return out
}

// get gives the entry, which release must be called for, or nil. It does not
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

// put keeps e, if it can.
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

// drop forgets e, but not another that has taken its place.
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

// sweep forgets the descriptors of files that have no name any more: else those
// that nobody asks for would keep the disk from being freed.
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
