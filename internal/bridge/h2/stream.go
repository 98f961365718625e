package h2

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// exchange is what a handler may keep of a stream. With the word that the allocator
// keeps before it, it is to fit a class of sizes.
type exchange struct {
	bridge.Exchange
	client bridge.Client // its Link is link
	link   link
	values [2]string // of the request's fields, if they are not more
}

// stream is one request and its answer: the conn.Run of its handler, and the
// bridge.Message of its exchange. Both are reused, or the stream alone; see reuse.go.
type stream struct {
	*exchange
	s       *Session
	id      uint32
	status  int32 // of a direct answer, or one that is made without a handler
	place   conn.Here
	tunnel  *tunnel  // nil unless the stream was taken over; set with s.mu held
	writing *writing // nil before anything of the answer was written, and after it

	// The owner's, and the handler's goroutine's before it returns.
	next     conn.Next
	leave    bool        // the handler has set "Connection: close"
	deferred bool        // its handler begins when the body has come
	started  bool        // its handler runs, or has run, or waits for a slot
	isTunnel bool        // it is a tunnel, and the handler has returned
	made     bool        // makeRequest was called
	direct   *request    // that a direct handler is to have
	length   int64       // declared, -1 for none
	trailer  http.Header // announced; values when they have come
	pattern  string      // of a direct answer's route
	parts    *parts      // nil without ReuseRequests

	// What follows is guarded by s.mu.
	slot       slotState
	window     uint32    // of inflow
	fields     int       // of the request and its trailers, in Session.fields
	cond       sync.Cond // windows, room, body, deadlines, the end
	priority   http2.Priority
	turn       uint64 // of order; when it has sent last
	sendWindow http2.Window
	inflow     http2.Inflow
	received   int64 // of the body
	awaits     bool  // the client expects 100 (Continue), which has not been sent
	sent, mark int64 // of the answer; what it was when Expired looked last
	markAll    int64 // the same of Session.sentAll
	body       queue
	rest       []byte   // of the answer, when the handler has returned
	restBuf    *buf.Buf // whose bytes they are; nil for others'
	release    func()   // when rest is not needed any more; nil for nothing
	tail       *buf.Buf // the trailers' block; nil if there are none
	follower   conn.Follower
	lasting    *lasting // after Last
	readBy     time.Time
	writeBy    time.Time
	waited     bool
	heading    bool // it waits for room for a header block
	// remoteClosed, localClosed: END_STREAM has come, was sent. closed: both, or a
	// reset, byUs or by the client. done: the handler has returned.
	remoteClosed, localClosed, closed, byUs, done bool
	headOut                                       bool  // HEADERS are out
	listed                                        bool  // in Session.streams
	unwanted                                      bool  // the handler has closed the body
	err                                           error // of the stream, once closed by a reset
	counted                                       bool  // as a request that has ended
	returned                                      bool  // from a handler beside the loop
	shown                                         bool  // to goroutines that are not the owner; not used on loops
	lingerBy                                      int64 // when it is reset, while it is in Session.lingering; else 0
	endedAt                                       int64 // when its handler had returned, if some of the answer was left; 0 if nothing
}

var errReset = errors.New("http2: the client has reset the stream")
var errStall = &http2.StreamError{Code: http2.Cancel, Reason: "the client opens no window"}

// kill ends the stream because of err, which is the client's, or the connection's. mu
// is held; gone follows without it.
func (st *stream) kill(err error) {
	if st.err == nil {
		st.err = err
	}
	st.closed, st.byUs = true, err != errReset
	st.dropBody()
	// Now, not when its handler has returned: it would hold up others, and the handler may
	// wait for it.
	st.s.unpend(st)
	st.tunnel.lose()
	st.cond.Broadcast()
}

// gone tells the handler that the client has left. mu is not held.
func (st *stream) gone() {
	s := st.s
	s.mu.Lock()
	owed := false
	if st.slot == slotQueued {
		// One that was given meanwhile comes by Post, unless the connection has ended.
		if withdrawn := s.Slots.Withdraw(st); withdrawn || s.over != nil {
			st.slot, owed = slotNone, !withdrawn
			st.forget()
		}
	}
	s.mu.Unlock()
	if owed {
		s.Slots.Release()
	}
	st.Gone(&st.client, true)
	s.mu.Lock()
	l := st.lasting
	s.mu.Unlock()
	if l != nil {
		l.closed()
	}
}

// forget is the end of a stream whose handler will not run. mu is held.
func (st *stream) forget() {
	st.done, st.started = true, false
	st.s.drop(st)
}

// Run implements conn.Run.
func (st *stream) Run() {
	st.next = conn.Close // if the handler ends its goroutine
	defer st.ran()
	st.next = st.Serve()
}

// Left implements conn.Leaver. It counts the request if its connection has ended
// meanwhile: then Done is not called.
func (st *stream) Left() {
	s := st.s
	s.finishing.Add(1)
	s.mu.Lock()
	st.returned = true
	orphan := s.gone && !st.counted
	st.counted = st.counted || orphan
	s.mu.Unlock()
	if orphan {
		st.account(false)
	}
}

// Done implements conn.Run.
func (st *stream) Done() conn.Next {
	s := st.s
	s.finishing.Add(-1)
	st.finish()
	return s.after(true)
}

// finish ends the stream on the server's side, after the handler has returned.
func (st *stream) finish() {
	s := st.s
	if s.loops {
		st.Learn(&st.link)
	}
	st.account(s.loops && s.Link.OnLoop())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.high = s.out != nil && len(s.out.B) >= maxOut
	s.work += int(st.sent / madeSize)
	if st.counted = true; len(st.rest) > 0 && st.tunnel == nil && st.lasting == nil {
		st.endedAt = s.Link.Now()
	}
	// What answers a request that the client has reset does not concern the others.
	if st.leave && st.err == nil {
		s.beginDrain()
	}
	st.done = true
	if st.tunnel != nil {
		st.tunnel.finished()
		return
	}
	st.dropBody()
	switch {
	case st.closed:
	case st.lasting != nil:
		st.Shed()
		st.trailer, st.parts = nil, nil
		st.unkeep()
		s.closeIfSent(st)
		st.lasting.settled()
		st.lasting.stopLate()
	case st.next == conn.Close || st.next == conn.Reset || !st.localClosed && st.rest == nil && st.tail == nil:
		// A panic, or an answer that is not what its head promises.
		s.room(16)
		s.out.B = http2.AppendRST(s.out.B, st.id, http2.InternalError)
		st.closed, st.byUs = true, true
		st.dropRest()
	default:
		if s.closeIfSent(st); !st.closed {
			st.shed()
		}
	}
	s.drop(st)
}

// account counts the request, whose handler has returned.
func (st *stream) account(driving bool) {
	s := st.s
	if st.tunnel != nil || st.lasting != nil {
		return // it was counted when it was taken over
	}
	if st.made {
		if !st.headOut {
			st.Unsent()
		}
		st.Account(driving)
	} else {
		st.Time.Account(s.Link.Tally(), driving, tally.AnswerOf(tally.HTTP2, tally.ClassOf(int(st.status)), st.Way), st.pattern)
	}
}

// lost counts the request if finish has not, nor Left will. mu is held.
func (st *stream) lost() {
	switch {
	case st.counted:
		return
	case st.tunnel != nil || st.lasting != nil:
	case st.returned:
		st.account(false)
	case st.started && st.made && (st.Way != stats.Inline || st.place.Gone()) && st.slot != slotQueued:
		return // its handler runs
	default:
		st.Time.Drop(st.s.Link.Tally())
		st.s.Link.Tally().Answer(false, tally.AnswerOf(tally.HTTP2, tally.ClassOf(int(st.status)), st.Way), st.pattern, nil, false)
	}
	st.counted = true
}

// invalid refuses a request that the plain way cannot make of its fields, before its
// handler. The error is for refuse.
func (st *stream) invalid() error {
	s := st.s
	st.started, st.status = false, http.StatusBadRequest
	s.mu.Lock()
	st.lost() // counted before the hook may look
	s.mu.Unlock()
	s.Refuse(int(st.status), errMalformed.Reason, nil)
	return s.malformed(st.id)
}

// closeIfSent closes a stream whose answer has been sent. What the client still sends
// of the request is not wanted (RFC 9113 section 8.1); see linger. mu is held.
func (s *Session) closeIfSent(st *stream) {
	if !st.localClosed || !st.done || st.closed {
		return
	}
	if !st.remoteClosed {
		// A client that waits for 100 (Continue) would wait on. It sends nothing that could be
		// in the way of the answer.
		waits := st.awaits && st.received == 0
		if st.tunnel == nil && st.lasting == nil && !waits {
			s.linger(st)
			return
		}
		s.room(16)
		s.out.B = http2.AppendRST(s.out.B, st.id, http2.NoError)
		st.byUs = true
	}
	st.closed = true
	s.resets.refund(1)
}

// late notes that the handler holds the loop.
func (st *stream) late(held time.Duration) {
	switch {
	case st.isTunnel:
		st.tunnel.session.Late(held)
	case st.direct != nil:
		st.direct.late(st.s, held)
	default:
		st.Late(held)
	}
}

// begin begins the handler of a request that has come, or puts that off. It reports
// whether the loop is still the caller's.
func (s *Session) begin(st *stream) (kept bool) {
	if st.direct != nil {
		return s.beginDirect(st)
	}
	return s.admit(st, true)
}

// admit takes a slot for the handler and runs it. inline: on the loop, if it is likely
// to be quick. It reports whether the loop is still the caller's.
func (s *Session) admit(st *stream, inline bool) (kept bool) {
	st.started = true
	if s.Slots != nil && st.slot == slotNone && !st.acquire() {
		st.Time.Queued = true
		return true
	}
	inline = inline && s.loops && s.Link.OnLoop() && (st.Quick() || st.Refusal == bridge.ForRoom)
	if st.Time.Select(s.Link.Tally(), inline); !inline {
		if st.Way = stats.Pooled; !s.loops {
			st.Way = stats.Goroutine
		}
		st.Time.Queued = true
		if !s.loops {
			s.mu.Lock()
			st.shown = true
			s.mu.Unlock()
		}
		s.Link.Start(st)
		return true
	}
	st.Way, st.InTurn = stats.Inline, st.Time.Since == s.Link.Now()
	s.runsHere(st)
	if !s.Link.StartHere(st, &st.place) {
		return false
	}
	st.finish()
	return true
}

// runsHere notes whose handler runs on the loop from now on.
func (s *Session) runsHere(st *stream) {
	if s.here.Load() != st { // a store costs more
		s.here.Store(st)
	}
}

// wait waits until something of the stream changes, a deadline passes, or stall
// nanoseconds go by. mu is held, and given up meanwhile.
func (st *stream) wait(by time.Time, until int64) error {
	s := st.s
	if !by.IsZero() {
		if left := time.Until(by); until == 0 || sys.Nanotime()+int64(left) < until {
			until = sys.Nanotime() + int64(left)
		}
	}
	if until != 0 && sys.Nanotime() >= until {
		return os.ErrDeadlineExceeded
	}
	st.waited = true
	var t *time.Timer
	if until != 0 {
		t = time.AfterFunc(time.Duration(until-sys.Nanotime()), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			st.cond.Broadcast()
		})
	}
	// The loop goes on without this goroutine. That takes a lock of the loop's, under
	// which the session's is not taken.
	st.place.Yield()
	st.cond.Wait()
	if sched.On() {
		s.mu.Unlock()
		sched.Point(s.Link.Peer(), uint64(st.id))
		s.mu.Lock()
	}
	if t != nil {
		t.Stop()
	}
	return nil
}

// stallBy is when a wait that begins now has taken too long; 0 for never.
func stallBy(limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	return sys.Nanotime() + limit
}
