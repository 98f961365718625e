package ratelimit

import (
	"context"
	"time"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/view"
)

// This file is the usual request on the fast path: one rule, one token, the
// bucket of an address, a Memory.

// admit is take for a caller that knows when the request came. It saves reading
// the clock, which costs as much as all the rest. That time may be before the
// present. The bucket then seems to have fewer tokens than it has, so that it is
// safe to admit by it; where a bucket seems to have none or is changing hands ok
// is false, and take reads the clock.
//
// ahead is how far the bucket is ahead of at after the charge, for decide; a
// Decision, which is copied more than once on its way, would cost as much as the
// charge.
func (m *Memory) admit(l *Limit, hash uint64, came time.Duration) (ahead, at int64, ok bool) {
	hash = keyHash(hash)
	t := m.tableOf(l)
	e := t.stripe(hash).slots.Load().find(hash)
	if e == nil {
		return 0, 0, false
	}
	full, ok := e.read(hash)
	if !ok {
		return 0, 0, false
	}
	at = max(0, int64(came)) + 1 // as in now
	t.touch(at)
	ahead = max(full, at) - at + l.interval
	return ahead, at, ahead <= l.window && e.full.CompareAndSwap(full, at+ahead)
}

// serveOne is serve with h.memory and h.one.
func (h *handler) serveOne(r *filter.Call, next filter.Next) filter.Outcome {
	l, x := h.one.limit, r.Wire()
	var buf [64]byte
	var key []byte
	if ip := x.PeerIP(); ip != "" && x.RemoteAddr()[0] != '[' && h.one.key.v4 == 32 {
		key = view.Bytes(ip) // an IPv4 address, as appendAddress has it
	} else {
		key = appendAddress(buf[:0], x.RemoteAddr(), h.one.key.v4, h.one.key.v6)
	}
	hash := hashBytes(l, key)
	var d Decision
	var ahead, at int64
	ok := false
	if h.memory.directs && x.Time() != 0 {
		ahead, at, ok = h.memory.admit(l, hash, x.Time())
	}
	if ok {
		d.Allowed, d.Limit, d.Remaining, d.Reset = true, l.rate.Burst, (l.window-ahead)/l.interval, time.Duration(ahead)
	} else {
		d, at = h.memory.take(l, hash, 1)
	}
	o := filter.Pass
	if d.Allowed {
		line := ""
		if h.fields {
			line = h.one.lines.line(l, &d)
		}
		if !r.Direct() {
			if h.fields {
				r.Keep(policyName, h.policy)
				r.Keep(limitName, line)
			}
			return filter.Pass
		}
		if h.fields {
			x.Keep(policyName, h.policy)
			x.Keep(limitName, line)
		}
		if o = next.Serve(r); o == filter.Responded {
			return o
		}
	}
	// The rest is rare, and goes the general way from here.
	c := charges.Get().(*charge)
	c.buf = append(c.buf, key...)
	c.claims = append(c.claims, Claim{Limit: l, Key: c.buf, Cost: 1, Decision: d, At: at})
	c.rules = append(c.rules, h.one)
	if !d.Allowed {
		return h.refuse(r, c)
	}
	h.store.Refund(context.Background(), c.claims)
	c.done()
	return o
}
