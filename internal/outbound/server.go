package outbound

import (
	"crypto/tls"
	"reflect"
	"sync/atomic"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/sys"
)

// Terms are how requests of an upstream are sent. They are made by NewTerms, and immutable.
type Terms struct {
	// Connect, Response and Stall bound, in nanoseconds, how long it may take to connect, until
	// the head of a response has come after the request, and between two parts of either; 0
	// means no limit.
	Connect, Response, Stall int64
	// Idle is how many connections each loop keeps, and IdleTime for how long at most.
	Idle     int
	IdleTime int64
	// Head bounds the head of a response.
	Head http1.Limits

	shared conn.Shared
}

// NewTerms completes t, which must not be copied afterwards.
func NewTerms(t *Terms) *Terms {
	t.shared.Limits = conn.Limits{ReadStall: t.Stall, WriteStall: t.Stall}
	return t
}

// A Server is an address that requests are sent to. Its methods, and the counters, are safe
// for concurrent use.
type Server struct {
	remote *sys.Remote
	tls    *tls.Config // nil: none
	// age learns how long connections may be idle. It is shared with whatever else connects to
	// the server.
	age *retry.IdleLimit

	closed atomic.Bool
	// Dials and Reused count what requests were sent on; Kept is how many idle connections
	// there are.
	Dials, Reused atomic.Uint64
	Kept          atomic.Int64
}

// NewServer returns the Server at an address. secure is nil for one without TLS; otherwise it must have a
// ServerName, and Quick must report true of it.
func NewServer(to *sys.Remote, secure *tls.Config, age *retry.IdleLimit) *Server {
	return &Server{remote: to, tls: secure, age: age}
}

// Quick reports whether connections by a configuration may be on loops: whether nothing of the program's
// that may wait runs when the handshake is over. A server may renew that, and sends tickets.
func Quick(secure *tls.Config) bool {
	cache := secure.ClientSessionCache
	return secure.Renegotiation == tls.RenegotiateNever &&
		(cache == nil || reflect.TypeOf(cache) == reflect.TypeOf(tls.NewLRUClientSessionCache(1)))
}

// Close keeps no more connections. Those that are idle end by their time, and requests go on.
func (s *Server) Close() { s.closed.Store(true) }

// local is what a loop has: its driver uses it.
type local struct {
	pools map[*Server]*pool
	res   http1.Response // of the head that is being parsed
	tail  []http1.Field
}

// pool has the idle connections to a server, the newest last.
type pool struct{ idle []*Conn }

func localOf(l *loop.Loop) *local {
	if all, ok := l.Local.(*local); ok {
		return all
	}
	all := &local{pools: make(map[*Server]*pool)}
	l.Local = all
	return all
}

// take returns the newest idle connection that a request may use, or nil. again says that the
// request may be sent again if the server is just closing the connection.
func (all *local) take(s *Server, t *Terms, now int64, again bool) *Conn {
	p := all.pools[s]
	if p == nil {
		return nil
	}
	for len(p.idle) > 0 {
		n := len(p.idle) - 1
		c := p.idle[n]
		if age := now - c.since; age >= t.IdleTime || !s.age.Reuse(now, age, again) {
			return nil // the others are older; their time ends them
		}
		p.idle[n] = nil
		p.idle = p.idle[:n]
		c.idle = false
		s.Kept.Add(-1)
		// What the server has sent since would be the response to the next request, also to one that can be sent again.
		if c.out.Quiet() {
			return c
		}
		c.out.Act(conn.Reset)
	}
	return nil
}

// keep makes c one of the idle connections, and reports whether there is room.
func (all *local) keep(c *Conn) bool {
	s := c.server
	p := all.pools[s]
	if p == nil {
		for old, q := range all.pools {
			if len(q.idle) == 0 && old.closed.Load() {
				delete(all.pools, old)
			}
		}
		p = new(pool)
		all.pools[s] = p
	}
	if len(p.idle) >= c.terms.Idle || s.closed.Load() {
		return false
	}
	p.idle = append(p.idle, c)
	s.Kept.Add(1)
	return true
}

// drop removes c, which is about to end.
func (all *local) drop(c *Conn) {
	p := all.pools[c.server]
	if p == nil {
		return
	}
	for i := len(p.idle) - 1; i >= 0; i-- {
		if p.idle[i] == c {
			copy(p.idle[i:], p.idle[i+1:])
			p.idle[len(p.idle)-1] = nil
			p.idle = p.idle[:len(p.idle)-1]
			c.server.Kept.Add(-1)
			break
		}
	}
	if len(p.idle) == 0 {
		delete(all.pools, c.server)
	}
}

// after returns the time of a limit of d that begins now; 0 for none.
func after(now, d int64) int64 {
	if d <= 0 {
		return 0
	}
	return min(now+d, poll.Never-1)
}
