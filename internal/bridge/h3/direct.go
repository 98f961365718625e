package h3

import (
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/stats"
)

// This file is the fast path: a request that is answered from its decoded fields.

// directRequest is what the fast path makes of a request: the conn.UserCode of a direct handler.
type directRequest struct {
	handler direct.Handler
	x       wire.Exchange
	st      *stream
	block   []byte
	route   string // that a router has matched, when the handler has declined
	// What Run has found: the handler has returned, and has answered.
	returned, answered bool
}

// Run implements conn.UserCode.
func (d *directRequest) Run() {
	if d.st.way == stats.Goroutine {
		t := d.st.s.tally
		t.Add(false, tally.HandlersBegun, 1)
		defer t.Add(false, tally.HandlersEnded, 1)
	}
	d.st.timing.Begin()
	d.answered = d.handler.ServeDirect((*direct.Exchange)(&d.x))
	d.returned = true
	d.st.timing.End()
}

// Ended implements conn.UserCode.
func (d *directRequest) Ended(e exec.End) {
	d.st.show(nil, "") // a handler that has ended its goroutine does not return to the caller, which does so otherwise
	d.st.timing.End()
	d.st.s.LogEnd(e)
	if e.Exited() {
		d.abandon()
	}
}

// serveDirect serves a request by the fast path, or reports false: then the request is for the
// plain way. Afterwards r is not the caller's.
func (st *stream) serveDirect(r *request) bool {
	s := st.s
	h, ok := s.UserHandler().(direct.Handler)
	if !ok {
		return false
	}
	req, ok := section.Direct(&s.Client, h, &r.fields, &r.t, 3, false)
	if !ok {
		return false
	}
	req.Early = st.early
	d := &r.direct
	d.handler, d.st, d.returned, d.answered = h, st, false, false
	if st.way = stats.Direct; !st.leading() {
		st.way = stats.Goroutine
	} else if !st.placeDirect(req.Method, req.Target) {
		return false
	}
	d.x.Reset(req)
	st.timing.Select(s.tally, false)
	st.show(d, "handler")
	st.oversee()
	exec.Call(d.Run, d.Ended)
	st.show(nil, "")
	switch {
	case !d.returned: // d may still be in use, so it is not kept
		d.abandon()
		return true
	case d.answered && d.x.Plan() == nil:
		st.answerDirect(d)
		return true
	}
	exec.Call(d.x.Discard, s.LogEnd)
	route := d.x.Pattern()
	d.reset()
	d.route = route
	return false
}

// show has Running see a request at a stage, and late the handler that is about to run, or with nil not any more.
func (st *stream) show(d *directRequest, stage string) {
	if d == nil {
		st.unsee()
	}
	st.mu.Lock()
	st.quick, st.stage = d, stage
	st.mu.Unlock()
}

// placeDirect decides whether the leader runs the handler; see h1.
func (st *stream) placeDirect(method string, target []byte) bool {
	s := st.s
	if s.Placement == bridge.Inline {
		return true
	}
	return s.Placement != bridge.Pooled && (!s.DirectLate.Load() || !s.Places.Struck(method, view.String(target)))
}

// late notes that the handler has kept the leader for too long.
func (d *directRequest) late(held time.Duration) {
	s := d.st.s
	d.st.timing.Held(held)
	if s.Placement == bridge.Adaptive && s.Places.Late(d.x.Method(), view.String(d.x.Target()), held) {
		s.DirectLate.Store(true)
	}
}

// reset makes d empty.
func (d *directRequest) reset() {
	d.x.Reset(wire.Request{})
	d.handler, d.st = nil, nil
}

// abandon ends a request whose handler has panicked.
func (d *directRequest) abandon() {
	st := d.st
	s := st.s
	o := bridge.Abandoned(&d.x)
	s.Follow(own{st}, &o)
	exec.Call(d.x.Drop, s.LogEnd)
	st.timing.Account(s.tally, false, st.answered(), d.x.Pattern())
	st.abort(&http3.StreamError{Code: http3.InternalError})
	st.finished()
}

// answerDirect ends a request with the answer that its handler has made.
func (st *stream) answerDirect(d *directRequest) {
	defer st.finished() // also if code of the answer's file ends its goroutine
	st.sendDirect(d)
	d.reset()
	st.freeRequest()
}

// sendDirect sends the answer. Code of its file may panic, or end its goroutine.
func (st *stream) sendDirect(d *directRequest) {
	s := st.s
	var a wire.Answer
	var o bridge.Outcome
	made, err := false, errLength
	defer func() {
		st.show(nil, "")
		if !made { // Done of a file that is not sent
			o = bridge.Abandoned(&d.x)
		}
		if err != nil {
			o.Cut(st.sent)
		}
		if !st.settle() {
			st.abort(&http3.StreamError{Code: http3.InternalError})
		}
		s.Follow(own{st}, &o)
		st.timing.Account(s.tally, false, st.answered(), d.x.Pattern())
	}()
	if made = exec.Call(func() { a = d.x.Finish() }, s.LogEnd); !made {
		return
	}
	st.show(d, "write")
	o = bridge.OutcomeOf(&a)
	st.status = int32(a.Status)
	b := appendDirect(d.block[:0], &a)
	d.block = b
	if limit := a.WriteLimit(s.WriteTimeout); limit > 0 {
		own{st}.SetWriteDeadline(time.Now().Add(limit))
	}
	if a.File.File != nil {
		err = st.sendFile(b, &a.File)
	} else {
		err = st.put(b, nil, a.Body)
	}
	if err == nil {
		err = st.endSent()
	}
}

// appendDirect appends the field section of an answer.
func appendDirect(b []byte, a *wire.Answer) []byte {
	b = qpack{}.Status(b, a.Status)
	for i := range a.Fields {
		b = http3.AppendField(b, a.Fields[i].Name, a.Fields[i].Value)
	}
	if !a.HasDate {
		b = dateField.Append(b, sys.Nanotime())
	}
	return b
}

// sendFile sends an answer whose body is a part of a file.
func (st *stream) sendFile(head []byte, f *direct.File) (err error) {
	w := &frames{st: st, head: head}
	if f.Done != nil {
		defer exec.Call(f.Done, st.s.LogEnd)
	}
	st.declare(f.Len)
	err = errLength
	exec.Call(func() { err = f.CopyTo(w) }, st.s.LogEnd) // it calls Check
	if err == nil && w.head != nil {                     // an empty file
		_, err = w.Write(nil)
	}
	return err
}

// frames is an answer that is written as it is read from a file.
type frames struct {
	st   *stream
	head []byte // to be sent first
}

// Write implements io.Writer.
func (w *frames) Write(p []byte) (int, error) {
	head := w.head
	w.head = nil
	if err := w.st.put(head, nil, p); err != nil {
		return 0, err
	}
	return len(p), nil
}
