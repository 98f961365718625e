package bridge

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

var errStatus = errors.New(
	"chert: a connection is taken over with the status 101, a response outlives its handler with another")

// TakeOver implements takeover.Writer.
func (w *Response) TakeOver(begin func(takeover.Link) takeover.Session) error {
	status := http.StatusSwitchingProtocols
	if w.x.Shared {
		if w.x.Req.Method != http.MethodConnect {
			return http.ErrNotSupported
		}
		status = http.StatusOK // RFC 8441 section 5
	}
	return w.passOn(status, true, func(c *Client) *Ending {
		l := w.x.link()
		l.Share()
		t := &taken{link: l, c: c, shared: w.x.Shared}
		t.s = begin(t)
		w.x.seldom().taken = t
		t.count(true)
		return &t.Ending
	})
}

// Budget implements takeover.Budgeted.
func (w *Response) Budget() *takeover.Budget {
	if m, ok := w.x.m.(Sharer); ok {
		return m.Budget()
	}
	return nil
}

// passOn sends the head of the response, with this status unless there is another that
// is permitted, and calls take, after which the exchange does not use the connection. The
// watchers of the response are notified by what take returns.
func (w *Response) passOn(status int, exact bool, take func(c *Client) *Ending) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.hijacked():
		return http.ErrHijacked
	case w.Done:
		return errDone
	}
	w.noContinue()
	if !w.wroteHeader { // what wraps w may have kept it back
		w.writeHeader(status)
	}
	if exact && w.Status != status || !exact && w.Status == http.StatusSwitchingProtocols {
		return errStatus
	}
	w.flushStage()
	w.complete(nil)
	if err := w.flush(); err != nil {
		return err
	}
	w.x.passOn(take)
	c := w.x.c
	var hook net.Conn // none for a stream
	if !w.x.Shared {
		hook = c.Link.NetConn()
	}
	w.taken.Store(&hook)
	w.status = int32(w.Status)
	w.x.accountEarly()
	o := w.outcome()
	w.x.ending().begin(&o, w.Status)
	w.end()
	if exact && c.ConnState != nil && hook != nil {
		c.ConnState(hook, http.StateHijacked)
	}
	return nil
}

// passOn ends the exchange's use of the connection. A goroutine of the handler that
// still reads the body is stopped, with an error.
func (x *Exchange) passOn(take func(c *Client) *Ending) {
	if x.Body != nil {
		x.Body.interrupt()
		x.Body.mu.Lock()
		defer x.Body.mu.Unlock()
		x.Body.closed = true
	}
	x.life.Lock()
	defer x.life.Unlock()
	x.over = true
	ending := take(x.c)
	x.seldom().ending = ending
}

// Taken returns the session that has taken over the connection, or nil.
func (x *Exchange) Taken() conn.Session {
	if x.rare == nil {
		return nil
	}
	return x.rare.taken
}

// taken is a connection that was taken over: a takeover.Link for the Session s, and
// the conn.Session of the Link below, in whose terms it translates.
type taken struct {
	Ending
	link Link
	s    takeover.Session
	c    *Client
	kind string // of the user code, from the first Quick on
	// quickIn is the Epoch in which the code was found to be quick; 0 for none.
	quickIn uint64
	// Of the current run of user code; used by the owner.
	began int64
	// facts are those below: Late may be called at any time.
	facts atomic.Uint32
	// shared: the connection is a stream of one, whose runs are under a lease already,
	// so that the loop's Sampler is not theirs to use. runs counts them.
	runs   uint16
	shared bool
}

// Bits of taken.facts.
const (
	kindKnown uint32 = 1 << iota
	kindQuick        // the user code is likely to be
	ranLate          // it was not
)

var (
	_ takeover.Writer   = (*Response)(nil)
	_ takeover.Budgeted = (*Response)(nil)
	_ takeover.Link     = (*taken)(nil)
	_ conn.Session      = (*taken)(nil)
)

// Speaks and Running implement conn.Inspected.
func (t *taken) Speaks() string                                  { return "WebSocket" }
func (t *taken) Running(bool, int64, func(stats.Request, int64)) {}

// count counts t, which begins or has ended.
func (t *taken) count(begun bool) {
	t.c.Count(tally.WebSocketsBegun, begun)
	if !t.shared {
		t.c.Count(tally.TakenBegun, begun)
	}
}

// Count counts something that has begun, or else has ended: id is the first of a pair of
// the tally's. Safe for concurrent use.
func (c *Client) Count(id tally.ID, begun bool) {
	if !begun {
		id++
	}
	c.Link.Tally().Add(false, id, 1)
}

// nexts translates takeover.Next.
var nexts = [...]conn.Next{
	takeover.More: conn.More, takeover.Requeue: conn.Requeue, takeover.Pause: conn.Pause, takeover.Close: conn.Close,
	takeover.Linger: conn.Linger, takeover.Reset: conn.Reset, takeover.Elsewhere: conn.Elsewhere,
}

// Data, Serve, Writable, Expired and Closed implement conn.Session.
func (t *taken) Data(eof bool) conn.Next { return nexts[t.s.Data(eof)] }
func (t *taken) Serve() conn.Next        { return nexts[t.s.Serve()] }
func (t *taken) Expired() conn.Next      { return nexts[t.s.Expired()] }

func (t *taken) Closed(bool) {
	t.count(false)
	t.s.Closed()
	_, lost := t.link.Unsent()
	t.Over(t.c, lost, true)
}

func (t *taken) Writable() conn.Next {
	t.s.Writable()
	return conn.More
}

// Drain implements conn.Session. A connection that was taken over is not idle in the
// sense of HTTP, so only the server's end concerns it.
func (t *taken) Drain(int64) conn.Next {
	if t.c.Ending() {
		return nexts[t.s.Stop()]
	}
	return conn.More
}

// Since implements conn.Session. A connection that was taken over does not give way.
func (t *taken) Since(int64) int64 { return -1 }

// PeerGone implements conn.Session.
func (t *taken) PeerGone(bool) { t.s.PeerGone() }

// Late implements conn.Session.
func (t *taken) Late(held time.Duration) {
	if held > place.Quick && t.facts.Load()&kindQuick != 0 {
		t.facts.Or(ranLate)
		t.c.Routes.Overstayed(methodOfRuns, t.kind, held)
	}
	go func() { // the loop's lock is held
		sched.Point(t.c.Link.Peer().RemoteAddr, 0)
		t.s.Late()
	}()
}

// methodOfRuns is the method under which the placement's records of takeovers are
// kept.
const methodOfRuns = "TAKEOVER"

// Buffered and the following implement takeover.Link.
func (t *taken) Buffered() []byte     { return t.link.Buffered() }
func (t *taken) Discard(n int)        { t.link.Discard(n) }
func (t *taken) OnLoop() bool         { return t.link.OnLoop() }
func (t *taken) SetDeadline(ns int64) { t.link.SetDeadline(ns) }
func (t *taken) Now() int64           { return t.link.Now() }
func (t *taken) LocalAddr() net.Addr  { return t.c.Link.LocalAddr() }
func (t *taken) RemoteAddr() net.Addr { return t.c.Link.RemoteAddr() }

// Offer implements takeover.Link.
func (t *taken) Offer(a, b []byte, limit int) (much bool, err error) {
	if much, err = t.link.Offer(a, b, limit); err == nil {
		t.Given(len(a) + len(b))
	}
	return much, err
}

// Follow implements takeover.Link.
func (t *taken) Follow(f func()) { t.link.Follow(follower(f)) }

type follower func()

// Sent implements conn.Follower.
func (f follower) Sent(int64) { f() }

// Quick implements takeover.Link.
func (t *taken) Quick(kind string) bool {
	facts := t.facts.Load()
	if facts&kindKnown == 0 {
		t.kind = kind
	}
	var quick bool
	if p := t.c.Placement; p != Adaptive {
		quick = p == Inline
	} else if epoch := t.c.Routes.Epoch(); t.quickIn == epoch {
		quick = true
	} else if quick = t.c.Routes.Quick(methodOfRuns, kind, new(place.Memo)); quick {
		t.quickIn = epoch
	}
	now := kindKnown
	if quick {
		now |= kindQuick
	}
	if facts != now {
		t.facts.Store(now)
	}
	return quick
}

// Go implements takeover.Link.
func (t *taken) Go() { t.link.Go() }

// Post implements takeover.Link.
func (t *taken) Post(f func() takeover.Next) {
	t.link.Post(func() conn.Next { return nexts[f()] })
}

// selected reports whether a run of user code is timed.
func (t *taken) selected() bool {
	if !t.link.OnLoop() {
		return true
	}
	if t.shared {
		t.runs++
		return t.runs%stats.SampleEvery == 1
	}
	return t.c.Link.Tally().Messages.Next() != 0
}

// Run implements takeover.Link.
func (t *taken) Run(u takeover.User) (ok bool) {
	facts := t.facts.Load()
	if facts&ranLate != 0 { // before Enter, which the next may come after
		t.facts.And(^ranLate)
	}
	t.began = 0
	if facts&kindKnown != 0 && (facts&kindQuick == 0 || t.selected()) {
		t.began = sys.Nanotime()
	}
	if !t.link.Enter() {
		return true // Data will not be called again
	}
	if !t.call(u) {
		t.link.Leave()
		return false
	}
	took := time.Duration(0)
	if t.began != 0 {
		took = time.Duration(max(sys.Nanotime()-t.began, 1))
	}
	t.link.Leave()
	// Not if it waited for the peer: see Exchange.Learn.
	if took != 0 && t.facts.Load()&ranLate == 0 && !t.link.Waited() {
		t.c.Routes.Ran(methodOfRuns, t.kind, took)
	}
	return true
}

// call reports whether the user code has returned.
func (t *taken) call(u takeover.User) (returned bool) {
	defer exec.Ended(&returned, func(e exec.End) {
		if t.c.LogEnd(e); e.Exited() {
			t.link.Abandon()
		}
	})
	u.Run()
	return true
}
