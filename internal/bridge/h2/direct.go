package h2

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/stats"
)

// This file is the fast path: a request that is answered from its decoded fields.

// request is a decoded header block, and what the direct way makes of it: the conn.Run
// of a direct handler. It is pooled.
type request struct {
	fields  section.Fields
	cost    int32 // of the block, if it does nothing
	t       section.Target
	handler direct.Handler
	x       wire.Exchange
	st      *stream
	block   []byte
	file    direct.File
	// What Run has found: the handler has returned, and has answered.
	returned, answered bool
	// over is set by Run in the end, and by Session.Closed. The second of them gives up
	// what the handler has left: the connection has ended, and Done is not called.
	over atomic.Bool
}

var requests = sync.Pool{New: func() any {
	r := new(request)
	r.fields.Init()
	return r
}}

// free gives r back. Nothing of the request may be used any more.
func (r *request) free() {
	r.reset()
	requests.Put(r)
}

// reset makes r empty, for another header block.
func (r *request) reset() {
	if r.handler != nil {
		r.x.Reset(wire.Request{})
		r.handler, r.st, r.returned, r.answered = nil, nil, false, false
		r.over.Store(false)
		r.file = direct.File{}
	}
	r.t = section.Target{}
	r.fields.Reset()
}

// takesDirect reports whether a request goes the direct way.
func (s *Session) takesDirect(r *request, end bool) bool {
	dh, ok := s.UserHandler().(direct.Handler)
	if !ok || !end && !s.forwards() {
		return false
	}
	req, ok := section.Direct(&s.Client, dh, &r.fields, &r.t, 2, !end)
	if !ok || !s.PlaceDirect(s.loops, req.Method, req.Target) {
		return false
	}
	req.Forwards = s.forwards()
	if s.loops && s.Link.OnLoop() {
		req.Time = bridge.ClockAtZero + time.Duration(s.Link.Now())
	}
	r.handler = dh
	r.x.Reset(req)
	return true
}

// beginDirect runs the handler here. It reports whether the loop is still the
// caller's.
func (s *Session) beginDirect(st *stream) (kept bool) {
	r := st.direct
	st.begins(stateDirect)
	onLoop := s.Link.OnLoop()
	if st.Way = stats.Direct; !s.loops {
		st.Way = stats.Goroutine
	}
	st.Time.Select(s.Link.Tally(), onLoop)
	s.runsHere(st)
	if !s.Link.Start(r, &st.place) {
		return false
	}
	return r.finish()
}

func (r *request) Run() {
	r.st.Time.Begin()
	r.answered = r.handler.ServeDirect((*direct.Exchange)(&r.x))
	r.returned = true
	r.ran()
}

func (r *request) Ended(e exec.End) {
	r.st.s.LogEnd(e)
	r.ran()
}

func (r *request) ran() {
	r.st.Time.End()
	if r.over.Swap(true) {
		r.drop()
	}
}

func (r *request) Done() conn.Next {
	s := r.st.s
	return s.after(r.finish())
}

// finish sends the answer, or has the plain way make one. It reports whether the loop is
// still the caller's.
func (r *request) finish() (kept bool) {
	st, s := r.st, r.st.s
	st.direct = nil
	switch {
	case !r.returned: // r may still be in use, so it is not kept
		r.abandon()
		return true
	case !r.answered:
		outbound.Drop(r.x.Plan(), reason.None)
	case r.x.Missed(): // what the handler has made was not made of the body
		outbound.Drop(r.x.Plan(), reason.None)
		s.BodiesRead.Store(true)
	case r.x.Plan() == nil:
		r.send()
		return true
	default:
		if p := r.plan(); p != nil {
			r.forward(p)
			return true
		}
	}
	exec.Call(r.x.Discard, s.LogEnd)
	s.mu.Lock()
	closed := st.closed()
	if closed { // by a reset of the client's, which is not answered
		st.accountUnserved()
		st.retireLocked()
	} else {
		st.become(stateNew)
	}
	s.mu.Unlock()
	if closed {
		r.free()
		return true
	}
	begins, err := st.makeRequest(r, !r.x.Ahead(), r.x.Pattern())
	if r.free(); err != nil {
		s.refuse(st.id, err)
	}
	return begins == nil || s.admit(begins, true)
}

// abandon ends a request whose handler, or Done of its file, has panicked.
func (r *request) abandon() {
	st, s := r.st, r.st.s
	outbound.Drop(r.x.Plan(), reason.None)
	o := bridge.Abandoned(&r.x)
	s.Follow(link{st}, &o)
	exec.Call(r.x.Drop, s.LogEnd)
	st.next = conn.Close
	st.account(s.loops && s.Link.OnLoop())
	st.finish()
}

// send sends the answer that the handler has made.
func (r *request) send() {
	st, s := r.st, r.st.s
	var a wire.Answer
	if !exec.Call(func() { a = r.x.Finish() }, s.LogEnd) { // Done of a file that is not sent
		r.abandon()
		return
	}
	st.status, st.pattern = int32(a.Status), r.x.Pattern()
	r.block = s.appendAnswer(r.block[:0], &a)
	o := bridge.OutcomeOf(&a)
	if a.File.File != nil {
		r.file = a.File
		if d := a.WriteLimit(s.WriteTimeout); d > 0 {
			link{st}.SetWriteDeadline(time.Now().Add(d))
		}
		st.next = conn.Close // unless all of it is sent
		s.Link.Start(&sendFile{r, o}, nil)
		return
	}
	kept, err := r.sendBody(a.Body, a.WriteLimit(s.WriteTimeout))
	if err != nil {
		o.Cut(0)
	}
	if o.Watched() {
		s.Follow(link{st}, &o)
	}
	st.next = conn.More
	st.account(s.loops && s.Link.OnLoop())
	st.finish()
	if !kept {
		r.free()
	}
}

// appendAnswer appends the head of an answer.
func (s *Session) appendAnswer(b []byte, a *wire.Answer) []byte {
	b = http2.AppendStatus(b, a.Status)
	for i := range a.Fields {
		if f := &a.Fields[i]; f.Name == "Content-Type" {
			b = http2.AppendType(b, f.Value)
		} else {
			b = http2.AppendField(b, f.Name, f.Value)
		}
	}
	if !a.HasDate {
		b = dateField.Append(b, s.Link.Now())
	}
	return append(b, s.cfg.AltSvc.Block()...)
}

// sendBody sends the answer, whose body is body, as far as the client takes it, and
// reports whether r is kept for the rest, which may take as long as limit, 0 for any time. An
// error means that nothing is sent.
func (r *request) sendBody(body []byte, limit time.Duration) (kept bool, err error) {
	st, s := r.st, r.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := st.sendableLocked(); err != nil {
		return false, err
	}
	s.putBlockLocked(st, r.block, len(body) == 0)
	if body, _ = s.sendLocked(st, body, nil, true); len(body) == 0 {
		st.become(stateAnswered)
		return false, nil
	}
	st.writeBy = stallBy(int64(limit))
	s.pendLocked(st, &rest{bytes: body, release: r.free})
	return true, nil
}

// sendFile sends an answer whose body is a part of a file, beside others.
type sendFile struct {
	r *request
	o bridge.Outcome
}

// Run implements conn.Run. It leaves nothing to Done that must be done: the connection
// may end before.
func (f *sendFile) Run() {
	r, st := f.r, f.r.st
	if st.commit(r.block, nil, nil, false, nil) == nil && r.file.CopyTo(f) == nil &&
		st.commit(nil, nil, nil, true, nil) == nil {
		st.next = conn.More
	}
	f.close()
}

// Ended implements conn.Run.
func (f *sendFile) Ended(e exec.End) {
	f.r.st.s.LogEnd(e)
	f.close()
}

// Write implements io.Writer.
func (f *sendFile) Write(p []byte) (int, error) {
	if err := f.r.st.commit(nil, nil, p, false, nil); err != nil {
		return 0, err
	}
	return len(p), nil
}

// close gives the file back, and notifies the watcher of the answer.
func (f *sendFile) close() {
	st, s := f.r.st, f.r.st.s
	defer s.finishing.Add(1)
	if st.next == conn.Close {
		s.mu.Lock()
		f.o.Cut(st.sent)
		s.mu.Unlock()
	}
	if f.o.Watched() {
		s.Follow(link{st}, &f.o)
	}
	if done := f.r.file.Done; done != nil {
		exec.Call(done, s.LogEnd)
	}
}

// Done implements conn.Run.
func (f *sendFile) Done() conn.Next {
	r, st := f.r, f.r.st
	s := st.s
	s.finishing.Add(-1)
	st.account(s.loops && s.Link.OnLoop())
	st.finish()
	r.free()
	return s.settle(conn.More)
}
