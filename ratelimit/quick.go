package ratelimit

import (
	"context"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/refusal"
)

// This file is the usual request on the direct way: one rule, one token, the
// bucket of an address, a Memory.

// admit is take for who knows when the request came, and saves a reading of the
// clock, which costs as much as all the rest. That time may be before the true
// one. The bucket then seems to have fewer tokens than it has, so who is admitted
// may be; where a bucket has none, is changing hands, or may have loans, ok is
// false and take asks the clock.
//
// ahead is what it is for decide, behind the charge; a Decision, which is copied
// more than once on its way, would cost as much as the charge.
func (m *Memory) admit(l *Limit, hash uint64, came time.Duration) (ahead, at int64, ok bool) {
	hash = clean(hash)
	e := m.spaceOf(l).shard(hash).table.Load().find(hash)
	if e == nil {
		return 0, 0, false
	}
	full, ok := e.read(hash)
	if !ok || m.loans.out.Load() != 0 { // after full, which a loan changes last
		return 0, 0, false
	}
	at = max(0, int64(came)) + 1 // as now has it
	ahead = max(full, at) - at + l.interval
	return ahead, at, ahead <= l.window && e.full.CompareAndSwap(full, at+ahead)
}

// serveOne is ServeDirect with h.memory and h.one.
func (h *directHandler) serveOne(x *direct.Exchange) bool {
	l := h.one.limit
	var buf [64]byte
	var key []byte
	if ip := x.PeerIP(); ip != "" && x.RemoteAddr[0] != '[' && h.one.key.v4 == 32 {
		key = bytesOf(ip) // an IPv4 address, as appendAddress has it
	} else {
		key = appendAddress(buf[:0], x.RemoteAddr, h.one.key.v4, h.one.key.v6)
	}
	hash := hashBytes(l, key)
	var d Decision
	var ahead, at int64
	ok := false
	if h.memory.directs && x.Time != 0 {
		ahead, at, ok = h.memory.admit(l, hash, x.Time)
	}
	if ok {
		d.Allowed, d.Limit, d.Remaining, d.Reset = true, l.rate.Burst, (l.window-ahead)/l.interval, time.Duration(ahead)
	} else {
		d, at = h.memory.take(l, hash, 1)
	}
	if d.Allowed {
		if h.fields {
			x.Keep(policyName, h.policy)
			x.Keep(limitName, h.one.shown.line(l, &d))
		}
		if h.direct.ServeDirect(x) {
			return true
		}
	}
	// What is seldom goes the way of all others, behind the decision.
	c := calls.Get().(*call)
	c.buf = append(c.buf, key...)
	c.claims = append(c.claims, Claim{Limit: l, Key: c.buf, Cost: 1, Decision: d, At: at})
	c.rules = append(c.rules, h.one)
	if d.Allowed {
		h.store.Refund(context.Background(), c.claims)
	} else {
		h.refuse(x, c, refusal.In(x))
	}
	c.done()
	return !d.Allowed
}
