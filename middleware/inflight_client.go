package middleware

import (
	"hash/maphash"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// perClient implements InFlightOptions.PerClient.
func perClient(opt InFlightOptions, after []string) func(http.Handler) http.Handler {
	if opt.PerClient <= 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	all := newClients(opt.PerClient)
	tooMany := wrap.Refusal(http.StatusTooManyRequests, after...)
	return filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome {
		p := all.enter(c.RemoteAddr())
		if p == nil {
			return c.Refuse(tooMany)
		}
		if !c.Direct() {
			p.holders.Store(2) // before Sent, which may be called at once
			defer p.drop()
			if w, _ := c.Plain(); !wire.Watch(w, p) {
				p.drop()
			}
			return next.Serve(c)
		}
		p.holders.Store(1)
		watched := false
		defer func() {
			if !watched {
				p.drop()
			}
		}()
		o := next.Serve(c)
		if o == filter.Responded {
			c.Wire().Watch(p)
			watched = true
		}
		return o
	})
}

// clientShards is the number of locks that clients are spread over.
const clientShards = 64

// clients counts the requests of each client. It has an entry for each that has one, so
// it is bounded by the number of requests.
type clients struct {
	max    int
	seed   maphash.Seed
	shards [clientShards]clientShard
}

type clientShard struct {
	mu sync.Mutex
	n  map[clientKey]int
	_  [48]byte
}

// clientKey is an IPv4 address in the form of IPv6, or the first half of one of IPv6.
type clientKey [16]byte

func newClients(max int) *clients {
	c := &clients{max: max, seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].n = make(map[clientKey]int)
	}
	return c
}

// noAddress is the key of clients without one. No other has a last byte without the
// ffff of IPv4.
var noAddress = clientKey{15: 1}

func clientOf(remote string) clientKey {
	if isLocal(remote) {
		return noAddress
	}
	addr, ok := addrOf(remote)
	if !ok {
		return noAddress
	}
	key := clientKey(addr.As16())
	if !addr.Is4() {
		clear(key[8:])
	}
	return key
}

// enter counts a request, and returns nil if its client has too many.
func (c *clients) enter(remote string) *present {
	key := clientOf(remote)
	s := &c.shards[maphash.Bytes(c.seed, key[:])%clientShards]
	s.mu.Lock()
	n := s.n[key]
	if n < c.max {
		s.n[key] = n + 1
	}
	s.mu.Unlock()
	if n >= c.max {
		return nil
	}
	p := presents.Get().(*present)
	p.in, p.key = s, key
	return p
}

func (s *clientShard) leave(key clientKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.n[key]; n > 1 {
		s.n[key] = n - 1
	} else {
		delete(s.n, key)
	}
}

// present is a request that is counted, as long as it has holders: its handler and its
// response.
type present struct {
	in      *clientShard
	key     clientKey
	holders atomic.Int32
}

var presents = sync.Pool{New: func() any { return new(present) }}

func (p *present) drop() {
	if p.holders.Add(-1) > 0 {
		return
	}
	p.in.leave(p.key)
	p.in = nil
	presents.Put(p)
}

// Keep implements wire.Watcher.
func (p *present) Keep() {}

// Sent implements wire.Watcher.
func (p *present) Sent(wire.Delivery) { p.drop() }

// Forget implements wire.Forgetter.
func (p *present) Forget() { p.drop() }
