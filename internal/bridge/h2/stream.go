package h2

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/priority"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// exchange is what a handler may keep of a stream. With the word that the allocator
// keeps before it, it fits a size class.
type exchange struct {
	bridge.Exchange
	values [2]string // of the request's fields, if they are not more
}

// stream is one request and its answer: the conn.Run of its handler, and the
// bridge.Message of its exchange. It is reused; see reuse.go.
type stream struct {
	*exchange
	s       *Session
	id      uint32
	status  int32 // of the answer, once its head is out; of a direct one, or one without a handler
	place   conn.Here
	tunnel  *tunnel          // nil unless the stream was taken over; set with s.mu held
	writing *section.Writing // nil before anything of the answer was written, and after it

	// The owner's, and the handler's goroutine's before it returns.
	next      conn.Next
	leave     bool        // the handler has set "Connection: close"
	hasSlot   bool        // of Server.MaxHandlers
	tunnelled bool        // the tunnel runs; for Late, which has no lock
	inTurn    bool        // the handler began in the turn of the loop in which the request had come
	direct    *request    // that a direct handler is to have
	length    int64       // declared, -1 for none
	trailer   http.Header // announced; values when they have come
	pattern   string      // of a direct answer's route

	// cond is for windows, room, body, deadlines, the end: nil before some goroutine has waited for
	// the client. It is set with s.mu held.
	cond atomic.Pointer[sync.Cond]

	// What follows is guarded by s.mu; of state, see become.
	state        state
	remoteClosed bool   // END_STREAM has come
	connect      bool   // the method is CONNECT: what follows is no content
	heading      bool   // the handler waits for room for a header block
	awaits       bool   // the client expects 100 (Continue), which has not been sent
	late         bool   // the handler has met its write deadline, which bridge.Response counts
	err          error  // why it was closed, or the connection has ended, early
	window       uint32 // of inflow
	fields       int    // of the request and its trailers, in Session.fields
	priority     priority.Priority
	turn         uint64 // of order; when it has sent last
	sendWindow   http2.Window
	inflow       http2.Inflow
	received     int64 // of the body
	sent         int64 // of the answer
	body         queue
	rest         *rest // of the answer, which no goroutine waits to send; nil if there is none
	follower     conn.Follower
	lasting      *lasting // after Last
	upload       *upload  // of a request that was forwarded before its body had come; nil for others
	readBy       int64    // deadlines of sys.Nanotime; 0 for none, as is a sum that has overflown
	writeBy      int64
	lingerBy     int64 // when a stream that lingers is reset
}

var errStall = &http2.StreamError{Code: http2.Cancel, Reason: "the client opens no window"}

func (st *stream) Run() {
	st.next = st.Serve()
	st.handOver()
}

func (st *stream) Ended(e exec.End) {
	if st.next = st.Cut(e); e.Exited() {
		st.next = conn.Close
	}
	st.handOver()
}

// Left implements conn.Leaver: the handler has returned on another goroutine. Done is
// not called if the connection ends before.
func (st *stream) Left() {
	s := st.s
	if st.lasting != nil || st.Body != nil {
		s.mu.Lock()
		if l := st.lasting; l != nil {
			l.returned = true
		} else if st.ownsBodyLocked() {
			st.body.unwanted = true
			st.dropBodyLocked()
		}
		s.mu.Unlock()
	}
	st.account(false)
	s.finishing.Add(1)
}

func (st *stream) Done() conn.Next {
	s := st.s
	s.finishing.Add(-1)
	st.finish()
	return s.after(true)
}

// finish is for the owner, when the handler has returned and was counted: it ends the
// stream, or leaves the rest of the answer to others.
func (st *stream) finish() {
	s := st.s
	if s.loops {
		st.Learn(st.waited())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work += int(st.sent / madeSize)
	s.crowded = s.outFullLocked()
	// What answers a request that the client has reset does not concern the others.
	if st.leave && st.err == nil {
		s.beginDrainLocked()
	}
	if st.tunnel != nil {
		st.tunnel.beginLocked()
		return
	}
	st.dropBodyLocked()
	l := st.lasting
	if l != nil {
		st.Shed()
		st.trailer = nil
		st.unkeepLocked()
	} else if st.rest != nil {
		st.rest.since = s.Link.Now()
	}
	switch {
	case st.state == stateReset:
		st.retireLocked()
		return
	case st.state == stateAnswered:
		if !st.answeredLocked() {
			return
		}
	case l == nil && (st.next == conn.Close || st.next == conn.Reset || st.rest == nil):
		// A panic, or an answer that is not what its head promises.
		st.become(stateSending)
		s.rstLocked(st.id, http2.InternalError)
		st.closeLocked(nil)
		return
	default:
		st.become(stateSending)
	}
	if l == nil {
		st.shedLocked()
		return
	}
	if l.settledLocked(); s.Ending() && l.open() { // it was handed over while the server shut down
		s.freed = append(s.freed, l.source.Stop)
	}
}

// account counts the request, whose handler has returned.
func (st *stream) account(driving bool) {
	s := st.s
	if st.tunnel != nil || st.lasting != nil {
		return // it was counted when it was taken over
	}
	if !st.made() {
		st.Time.Account(s.Link.Tally(), driving, st.answer(), st.pattern)
		return
	}
	if st.status == 0 {
		st.Unsent()
	}
	st.Account(driving)
}

// accountUnserved counts a request without its times: it has no handler, or Done of a
// direct one will not be called.
func (st *stream) accountUnserved() {
	t := st.s.Link.Tally()
	st.Time.Drop(t)
	t.Answer(false, st.answer(), st.pattern, nil, false)
}

func (st *stream) answer() tally.ID {
	return tally.AnswerOf(tally.HTTP2, tally.ClassOf(int(st.status)), st.Way)
}

// made reports whether makeRequest was called.
func (st *stream) made() bool { return st.Shared }

// admit begins the handler of a request that has come, when there is a slot for it. inline: on the
// loop, if it is likely to be quick. It reports whether the loop is still the caller's.
func (s *Session) admit(st *stream, inline bool) (kept bool) {
	if st.direct != nil {
		return s.beginDirect(st)
	}
	if s.Slots != nil && !st.hasSlot && !st.acquire() {
		st.Time.Queued = true
		return true
	}
	inline = inline && s.loops && s.Link.OnLoop() && (st.Quick() || st.Refusal == bridge.ForRoom)
	if st.Time.Select(s.Link.Tally(), inline); !inline {
		if st.Way = stats.Pooled; !s.loops {
			st.Way = stats.Goroutine
		}
		st.Time.Queued = true
		st.begins(stateRunning)
		s.Link.Start(st, nil)
		return true
	}
	st.become(stateRunning)
	st.Way, st.inTurn = stats.Inline, st.Time.Since == s.Link.Now()
	s.runsHere(st)
	if !s.Link.Start(st, &st.place) {
		return false
	}
	st.account(s.Link.OnLoop())
	st.finish()
	return true
}

// runsHere notes whose handler runs on the loop from now on.
func (s *Session) runsHere(st *stream) {
	if s.here.Load() != st { // a store costs more
		s.here.Store(st)
	}
}
