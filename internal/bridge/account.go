package bridge

import (
	"net/http"
	"os"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// This file times requests and counts them when they end.

// Timing is when a request came, and how long its handler ran. The times of most
// requests on loops are not taken: one is selected now and then, which stands for all
// since the one before. What holds a loop is timed in any case, but then by the loop's
// clock.
type Timing struct {
	// Since is when the request came, of sys.Nanotime. Head is how long its head
	// took, if that came in parts.
	Since, Head int64
	// Queued: it has waited for a slot or a goroutine.
	Queued bool
	// selected: the Sampler has counted it. late: it has held a loop for longer than
	// place.Quick; lost: so long that the loop went on without it.
	selected, late, lost bool
	weight               uint32 // for how many requests its times stand; 0: they are not taken
	began, took          int64  // its handler
}

// HeadAt is when the request's head was complete, of sys.Nanotime.
func (t *Timing) HeadAt() int64 { return t.Since + t.Head }

// Select decides whether the request is timed. quick: it is about to run on the loop
// that the caller drives. It may be called again, for a request that the fast path has
// passed on.
func (t *Timing) Select(s *tally.Shard, quick bool) {
	switch {
	case quick && t.selected:
	case quick:
		t.weight, t.selected = s.Requests.Next(), true
	default:
		t.Drop(s)
		t.weight = 1
	}
}

// Drop ends a selection: the request is counted without its times, or in its own name.
func (t *Timing) Drop(s *tally.Shard) {
	if t.selected {
		t.selected = false
		s.Requests.Correct(t.weight)
	}
}

// Begin and End enclose the handler.
func (t *Timing) Begin() {
	if t.weight != 0 {
		t.began = sys.Nanotime()
	}
}

func (t *Timing) End() {
	if t.began != 0 {
		t.took = max(sys.Nanotime()-t.began, 1)
	}
}

// Held records that the handler has held a loop for d; see conn.Session.Late.
func (t *Timing) Held(d time.Duration) {
	if d > place.Quick {
		t.late, t.lost = true, t.lost || d >= loop.Overstay
	}
}

// Lost reports whether it has held a loop so long that the loop went on without it. It
// may be called where Held is, and after the Link's Do.
func (t *Timing) Lost() bool { return t.lost }

// Account counts the request, which has ended. driving is as in package tally.
func (t *Timing) Account(s *tally.Shard, driving bool, id tally.ID, pattern string) {
	if t.Counted(s, driving, id, pattern) {
		return
	}
	now := sys.Nanotime()
	all := tally.Times{
		Weight: t.weight, Total: time.Duration(max(now-t.Since, 1)),
		Head: time.Duration(t.Head), Handler: time.Duration(t.took),
	}
	if t.late && t.selected {
		t.Drop(s)
		if all.Weight = 1; t.took == 0 {
			all.Handler = all.Total
		}
	}
	if t.Queued && t.began != 0 {
		all.Wait = time.Duration(max(t.began-t.Since, 1))
	}
	s.Answer(driving, id, pattern, &all, t.lost)
}

// Counted counts the request if it is not timed, for a caller that is about to send the
// response, and reports whether it was. Otherwise Account follows.
func (t *Timing) Counted(s *tally.Shard, driving bool, id tally.ID, pattern string) bool {
	if t.weight != 0 || t.late {
		return false
	}
	s.Answer(driving, id, pattern, nil, false)
	return true
}

// Account counts the request of x when it has ended, unless accountEarly has. driving
// is as in package tally.
func (x *Exchange) Account(driving bool) {
	id, pattern := x.kind()
	x.Time.Account(x.c.Link.Tally(), driving, id, pattern)
	if x.Refusal != NotRefused {
		x.c.Report(x.Refusal, []byte(x.Req.Method+" "+x.Req.RequestURI+" "+x.Req.Proto))
	}
}

// accountEarly counts a request whose handler has taken the connection, or ends its
// goroutine: without its times, since a loop may be about to record some.
func (x *Exchange) accountEarly() {
	s := x.c.Link.Tally()
	x.Time.Drop(s)
	id, pattern := x.kind()
	if x.Res.status == 0 && x.Res.hijacked() && x.Req.Header["Upgrade"] != nil {
		// What the handler answers is not seen. Proxies and libraries for WebSockets write the 101 themselves, and no
		// response would be an error.
		id = tally.AnswerOf(x.Proto, tally.ClassOf(http.StatusSwitchingProtocols), x.Way)
	}
	s.Answer(false, id, pattern, nil, false)
}

// Unsent records that nothing of the response could be sent. It comes after the Message's
// Finish.
func (x *Exchange) Unsent() { x.Res.status = 0 }

// kind is what x is counted as.
func (x *Exchange) kind() (id tally.ID, pattern string) {
	if pattern = x.Req.Pattern; pattern == "" {
		pattern = x.route
	}
	return tally.AnswerOf(x.Proto, tally.ClassOf(int(x.Res.status)), x.Way), pattern
}

// Unanswered counts a request that ends without a response and without a handler, or
// one that was refused with a status.
func (c *Client) Unanswered(p tally.Proto, status int, w stats.Way, driving bool) {
	c.Link.Tally().Answer(driving, tally.AnswerOf(p, tally.ClassOf(status), w), "", nil, false)
}

// overdue counts a limit of time that an error of the connection reports, in a handler.
// limit, called with life held, is one that the server or the handler has set; otherwise it was a stall.
func (x *Exchange) overdue(limit func() time.Time, id tally.ID) {
	var by time.Time
	x.use(func() { by = limit() })
	if by.IsZero() || time.Now().Before(by) {
		id = tally.LateStall
	}
	x.c.Link.Tally().Add(false, id, 1)
}

// ErrLate ends a stream whose handler has not written until its write deadline. That has been counted, and is not the
// client's fault.
var ErrLate error = lateError{}

type lateError struct{}

func (lateError) Error() string        { return "http: the write deadline has passed" }
func (lateError) Timeout() bool        { return true }
func (lateError) Is(target error) bool { return target == os.ErrDeadlineExceeded }
