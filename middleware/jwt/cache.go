package jwt

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A cache holds verified tokens by their SHA-256, so that it stores no
// credentials. It is bounded by count and by bytes. A result must still be
// within its time, and verified with the current keys: the cache returns what
// verifying would.
//
// Each shard has two generations. A token that is used moves to the young one;
// when that is full the old one is dropped.
type cache struct{ shards []shard }

type digest = [sha256.Size]byte

type shard struct {
	mu         sync.Mutex
	young, old map[digest]*carried
	bytes      int // of young

	maxCount, maxBytes int // of a generation
}

// newCache returns nil for a count of 0.
func newCache(count, bytes int) *cache {
	if count == 0 {
		return nil
	}
	n := 1
	if count >= 1024 { // with less, one would be full long before the others
		n = 16
	}
	c := &cache{make([]shard, n)}
	for i := range c.shards {
		c.shards[i] = shard{
			young: map[digest]*carried{}, old: map[digest]*carried{},
			maxCount: max(count/n/2, 1), maxBytes: bytes / n / 2,
		}
	}
	return c
}

func (c *cache) shard(d *digest) *shard { return &c.shards[int(d[0])%len(c.shards)] }

// get returns nil if there is none that is valid at now, with the keys of set.
func (c *cache) get(d *digest, set *published, now time.Time) *carried {
	s := c.shard(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	t, young := s.young[*d]
	if !young {
		if t = s.old[*d]; t == nil {
			return nil
		}
		delete(s.old, *d)
	}
	if t.set != set || t.window.check(now) != nil {
		if young {
			delete(s.young, *d)
			s.bytes -= t.size
		}
		return nil
	}
	if !young {
		s.add(d, t)
	}
	return t
}

func (c *cache) put(d *digest, t *carried) {
	s := c.shard(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.old, *d)
	if had := s.young[*d]; had != nil { // another goroutine verified it meanwhile
		delete(s.young, *d)
		s.bytes -= had.size
	}
	s.add(d, t)
}

// add adds a token that is not there yet. mu is held.
func (s *shard) add(d *digest, t *carried) {
	if t.size > s.maxBytes {
		return
	}
	if len(s.young) >= s.maxCount || s.bytes+t.size > s.maxBytes {
		s.young, s.old = s.old, s.young
		clear(s.young)
		s.bytes = 0
	}
	s.young[*d] = t
	s.bytes += t.size
}

// sizeOf estimates the bytes that a decoded claim takes.
func sizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return 32 + len(v)
	case []any:
		n := 40
		for _, e := range v {
			n += sizeOf(e)
		}
		return n
	case map[string]any:
		n := 48 + 300 // a map has room for eight from the first
		for name, e := range v {
			n += 48 + len(name) + sizeOf(e)
		}
		return n
	}
	return 24
}
