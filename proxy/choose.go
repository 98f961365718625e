package proxy

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/balance"
	"github.com/chert-http/chert/internal/health"
	"github.com/chert-http/chert/internal/reason"
)

// choice is what the choice of a request's server depends on.
type choice struct {
	key   uint64 // for PolicyHash and PolicySticky
	fresh bool   // key was made for this request
	tried []*balance.Server
}

// pick is a server that was chosen for a try. It counts as a request in flight until
// release.
type pick struct {
	*member
	ticket health.Ticket
	once   sync.Once
}

// release ends the try.
func (p *pick) release() {
	p.once.Do(func() {
		p.entry.slots.Add(-1)
		p.entry.bal.Release()
		p.entry.pool.wake()
	})
}

// abandon releases a server that was not used.
func (p *pick) abandon() {
	p.entry.ref.Abandon(p.ticket)
	p.release()
}

// reserve counts a request, unless there are most.
func (e *entry) reserve(most int) bool {
	for {
		n := e.slots.Load()
		if most > 0 && n >= int64(most) {
			return false
		}
		if e.slots.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// attempt chooses among the servers that have room. full: there are others.
func (u *Upstream) attempt(g *generation, c *choice) (p *pick, full bool) {
	skip := c.tried[:len(c.tried):len(c.tried)]
	for {
		at := now()
		b := g.set.Acquire(&balance.Request{Now: at, Key: c.key, Random: rand.Uint64(), Tried: skip, Fresh: c.fresh})
		if b == nil {
			return nil, full
		}
		m := g.byBal[b]
		if !m.entry.reserve(m.most) {
			full = true
			b.Release()
			skip = append(skip, b)
			continue
		}
		p = &pick{member: m}
		if b.Draining() {
			return p, false // a session that it has; health has no ticket for that
		}
		var ok bool
		if p.ticket, ok = m.entry.ref.Admit(at, g.set.Panics(at)); ok {
			return p, false
		}
		p.release()
		skip = append(skip, b)
	}
}

// choose returns a server for the first try of a request, for which it waits if the
// Upstream has a queue.
func (u *Upstream) choose(ctx context.Context, c *choice) (*pick, reason.Code, error) {
	if code := u.await(ctx); code != reason.None {
		return nil, code, nil
	}
	g := u.current.Load()
	if len(g.members) == 0 {
		return nil, g.failed, g.err
	}
	full := true
	if u.waiting.len() == 0 { // otherwise those come first
		var p *pick
		if p, full = u.attempt(g, c); p != nil {
			return p, reason.None, nil
		}
	}
	if !full {
		return nil, reason.NoServer, nil
	}
	p, code := u.queue(ctx, c)
	return p, code, nil
}

// await waits until names have been resolved for the first time.
func (u *Upstream) await(ctx context.Context) reason.Code {
	g := u.current.Load()
	if len(g.members) > 0 || !u.resolves() {
		return reason.None
	}
	select {
	case <-u.ready:
		return reason.None
	default:
	}
	limit := u.o.ConnectTimeout
	if limit == 0 {
		limit = resolveTimeout
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-u.ready:
		return reason.None
	case <-timer.C:
		return reason.DNSTimeout
	case <-ctx.Done():
		return reason.ClientGone
	}
}

// queue waits for a server that has room.
func (u *Upstream) queue(ctx context.Context, c *choice) (*pick, reason.Code) {
	wake := make(chan struct{}, 1)
	w := &waiter{func() {
		select {
		case wake <- struct{}{}:
		default: // it is about to look
		}
	}}
	if !u.waiting.enter(w, u.o.Queue) {
		return nil, reason.QueueFull
	}
	p := u.pool
	p.waiters.Add(1)
	defer func() {
		p.waiters.Add(-1)
		u.waiting.leave(w)
	}()
	var timeout <-chan time.Time
	if u.o.QueueTimeout > 0 {
		timer := time.NewTimer(u.o.QueueTimeout)
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		// A server may have got room before this request was in the queue.
		if u.waiting.first(w) {
			g := u.current.Load()
			pick, full := u.attempt(g, c)
			switch {
			case pick != nil:
				return pick, reason.None
			case !full:
				return nil, reason.NoServer
			}
		}
		select {
		case <-wake:
		case <-timeout:
			return nil, reason.QueueTimeout
		case <-ctx.Done():
			return nil, reason.ClientGone
		case <-u.ctx.Done():
			return nil, reason.NoServer
		}
	}
}

// queue is the requests that wait for a server of an Upstream, in order.
type queue struct {
	mu   sync.Mutex
	list []*waiter
}

// waiter is one of them.
type waiter struct {
	// wake has it look for a server. It is called with the queue's lock held, and not for each change.
	wake func()
}

// enter adds w, unless there are most.
func (q *queue) enter(w *waiter, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) >= most {
		return false
	}
	q.list = append(q.list, w)
	return true
}

// leave removes w, and wakes the next one: there may be room for it too.
func (q *queue) leave(w *waiter) {
	q.mu.Lock()
	q.list = slices.DeleteFunc(q.list, func(o *waiter) bool { return o == w })
	q.mu.Unlock()
	q.signal()
}

func (q *queue) first(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) > 0 && q.list[0] == w
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list)
}

// signal wakes the first one.
func (q *queue) signal() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) > 0 {
		q.list[0].wake()
	}
}

// wake lets requests that wait look for a server again.
func (p *Pool) wake() {
	if p.waiters.Load() == 0 {
		return
	}
	for _, u := range p.list() {
		u.waiting.signal()
	}
}
