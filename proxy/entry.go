package proxy

import (
	"context"
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/balance"
	"github.com/chert-http/chert/internal/health"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/sys"
)

// now returns nanoseconds of a monotonic clock, that of health, balance and retry. It is the
// loops' but for a second, since 0 is no time.
func now() int64 { return sys.Nanotime() + int64(time.Second) }

// wall returns the time of day of a time of now.
func wall(at int64) time.Time { return sys.Epoch().Add(time.Duration(at) - time.Second) }

// entry is a server that Upstreams share: one for each address, TLS name and check.
type entry struct {
	pool *Pool
	key  health.Key
	ref  *health.Ref
	bal  *balance.Server

	requests, failures, dials, reused atomic.Uint64
	// slots are the requests in flight: balance counts those too that find MaxRequests in their way.
	slots atomic.Int64

	// Under Pool.mu.
	refs   int
	links  map[linkKey]*link
	checks context.CancelFunc // ends the active checks; nil if there are none

	mu    sync.Mutex
	timer *time.Timer // until an ejection is over
	gone  bool        // no reference is left
}

// linkKey is what connections must have in common to be used for each other: not only the
// name that the certificate must have, but all that a tls.Config says.
type linkKey struct {
	tls      *tls.Config
	name     string
	protocol Protocol
}

// link is the connections to an entry.
type link struct {
	entry  *entry
	key    linkKey
	refs   int // under Pool.mu
	dialer origin.Dialer
	limit  *retry.IdleLimit
	most   atomic.Int64 // UpstreamOptions.IdleTimeout of the latest reference
	idle   origin.Idle
	// old: the server speaks HTTP/1.0, which has no chunked coding.
	old atomic.Bool
	h2  *h2client // for ProtocolHTTP2
	// out has the connections on event loops; nil if there can be none.
	out *outbound.Server
}

// sync gives balance the state that health has.
func (e *entry) sync() {
	e.apply()
	e.pool.wake() // without e.mu, which is taken under Pool.mu
}

func (e *entry) apply() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return
	}
	at := now()
	i := e.ref.Info(at)
	state := balance.Unknown
	switch {
	case i.Check == health.Failing:
		state = balance.Down
	case i.State == health.Up:
		state = balance.Up
	case i.State == health.Ejected && at < i.Until:
		state = balance.Ejected
		if e.timer != nil {
			e.timer.Stop()
		}
		e.timer = time.AfterFunc(time.Duration(i.Until-at)+time.Millisecond, e.sync)
	case i.State == health.Ejected, i.State == health.Probing:
		state = balance.Probing
	}
	// In this order: balance must know that one that begins to drain was ejected.
	e.bal.SetDraining(i.State == health.Draining, at)
	e.bal.SetState(state, at)
}

// close ends what runs for the entry. Under Pool.mu.
func (e *entry) close() {
	e.mu.Lock()
	e.gone = true
	if e.timer != nil {
		e.timer.Stop()
	}
	e.mu.Unlock()
	if e.checks != nil {
		e.checks()
	}
	e.ref.Release(now())
}

// done notes the result of a try.
func (e *entry) done(t health.Ticket, code reason.Code) {
	if code.Blames() {
		e.failures.Add(1)
	}
	e.ref.Done(now(), t, code)
}

// dial makes a connection.
func (l *link) dial(ctx context.Context) (*origin.Conn, *origin.Failure) {
	l.entry.dials.Add(1)
	return l.dialer.Dial(ctx)
}

// take returns a connection that was kept, or nil. again: the request can be sent again if
// that turns out to be closed.
func (l *link) take(again bool) (*origin.Conn, int64) {
	at := now()
	c, age := l.idle.Get(at, func(age int64) bool {
		return age < l.most.Load() && l.limit.Reuse(at, age, again)
	}, l.closed)
	if c != nil {
		l.entry.reused.Add(1)
	}
	return c, age
}

// closed notes that the server has closed a connection that was idle for age.
func (l *link) closed(age int64) { l.limit.Closed(now(), age) }

// put keeps a connection.
func (l *link) put(c *origin.Conn, most int) {
	l.idle.Put(c, now(), most)
	l.entry.pool.sweepSoon()
}

func (l *link) close() {
	l.idle.Close()
	if l.out != nil {
		l.out.Close()
	}
	if l.h2 != nil {
		l.h2.close()
	}
}
