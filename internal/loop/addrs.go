package loop

import (
	"hash/maphash"
	"sync"
)

// addrShards is how many maps share the addresses: all loops accept at the same time, and a
// map that grows to half a million addresses is copied by those that wait for its lock.
const addrShards = 64

// addrs counts the connections of each client address. Safe for concurrent use.
type addrs struct {
	most   int
	seed   maphash.Seed
	shards [addrShards]addrShard
}

type addrShard struct {
	mu    sync.Mutex
	count map[string]int
	_     [48]byte // a cache line each
}

func newAddrs(most int) *addrs {
	a := &addrs{most: most, seed: maphash.MakeSeed()}
	for i := range a.shards {
		a.shards[i].count = make(map[string]int)
	}
	return a
}

func (a *addrs) shard(host string) *addrShard {
	return &a.shards[maphash.String(a.seed, host)%addrShards]
}

// add counts a connection, unless its address may have no more if bounded, and reports
// whether it has.
func (a *addrs) add(host string, bounded bool) bool {
	s := a.shard(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	if bounded && s.count[host] >= a.most {
		return false
	}
	s.count[host]++
	return true
}

// remove uncounts one.
func (a *addrs) remove(host string) {
	s := a.shard(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[host]--; s.count[host] <= 0 {
		delete(s.count, host)
	}
}
