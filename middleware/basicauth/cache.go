package basicauth

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// cache has the credentials that were verified, by a hash that only this
// process can make: neither memory nor the time a lookup takes tells a password.
// Those that were wrong are not in it, so that guessing cannot fill it.
type cache struct {
	size   int
	keep   time.Duration
	secret [32]byte
	now    func() time.Time

	mu sync.RWMutex
	m  map[cacheKey]*known
}

type cacheKey [sha256.Size]byte

type known struct {
	name  string
	until time.Time
}

func (c *cache) init(size int, keep time.Duration) {
	c.size, c.keep, c.now, c.m = size, keep, time.Now, map[cacheKey]*known{}
	rand.Read(c.secret[:])
}

// key is the keyed hash of credentials. The name has no colon, so no two are
// the same bytes. The secret comes first and hashes stay here, so nothing can be
// appended to one.
func (c *cache) key(cr credentials) cacheKey {
	var buf [sha256.Size + maxField]byte
	return sha256.Sum256(append(append(buf[:0], c.secret[:]...), cr.b...))
}

// find returns the name, nil if there is none.
func (c *cache) find(key cacheKey) *string {
	c.mu.RLock()
	k := c.m[key]
	c.mu.RUnlock()
	if k == nil || !c.now().Before(k.until) {
		return nil
	}
	return &k.name
}

// add remembers credentials, and returns the name to keep.
func (c *cache) add(key cacheKey, name string) *string {
	k := &known{name, c.now().Add(c.keep)}
	if c.size <= 0 {
		return &k.name
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= c.size {
		c.shrink()
	}
	c.m[key] = k
	return &k.name
}

// shrink makes room: what is over goes, or else any.
func (c *cache) shrink() {
	now := c.now()
	for key, k := range c.m {
		if !now.Before(k.until) {
			delete(c.m, key)
		}
	}
	for key := range c.m {
		if len(c.m) < c.size {
			return
		}
		delete(c.m, key)
	}
}
