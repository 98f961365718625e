package retry

import (
	"sync"
	"sync/atomic"
	"time"
)

// An IdleLimit is how long a connection to one server may be idle and still be used: what the server is known to keep,
// less a margin. A request on a connection that the server closes at the same moment fails, and if it is no idempotent
// one, for its client as well.
//
// It learns from the field Keep-Alive of responses (Announced) and from connections that the server closed while they
// were idle (Closed). Servers close all idle connections when they end, whatever their ages, which must not pass for a
// limit. What tells them apart is the order: connections that reach a limit are closed one after another at the same
// age, those of a server that ends at the same moment. So an age counts once it was seen sightings times, at moments
// that are at least apart from each other.
//
// A limit that was learned doubles every ten minutes, so that a server that now keeps connections for longer gets the
// use of them. If it rises too far, one connection that is closed at the known age brings it back.
//
// All methods are safe for concurrent use, and Limit and Reuse are one atomic load each. Make one with NewIdleLimit.
type IdleLimit struct {
	most      int64         // immutable
	announced atomic.Int64  // 0 for none
	learned   atomic.Uint64 // packed

	mu   sync.Mutex
	age  int64 // that Closed has seen first
	seen int   // how often
	last int64 // when
}

const (
	// leastIdle bounds what is announced, and below it nothing is learned: no connection would be reused, and a server
	// that closes after each response should say so with Connection: close.
	leastIdle = int64(50 * time.Millisecond)
	mostIdle  = int64(24 * time.Hour)
	// DefaultIdle is the limit for a server that has said nothing.
	DefaultIdle = 60 * time.Second
	// freshIdle is how old a connection may be for a request that cannot be sent again.
	freshIdle = int64(time.Second)

	sightings = 3
	apart     = int64(100 * time.Millisecond)
	near      = 10 // ages are the same if they differ by a tenth
	doubling  = int64(10 * time.Minute)
)

// safe is the part of what a server keeps that is used: 0.8.
func safe(d int64) int64 { return d / 5 * 4 }

// NewIdleLimit returns the limit for a server, never above most, which is DefaultIdle if 0 or negative, and a day at
// most.
func NewIdleLimit(most time.Duration) *IdleLimit {
	if most <= 0 {
		most = DefaultIdle
	}
	return &IdleLimit{most: min(max(int64(most), leastIdle), mostIdle)}
}

const ms, second = int64(time.Millisecond), int64(time.Second)

// pack makes one word of an age and of when it was learned, so that readers see both of the same moment: the age in ms
// above, and the time in s below, both plus 1 so that 0 is nothing.
func pack(age, now int64) uint64 {
	return uint64(uint32(age/ms+1))<<32 | uint64(uint32(now/second+1))
}

// known returns the age that was learned, 0 for none, and what it has risen to at now.
func (l *IdleLimit) known(now int64) (age, risen int64) {
	v := l.learned.Load()
	if v == 0 {
		return 0, 0
	}
	age = int64(v>>32-1) * ms
	// Modulo 136 years. A loop whose clock is behind sees the age as it was learned.
	passed := max(int64(int32(uint32(now/second+1)-uint32(v))), 0) * second
	for risen = age; passed >= doubling && risen < l.most; passed -= doubling {
		risen *= 2
	}
	return age, min(risen+risen/(doubling/ms)*(min(passed, doubling)/ms), l.most)
}

// Announced notes the timeout of a Keep-Alive field. The latest one holds.
func (l *IdleLimit) Announced(timeout time.Duration) {
	if d := min(max(int64(timeout), leastIdle), l.most); l.announced.Load() != d {
		l.announced.Store(d)
	}
}

// Closed notes that the server closed or reset a connection that was idle, for age. The end of one on which a request
// was sent meanwhile is not noted, which the request may have caused, nor is the proxy's own closing.
func (l *IdleLimit) Closed(now, age int64) {
	if age < leastIdle || age >= l.most { // at once, and thus not for an age; or reuse ends before
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, _ := l.known(now); known != 0 && alike(age, known) {
		l.learned.Store(pack(known, now))
		return
	}
	switch {
	case l.seen == 0 || !alike(age, l.age):
		l.age, l.seen, l.last = age, 1, now
	case now-l.last >= apart: // else together: a server that ends, or connections that became idle together
		l.last = now
		if l.seen++; l.seen == sightings {
			l.seen = 0
			l.learned.Store(pack(l.age, now))
		}
	}
}

func alike(age, other int64) bool {
	d := age - other
	return -other/near <= d && d <= other/near
}

// Limit returns the age from which on a connection is not used.
func (l *IdleLimit) Limit(now int64) time.Duration {
	d := l.most
	kept := l.announced.Load()
	if _, k := l.known(now); k != 0 && (kept == 0 || k < kept) {
		kept = k
	}
	if kept != 0 {
		d = min(d, safe(kept))
	}
	return time.Duration(d)
}

// Reuse reports whether a request may use a connection that has been idle for idle. again: the request can be sent
// again if the connection ends without a response byte; others take a connection of less than a second only.
func (l *IdleLimit) Reuse(now, idle int64, again bool) bool {
	d := int64(l.Limit(now))
	if !again {
		d = min(d, freshIdle)
	}
	return idle < d
}
