package basicauth

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// cache holds credentials that were verified, by a hash that only this process
// can compute: neither memory nor the time of a lookup reveals a password.
// Wrong credentials are not in it, so that guessing cannot fill it.
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

// key is the keyed hash of credentials. A name has no colon, so the encoding is
// unique. The secret comes first and hashes never leave the process, so
// extending one is no attack.
func (c *cache) key(cr credentials) cacheKey {
	var buf [sha256.Size + maxField]byte
	return sha256.Sum256(append(append(buf[:0], c.secret[:]...), cr.b...))
}

// find returns the name, nil if the credentials are not cached.
func (c *cache) find(key cacheKey) *string {
	c.mu.RLock()
	k := c.m[key]
	c.mu.RUnlock()
	if k == nil || !c.now().Before(k.until) {
		return nil
	}
	return &k.name
}

// add caches credentials, and returns the name to use.
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

// shrink makes room: it removes entries that have expired, or else any.
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
