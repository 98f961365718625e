package proxy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/reason"
)

// This file is the queue of an Upstream for requests on loops, which wait in it without a goroutine:
// forwarding waits in Upstream.queue.

// turn is the place of a trip in the queue. It is not pooled: a call of look may still be on its way when
// the trip has ended. Its loop has what comes after left.
type turn struct {
	u      *Upstream
	waiter waiter
	left   atomic.Bool

	t     *trip
	x     *outbound.Exchange
	timer *time.Timer // nil without a limit
	over  bool
}

// Wait implements outbound.Route.
func (t *trip) Wait(x *outbound.Exchange) (first *outbound.Server, waits bool) {
	u, at := t.u, t.begin
	if t.later { // its body has been waited for
		at = now()
	}
	u.budget.Request(at)
	if t.pick != nil {
		return t.take(t.pick), false
	}
	if t.later && u.waiting.len() == 0 { // otherwise those come first
		pick, full := u.attempt(u.current.Load(), &t.choice)
		if pick != nil && !t.can(pick) {
			pick.abandon()
			pick, full = nil, false
		}
		if pick != nil || !full {
			return t.take(pick), false
		}
	}
	w := &turn{u: u, t: t, x: x}
	w.waiter.wake = func() { x.Do(w.look) }
	if !u.waiting.enter(&w.waiter, u.o.Queue) {
		t.refuse(reason.QueueFull)
		return nil, false
	}
	t.turn = w
	u.pool.waiters.Add(1)
	// A server may have got room before this request was in the queue.
	if pick, ended := w.take(); ended {
		return t.take(pick), false
	}
	if d := u.o.QueueTimeout; d > 0 {
		w.timer = time.AfterFunc(d, func() {
			if !x.Do(w.late) { // the loop has failed, and nothing else will leave the queue
				w.leave()
			}
		})
	}
	return nil, true
}

// look is called on the loop when the request is first in the queue and there may be room.
func (w *turn) look() {
	if w.over {
		return
	}
	if pick, ended := w.take(); ended {
		w.x.Start(w.t.take(pick))
	}
}

// take ends the wait if there is a server, or none to wait for: then pick is nil.
func (w *turn) take() (pick *pick, ended bool) {
	if !w.u.waiting.first(&w.waiter) {
		return nil, false
	}
	pick, full := w.u.attempt(w.u.current.Load(), &w.t.choice)
	if pick == nil && full {
		return nil, false
	}
	if pick != nil && !w.t.can(pick) { // an upstream's servers are alike, so there is none
		pick.abandon()
		pick = nil
	}
	w.end()
	return pick, true
}

// late is called on the loop when the request has waited for too long.
func (w *turn) late() {
	if w.over {
		return
	}
	w.end()
	w.t.refuse(reason.QueueTimeout)
	w.x.Start(nil)
}

// end ends the wait.
func (w *turn) end() {
	w.over, w.t.turn = true, nil
	if w.timer != nil {
		w.timer.Stop()
	}
	w.leave()
}

func (w *turn) leave() {
	if !w.left.Swap(true) {
		w.u.pool.waiters.Add(-1)
		w.u.waiting.leave(&w.waiter)
	}
}

// take begins the first try, at p; nil: the request is refused.
func (t *trip) take(p *pick) *outbound.Server {
	if p == nil {
		t.refuse(reason.NoServer)
		return nil
	}
	t.pick = p
	t.try()
	return p.link.out
}

// refuse notes why no server was chosen.
func (t *trip) refuse(code reason.Code) {
	t.result = t.error(t.u, nil, code, nil, t.method)
	t.h.o.log(context.Background(), t.result)
}
