package link

import "sync"

// Posts are the functions that were passed to Post, for a Link whose owner is one goroutine. The Link's lock guards
// them.
type Posts struct {
	waiting []func() Next
	closed  bool
}

// Add adds f, and reports false after Close.
func (p *Posts) Add(f func() Next) (added bool) {
	if !p.closed {
		p.waiting = append(p.waiting, f)
	}
	return !p.closed
}

// Any reports whether functions wait.
func (p *Posts) Any() bool { return len(p.waiting) > 0 }

// Close drops what waits and what is added later.
func (p *Posts) Close() { p.waiting, p.closed = nil, true }

// Deliver calls what waits, without mu, the Link's lock, and returns what is to happen next.
func (p *Posts) Deliver(mu sync.Locker, next Next) Next {
	for next < Close {
		mu.Lock()
		if len(p.waiting) == 0 {
			p.waiting = nil
			mu.Unlock()
			break
		}
		f := p.waiting[0]
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		mu.Unlock()
		if n := f(); n != More {
			next = n
		}
	}
	return next
}
