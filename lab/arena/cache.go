package main

import (
	"sync"
	"time"
)

const (
	lifetime = 200 * time.Millisecond
	shards   = 64
)

// cache keeps the JSON of items for 200 ms. All methods may be called concurrently.
//
// What was read from the database before an item was changed must not be put after the change has invalidated it: readers
// take a version first, which each invalidation of the shard changes.
type cache struct {
	shards [shards]shard
}

type shard struct {
	mu      sync.Mutex
	entries map[int]entry
	version uint64
	swept   time.Time
}

type entry struct {
	body    []byte
	expires time.Time
}

func newCache() *cache {
	c := &cache{}
	for i := range c.shards {
		c.shards[i].entries = map[int]entry{}
	}
	return c
}

func (c *cache) of(id int) *shard { return &c.shards[uint(id)%shards] }

// get returns what is kept, or nil.
func (c *cache) get(id int) []byte {
	s, now := c.of(id), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[id]; ok && now.Before(e.expires) {
		return e.body
	}
	return nil
}

func (c *cache) version(id int) uint64 {
	s := c.of(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// put keeps a body that was read since version was taken, unless something was invalidated meanwhile.
func (c *cache) put(id int, body []byte, version uint64) {
	s, now := c.of(id), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != version {
		return
	}
	// So there are never more entries than two lifetimes have brought.
	if now.Sub(s.swept) > lifetime {
		s.swept = now
		for id, e := range s.entries {
			if !now.Before(e.expires) {
				delete(s.entries, id)
			}
		}
	}
	s.entries[id] = entry{body, now.Add(lifetime)}
}

func (c *cache) invalidate(id int) {
	s := c.of(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	delete(s.entries, id)
}
