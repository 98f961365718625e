package bridge

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/link"
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
		t, a := &taken{c: c}, new(aside)
		if t.aside.Store(a); w.x.Shared {
			a.stream = w.x.stream()
			a.stream.Share()
		} else {
			c.Link.Share()
		}
		t.Session = begin(t)
		w.x.seldom().taken = t
		t.count(true)
		return &a.Ending
	})
}

// Budget implements takeover.Budgeted.
func (w *Response) Budget() *takeover.Budget {
	if m, ok := w.x.m.(Sharer); ok {
		return m.Budget()
	}
	return nil
}

// FreeSlot implements takeover.Slotted.
func (w *Response) FreeSlot() { w.x.m.Release() }

// passOn sends the head of the response, with this status unless there is another that
// is permitted, and calls take, after which the exchange does not use the connection. The
// watchers of the response are notified by what take returns.
func (w *Response) passOn(status int, exact bool, take func(c *Client) *Ending) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unusable(); err != nil {
		return err
	}
	w.noContinue()
	if !w.wroteHeader { // what wraps w may have kept it back
		w.head(status)
	}
	if exact && w.Status != status || !exact && w.Status == http.StatusSwitchingProtocols {
		return errStatus
	}
	w.flushStage()
	if err := w.flush(); err != nil {
		return err
	}
	c := w.x.c
	w.x.cede(func() error {
		w.x.seldom().ending = take(c)
		return nil
	})
	var hook net.Conn // none for a stream
	if !w.x.Shared {
		hook = c.Link.NetConn()
	}
	w.taken.Store(&hook)
	w.status = int32(w.Status)
	w.x.accountEarly()
	o := w.end()
	w.x.ending().begin(&o, int(w.status))
	if exact && hook != nil {
		c.setStateOf(hook, http.StateHijacked)
	}
	return nil
}

// Taken returns the session that has taken over the connection, or nil.
func (x *Exchange) Taken() conn.Session { return x.few().taken }

// taken is a connection that was taken over, or a stream: the takeover.Link of its Session, and
// the conn.Session of the Link below.
type taken struct {
	takeover.Session
	c     *Client
	aside atomic.Pointer[aside] // nil if there is nothing in it
	// began is when the current run of user code began, and then how long it took, or is
	// negative after a panic. Used by the owner; 0 if the run is not timed.
	began int64
	// facts are those below: Late may be called at any time.
	facts atomic.Uint32
	// quickIn is the Epoch in which the code was found to be quick; 0 for none.
	quickIn uint32
}

// Bits of taken.facts.
const (
	asked       uint32 = 1 << iota // Quick was called
	likelyQuick                    // the user code is likely to be
	ranLate                        // it was not
	oneRun                         // the runs of a stream are counted from this bit on: see selected
)

// aside is what most of what is taken over does not need when its handler has returned.
type aside struct {
	Ending        // for watchers
	stream Stream // which was taken over; nil if it is a connection; immutable
}

// stream returns the Stream that was taken over; nil if it is a connection.
func (t *taken) stream() Stream {
	if a := t.aside.Load(); a != nil {
		return a.stream
	}
	return nil
}

// link returns what was taken over.
func (t *taken) link() link.Link {
	if st := t.stream(); st != nil {
		return st
	}
	return t.c.Link
}

// Buffered and the following implement link.Link. Those that each message calls most convert no
// interface.
func (t *taken) Buffered() []byte {
	if st := t.stream(); st != nil {
		return st.Buffered()
	}
	return t.c.Link.Buffered()
}

func (t *taken) OnLoop() bool {
	if st := t.stream(); st != nil {
		return st.OnLoop()
	}
	return t.c.Link.OnLoop()
}

func (t *taken) Discard(n int)           { t.link().Discard(n) }
func (t *taken) Now() int64              { return t.link().Now() }
func (t *taken) Post(f func() conn.Next) { t.link().Post(f) }
func (t *taken) SetDeadline(ns int64)    { t.link().SetDeadline(ns) }

func (t *taken) Speaks() string { return "WebSocket" }

// count counts t, which begins or has ended.
func (t *taken) count(begun bool) {
	t.c.Count(tally.WebSocketsBegun, begun)
	if t.stream() == nil {
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

func (t *taken) Closed(hijacked bool) {
	t.count(false)
	t.Session.Closed(hijacked)
	if a := t.aside.Load(); a != nil {
		_, lost := t.tail().Unsent()
		a.Over(t.c, lost, true)
	}
}

func (t *taken) tail() Tail {
	if st := t.stream(); st != nil {
		return st
	}
	return t.c.Link.Out()
}

// Drain implements conn.Session. A connection that was taken over is not idle in the
// sense of HTTP, so only the server's end concerns it.
func (t *taken) Drain(since int64) conn.Next {
	if t.c.Ending() {
		return t.Session.Drain(since)
	}
	return conn.More
}

func (t *taken) Late(held time.Duration) {
	if held > place.Quick && t.facts.Load()&likelyQuick != 0 {
		t.facts.Or(ranLate)
		t.c.Routes.Overstayed(methodOfRuns, t.Kind(), held)
	}
	go func() { // the loop's lock is held
		sched.Point(t.c.Link.Peer().RemoteAddr, 0)
		t.Session.Late(held)
	}()
}

// methodOfRuns is the method under which the placement's records of takeovers are
// kept.
const methodOfRuns = "TAKEOVER"

// LocalAddr and RemoteAddr implement takeover.Link.
func (t *taken) LocalAddr() net.Addr  { return t.c.LocalAddr() }
func (t *taken) RemoteAddr() net.Addr { return t.c.RemoteAddr() }

func (t *taken) Offer(a, b []byte, limit int) (much bool, err error) {
	much, err = t.tail().Offer(a, b, limit)
	if w := t.aside.Load(); w != nil && err == nil {
		w.Given(len(a) + len(b))
	}
	return much, err
}

func (t *taken) Follow(f func()) { t.tail().Follow(conn.FollowerFunc(f)) }

func (t *taken) Quick() bool {
	var quick bool
	if p := t.c.Placement; p != Adaptive {
		quick = p == Inline
	} else if epoch := t.c.Routes.Epoch(); t.quickIn == epoch {
		quick = true
	} else if quick = t.c.Routes.Quick(methodOfRuns, t.Kind(), new(place.Memo)); quick {
		t.quickIn = epoch
	}
	facts := t.facts.Load()
	now := facts&^(likelyQuick|ranLate) | asked
	if quick {
		now |= likelyQuick
	}
	if facts != now {
		t.facts.Store(now)
	}
	return quick
}

// selected reports whether a run of user code is timed. Those of a stream are under a lease
// already, so that the loop's Sampler is not theirs to use.
func (t *taken) selected() bool {
	switch {
	case !t.OnLoop():
		return true
	case t.stream() != nil:
		return t.facts.Add(oneRun)/oneRun%stats.SampleEvery == 1
	}
	return t.c.Link.Tally().Messages.Next() != 0
}

func (t *taken) Run() (ok bool) {
	facts := t.facts.Load()
	if facts&ranLate != 0 { // before Do, after the beginning of which the next may come
		t.facts.And(^ranLate)
	}
	t.began = 0
	if facts&asked != 0 && (facts&likelyQuick == 0 || t.selected()) {
		t.began = sys.Nanotime()
	}
	var ran, waited bool
	if code, st := (*takenCode)(t), t.stream(); st != nil {
		ran, waited = st.Do(code)
	} else {
		ran, waited = t.c.Link.Do(code)
	}
	switch {
	case !ran:
		return true // Data will not be called again
	case t.began < 0:
		return false
	}
	// Not if it waited for the peer: see Exchange.Learn.
	if t.began != 0 && t.facts.Load()&ranLate == 0 && !waited {
		t.c.Routes.Ran(methodOfRuns, t.Kind(), time.Duration(t.began))
	}
	return true
}

// takenCode is the user code of a taken, as conn.UserCode.
type takenCode taken

func (t *takenCode) Run() {
	t.Session.Run()
	if t.began != 0 {
		t.began = max(sys.Nanotime()-t.began, 1)
	}
}

func (t *takenCode) Ended(e exec.End) {
	t.began = -1
	t.c.LogEnd(e)
}
