package h1

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/timer"
	"github.com/chert-http/chert/stats"
)

// Config is what the sessions of a server have in common. It is immutable once
// a session exists.
type Config struct {
	bridge.Config
	Head http1.Limits
	// The timeouts of a connection, in nanoseconds; 0 means none. HeadTime is from
	// a request's first byte, or the accept, to the end of its head, IdleTime
	// between requests.
	HeadTime, IdleTime int64
	// Slice bounds how long pipelined requests of one connection are served on a
	// loop in one go, in nanoseconds.
	Slice int64
	// Second, if not nil, makes the HTTP/2 session that takes over from of, on the
	// same Link. s is nil in plain text. Preface: it is
	// for clients that begin with HTTP/2's preface in plain text (RFC 9113 section
	// 3.3). Only: HTTP/1 is not supported, and such connections are closed.
	Second        func(of *bridge.Client, s conn.Secured) conn.Session
	Preface, Only bool
	// Handshake, if not nil, makes the session that comes before s on a loop and
	// switches to s, after a Start. deadline is the Link's first one.
	Handshake func(l conn.Link, s *Session, now int64) (first conn.Session, deadline int64)
	// Layer, if not nil, makes the layer between socket and session.
	Layer func() conn.Layer
}

// batch bounds how many pipelined requests of one connection are served on a loop
// in one go.
const batch = 64

// DefaultSlice is the default of Config.Slice.
const DefaultSlice = int64(200 * time.Microsecond)

// Session implements HTTP/1 on one connection.
type Session struct {
	bridge.Client
	cfg *Config // immutable
	// cur is the exchange that user code is running or about to run.
	cur      atomic.Pointer[exchange]
	direct   *request // that a direct handler is serving
	progress http1.Progress
	memo     place.Memo
	facts    atomic.Uint32
	since    uint32       // when the present wait began, of Link.Now in units of sinceUnit
	spread   timer.Spread // of waits that many connections of event loops begin together; zero for others
	stage    stage
	begun    bool // there has been a request
}

// A stage is what a Session that no user code runs for waits for.
type stage uint8

const (
	between stage = iota // a request
	partial              // the rest of a head, whose time is running
	waiting              // a slot
	sending              // until the peer has accepted a response
)

// Bits of Session.facts, packed to keep idle connections small.
const (
	onLoops  uint32 = 1 << iota // its link is on a loop; immutable
	draining                    // Drain has set the deadline; used by the owner only
	slot                        // it has a slot
	broken                      // user code has panicked after its handler
)

func (s *Session) is(fact uint32) bool { return s.facts.Load()&fact != 0 }

// connection is a session and its link on a loop, in one allocation.
type connection struct {
	link    conn.Conn
	session Session
}

// Open starts HTTP/1 on a socket that loop l has accepted.
func (cfg *Config) Open(l *loop.Loop, fd int, peer string) (*conn.Conn, error) {
	c := new(connection)
	session, deadline := c.first(cfg, peer, l.Now())
	if err := c.open(cfg, l, fd, peer, session, deadline); err != nil {
		return nil, err
	}
	c.session.Begin()
	return &c.link, nil
}

func (c *connection) open(
	cfg *Config, l *loop.Loop, fd int, peer string, first conn.Session, deadline int64,
) error {
	err := c.link.Open(l, fd, peer, cfg.LocalAddrOf(fd), first, &cfg.Shared, deadline)
	if err == nil && cfg.Layer != nil {
		c.link.SetLayer(cfg.Layer())
	}
	return err
}

// Before makes the session that comes before HTTP and TLS on a connection, and the Link's first
// deadline. Until it calls begin, the connection has no peer and is unknown to the server's hooks.
// It calls begin, on the loop, at most once, and returns what that returns.
type Before func(link *conn.Conn, begin func(client string) conn.Next) (first conn.Session, deadline int64)

// OpenAfter is Open of a connection whose client is not known before its first bytes.
func (cfg *Config) OpenAfter(l *loop.Loop, fd int, before Before) (*conn.Conn, error) {
	c := new(connection)
	session, deadline := before(&c.link, func(client string) conn.Next {
		c.link.SetPeer(client)
		next, by := c.first(cfg, client, l.Now())
		c.session.Begin()
		c.link.SetDeadline(by)
		c.link.Switch(next)
		return conn.Requeue
	})
	if err := c.open(cfg, l, fd, "", session, deadline); err != nil {
		return nil, err
	}
	return &c.link, nil
}

// first returns the session that a client is served by at first, and its deadline.
func (c *connection) first(cfg *Config, peer string, now int64) (first conn.Session, deadline int64) {
	s := &c.session
	s.init(cfg, &c.link)
	s.facts.Store(onLoops)
	s.spread = timer.SpreadOf(peer)
	s.since = uint32(now >> sinceUnit)
	if cfg.Handshake != nil {
		return cfg.Handshake(&c.link, s, now)
	}
	if cfg.HeadTime > 0 {
		deadline = now + cfg.HeadTime
	}
	return s, deadline
}

// New makes the session of a link that is driven otherwise. Start must be
// called before the first byte of HTTP.
func (cfg *Config) New(l conn.Link) *Session {
	s := new(Session)
	s.init(cfg, l)
	s.Begin()
	return s
}

// Start says that the connection is over TLS, unless secured is nil, and starts the timeout of
// the first request.
func (s *Session) Start(secured conn.Secured) {
	if s.SetTLS(secured); s.cfg.Layer != nil {
		s.Link.Lent().SetLayer(s.cfg.Layer())
	}
	s.limit(s.cfg.HeadTime)
}

func (s *Session) init(cfg *Config, l conn.Link) { s.cfg, s.Config, s.Link = cfg, &cfg.Config, l }

// Data implements conn.Session.
func (s *Session) Data(eof bool) conn.Next {
	if x := s.cur.Load(); x != nil { // after Elsewhere
		if next := s.serve(x); next != conn.More {
			return next
		}
	}
	began := int64(0)
	for n := 1; ; n++ {
		next, served := s.request(eof)
		switch {
		case !served || next != conn.More:
			return next
		case len(s.Link.Buffered()) == 0 || !s.Link.OnLoop():
			continue
		}
		now := sys.Nanotime()
		if began == 0 {
			began = now
		}
		if n >= batch || now-began >= s.cfg.Slice {
			return conn.Requeue
		}
	}
}

// request serves the next request, if its head has arrived completely. served: another may follow, if next is
// conn.More. If not, nothing more has come, or another session has the link: a request is forwarded, or its body
// skipped.
func (s *Session) request(eof bool) (next conn.Next, served bool) {
	if s.stage == sending { // it has been sent
		s.stage = between
		now := s.Link.Now()
		s.Link.Tally().Write(s.Link.OnLoop(), time.Duration(max(now-s.Since(now), 1<<(sinceUnit-1))))
		if next := s.settle(conn.More); next != conn.More {
			return next, false
		}
	}
	b := s.Link.Buffered()
	if len(b) == 0 {
		if eof {
			return conn.Close, false
		}
		if s.stage = between; s.begun { // that of the first counts from the accept
			s.limit(s.spread.Of(s.cfg.IdleTime))
		}
		return conn.More, false
	}
	if s.begun && s.stage == between && s.Stopped() {
		// The client reused the connection after Shutdown was called. It has no response, which
		// tells it to repeat the request where it can (RFC 9112 section 9.3.1); the handler may
		// have been replaced by then. net/http does the same.
		return conn.Close, false
	}
	if !s.begun && s.stage != waiting && (s.cfg.Preface || s.cfg.Only) {
		if next, is := s.preface(b, eof); is {
			return next, false
		}
	}
	r := requests.Get().(*request)
	n, err := r.head.Parse(b, &s.progress, &s.cfg.Head)
	if err == nil && n == 0 && !eof {
		r.free()
		s.awaitHead()
		return conn.More, false
	}
	if s.stage != waiting {
		s.SetState(http.StateActive)
	}
	if err != nil || n == 0 {
		r.free()
		if err == nil {
			err = errTruncated
		}
		return s.refuse(err.(*http1.Error)), false
	}
	busy, t := false, s.timing()
	if s.Slots != nil {
		switch s.acquire() {
		case loop.Queued:
			r.free()
			s.Link.SetDeadline(0)
			s.await()
			return conn.Wait, false
		case loop.Refused:
			busy = true
		}
	}
	s.begun, s.stage = true, between
	if s.takeDirect(r, b, n, busy) {
		r.time = t
		return s.serveDirect(r, busy)
	}
	return s.servePlain(r, n, t, "", busy), true
}

// timing returns that of the request whose head has come.
func (s *Session) timing() (t bridge.Timing) {
	now := s.Link.Now()
	t.Since = now
	if s.stage != between {
		t.Since = min(s.Since(now), now-1)
		if t.Queued = s.stage == waiting; !t.Queued {
			t.Head = now - t.Since
		}
	}
	return t
}

// await notes when a wait begins that is not for a request.
func (s *Session) await() { s.since = uint32(s.Link.Now() >> sinceUnit) }

// Preface is HTTP/2's (RFC 9113 section 3.4).
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// preface reports whether b, which the client has begun with, is HTTP/2's preface or may
// become it, and then what is to happen next.
func (s *Session) preface(b []byte, eof bool) (next conn.Next, is bool) {
	switch n := min(len(b), len(Preface)); {
	case !s.cfg.Preface || s.HasTLS() || string(b[:n]) != Preface[:n]:
		// RFC 9113 section 3.3: over TLS, ALPN alone selects HTTP/2.
		if s.cfg.Only {
			return conn.Close, true
		}
		return conn.More, false
	case n == len(Preface):
		s.Link.Switch(s.cfg.Second(&s.Client, nil))
		return conn.Requeue, true
	case eof:
		return conn.Close, true
	}
	s.awaitHead()
	return conn.More, true
}

// servePlain runs the http.Handler for r, whose head has n bytes and came as t says, on the loop if
// it is likely to be quick. route is the pattern that a router has found. busy: there is no slot.
func (s *Session) servePlain(r *request, n int, t bridge.Timing, route string, busy bool) conn.Next {
	b := s.Link.Buffered()
	x, err := s.newExchange(&r.head, b[:n], t)
	if r.free(); err != nil {
		t.Drop(s.Link.Tally())
		s.release()
		return s.refuse(err)
	}
	x.more = x.body == nil && len(b) > n
	s.Link.Discard(n)
	if busy {
		x.Refusal = bridge.ForRoom
	}
	memo := &s.memo
	if !s.is(onLoops) {
		memo = nil
	}
	here := s.Link.OnLoop()
	quick := (x.Place(route, memo) || busy) && here
	if x.Time.Select(s.Link.Tally(), quick); !quick {
		x.Way = s.way(stats.Pooled)
		x.Time.Queued = x.Time.Queued || here
	}
	s.cur.Store(x)
	if here && !quick {
		return conn.Elsewhere
	}
	return s.serve(x)
}

// serve runs the handler of x on this goroutine.
func (s *Session) serve(x *exchange) conn.Next {
	x.next = conn.Close
	_, waited := s.Link.Do(x)
	next := x.next
	s.cur.Store(nil)
	if next != conn.Detached {
		x.Learn(waited)
		if x.unsent {
			x.Unsent()
		}
		x.Account(s.Link.OnLoop())
	} else if t := x.Taken(); t != nil {
		s.Link.Switch(t)
		next = conn.Requeue
	}
	s.release()
	return s.settle(next)
}

// settle ends an exchange with next, or postpones that until the peer has
// accepted the response: a client that only sends must not fill the queue. The stage changes only if
// the connection is kept: after a hijack the loop may already call Closed, which reads it.
func (s *Session) settle(next conn.Next) conn.Next {
	switch {
	case s.is(broken):
		return conn.Close
	case next != conn.More:
		return next
	case s.Link.Out().Blocked():
		s.stage = sending
		s.await()
		return conn.Requeue
	}
	s.SetState(http.StateIdle)
	if !s.KeepsIdle() {
		return conn.Close
	}
	return conn.More
}

// acquire takes a slot for a handler. After Queued, Data is called when there is
// one.
func (s *Session) acquire() loop.Admission {
	a := loop.Admitted
	if s.stage != waiting {
		a = s.Slots.Acquire(s)
	}
	switch s.stage = between; a {
	case loop.Queued:
		s.stage = waiting
	case loop.Admitted:
		s.facts.Or(slot)
	}
	return a
}

// Acquired implements loop.Waiter.
func (s *Session) Acquired() { s.Link.Post(func() conn.Next { return conn.Requeue }) }

// release returns the slot, and reports whether there was one.
func (s *Session) release() bool {
	if s.Slots == nil || s.facts.And(^slot)&slot == 0 {
		return false
	}
	s.Slots.Release()
	return true
}

// awaitHead sets the deadline for the rest of a head, once.
func (s *Session) awaitHead() {
	if s.stage == partial {
		return
	}
	if s.stage = partial; s.begun {
		s.facts.And(^draining)
		s.limit(s.cfg.HeadTime)
	}
}

// limit starts a wait for the peer, of at most d if that is not 0.
func (s *Session) limit(d int64) {
	now := s.Link.Now()
	if s.since = uint32(now >> sinceUnit); d > 0 {
		d += now
	}
	s.Link.SetDeadline(d)
}

// Expired implements conn.Session.
func (s *Session) Expired() conn.Next {
	id := tally.LateIdle
	if s.stage == partial || !s.begun {
		id = tally.LateHead
	}
	s.Link.Tally().Late(s.Link.OnLoop(), id)
	if s.stage != partial {
		return conn.Close
	}
	s.SetState(http.StateActive)
	return s.refuse(errTimeout)
}

// Drain implements conn.Session. An incomplete request, or the first of a new
// connection, has DrainNew to arrive completely.
func (s *Session) Drain(since int64) conn.Next {
	switch {
	case s.begun && len(s.Link.Buffered()) == 0:
		if s.Stopped() {
			return conn.HalfClose
		}
		return conn.Close
	case s.is(draining) || s.stage == sending || s.stage == waiting:
		return conn.More
	}
	s.facts.Or(draining)
	by := since + int64(conn.DrainNew)
	// A HeadTime of any length may be compared, but not be added.
	if began := s.Since(s.Link.Now()); s.cfg.HeadTime > 0 && s.cfg.HeadTime < by-began {
		by = began + s.cfg.HeadTime
	}
	s.Link.SetDeadline(by)
	return conn.More
}

// Since implements conn.Session.
func (s *Session) Since(now int64) int64 {
	return now - int64(uint32(now>>sinceUnit)-s.since)<<sinceUnit
}

// sinceUnit is a millisecond, in bits of nanoseconds: so it fits into 32 bits for
// 52 days.
const sinceUnit = 20

// Late implements conn.Session.
func (s *Session) Late(held time.Duration) {
	if r := s.direct; r != nil {
		r.late(s, held)
	} else if x := s.cur.Load(); x != nil {
		x.Late(held)
	}
}

// PeerGone implements conn.Session.
func (s *Session) PeerGone(reset bool) {
	if x := s.cur.Load(); x != nil {
		x.Gone(reset)
	}
}

// Writable implements conn.Session; the link is not shared.
func (s *Session) Writable() conn.Next { return conn.More }

// Closed implements conn.Session.
func (s *Session) Closed(hijacked bool) {
	if s.stage == waiting && !s.Slots.Withdraw(s) {
		s.Slots.Release() // it has just been given
	}
	if !hijacked {
		s.SetState(http.StateClosed)
	}
}
