package h1

import (
	"iter"
	"net/http"
	"sync"
	"time"
	"unsafe"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/stats"
)

// This file is the direct way: the request stays in the buffer it was read
// into, within the call that owns the buffer, and the response is sent in one
// piece.

// request is a request head and the direct way's state for it. It is taken from a
// pool when a head is parsed and returned at once, or when the direct answer has
// been sent.
type request struct {
	head    http1.Request
	raw     []byte // head and body, owned by the Link; valid until serveDirect returns
	body    int    // how much of raw is body
	in      intake // of a body that has not arrived
	handler direct.Handler
	x       wire.Exchange
	s       *Session // of the answer that is being sent
	out     []byte
	file    direct.File               // that is being sent
	w       conn.Write                // the answer, for Send
	all     iter.Seq2[[]byte, []byte] // each, as a value allocated once
	time    bridge.Timing
	// Of the handler: it has answered, or has not returned.
	answered, failed bool
}

var requests = sync.Pool{New: func() any {
	r := new(request)
	r.all = r.each
	return r
}}

const (
	// keepOut is the largest response buffer that is kept for reuse.
	keepOut = 16 << 10
	// joinBody is the largest body that is copied after its head.
	joinBody = 4 << 10
)

// free returns r to the pool. No part of the request may be used afterwards.
func (r *request) free() {
	if r.handler != nil {
		r.raw, r.handler, r.s, r.w.B, r.w.File = nil, nil, nil, nil, nil
		r.time = bridge.Timing{}
		r.x.Reset(wire.Request{})
		if cap(r.out) > keepOut {
			r.out = nil
		}
	}
	requests.Put(r)
}

// takeDirect reports whether the request that begins b, with a head of n bytes,
// goes the direct way.
//
// That requires a body that has arrived completely, or a handler that does not need
// it, and a head without Upgrade and the like. All others are left to the plain way,
// and so is Pragma, which buildHeader turns into another field.
func (s *Session) takeDirect(r *request, b []byte, n int, busy bool) bool {
	dh, ok := s.UserHandler().(direct.Handler)
	h := &r.head
	if !ok || h.Form != http1.FormOrigin || h.Minor == 0 || h.ExpectOther || h.Upgrade || h.Preface {
		return false
	}
	body := max(h.ContentLength, 0)
	r.in = intake{}
	if h.Chunked || h.ExpectContinue || body > direct.MaxBody || int64(len(b)-n) < body {
		if busy || !s.ahead(dh) {
			return false
		}
		r.in = intakeOf(h)
		body = 0
	}
	r.body = int(body)
	r.raw = b[:n+r.body]
	target := h.Target.Bytes(b)
	peer := s.Link.Peer()
	req := wire.Request{
		Method: bridge.MethodOf(h.Method.Bytes(b)), Target: target, Host: h.Host.Bytes(b),
		Body: r.raw[n:], RemoteAddr: peer.RemoteAddr, PeerIP: peer.IP, TLS: s.HasTLS(), Fields: r,
		Local: s, Forwards: s.is(onLoops) && s.Link.OnLoop(), Ahead: r.in.open, Length: h.ContentLength,
	}
	if r.has(http1.FieldPragma) || !bridge.SplitTarget(&req) || !s.PlaceDirect(s.is(onLoops), req.Method, target) {
		return false
	}
	r.handler = dh
	r.x.Reset(req)
	return true
}

// late records that the handler has held a loop for too long.
func (r *request) late(s *Session, held time.Duration) {
	r.time.Held(held)
	if r.time.Lost() {
		one := s.Shown(unsafe.Pointer(r), r.x.Method(), view.String(r.x.Target()))
		one.Protocol, one.Way, one.Stage = "HTTP/1.1", stats.Direct, "handler"
		s.Strayed(s, one, r.time.Since)
	}
	s.LateDirect(r.x.Method(), r.x.Target(), held)
}

func (r *request) has(id http1.FieldID) bool {
	for i := range r.head.Fields {
		if r.head.Fields[i].ID == id {
			return true
		}
	}
	return false
}

// Get implements wire.Fields.
func (r *request) Get(name string) []byte {
	value, _ := r.find(name, 1)
	return value
}

// First implements wire.Fields.
func (r *request) First(name string) (value []byte, n int) { return r.find(name, len(r.head.Fields)) }

// find returns the first value of a field, and how many there are, up to most.
func (r *request) find(name string, most int) (value []byte, n int) {
	id := http1.LookupField(view.Bytes(name))
	for i := range r.head.Fields {
		f := &r.head.Fields[i]
		if f.ID != id || id == http1.FieldHost ||
			id == http1.FieldUnknown && !http1.FoldEqual(f.Name.Bytes(r.raw), name) {
			continue
		}
		if n == 0 {
			value = f.Value.Bytes(r.raw)
		}
		if n++; n == most {
			break
		}
	}
	return value, n
}

// All implements wire.Fields.
func (r *request) All() iter.Seq2[[]byte, []byte] { return r.all }

func (r *request) each(yield func(name, value []byte) bool) {
	for i := range r.head.Fields {
		f := &r.head.Fields[i]
		if f.ID != http1.FieldHost && !yield(f.Name.Bytes(r.raw), f.Value.Bytes(r.raw)) {
			return
		}
	}
}

// serveDirect answers r, or passes it to the plain way.
func (s *Session) serveDirect(r *request, busy bool) (next conn.Next, served bool) {
	now := int64(0)
	if s.is(onLoops) && s.Link.OnLoop() {
		// The loop's time, which needs no call: when it found the request, or
		// the one before it, readable.
		now = s.Link.Now()
		r.x.SetTime(bridge.ClockAtZero + time.Duration(now))
	}
	if busy {
		r.handler = bridge.Busy
	}
	r.time.Select(s.Link.Tally(), now != 0)
	r.s, r.answered, r.failed = s, false, false
	s.direct = r
	ran, _ := s.Link.Do((*handling)(r))
	if s.direct = nil; r.time.Lost() {
		s.Found(s)
	}
	switch {
	case !ran || r.failed: // r may still be in use, so it is not kept
		outbound.Drop(r.x.Plan(), reason.None)
		s.release()
		s.account(r)
		s.abandon(r)
		s.Link.Discard(len(r.raw))
		return conn.Close, false
	case !r.answered || r.x.Missed():
		outbound.Drop(r.x.Plan(), reason.None)
		if r.answered { // what the handler has made was not made of the body
			s.BodiesRead.Store(true)
			s.abandon(r)
		}
		return s.serveAfterAll(r), true
	}
	if plan, ok := r.x.Plan().(*outbound.Plan); ok {
		return s.forward(r, plan)
	}
	s.release()
	n, in := len(r.raw), r.in
	next = s.sendDirect(r, now, !in.open && len(s.Link.Buffered()) > n)
	if busy {
		s.Report(bridge.ForRoom, s.Link.Buffered())
	}
	switch s.Link.Discard(n); {
	case in.open && next == conn.More:
		return s.skip(in), false
	case in.open && next == conn.Close:
		return conn.Linger, false
	}
	return s.settle(next), true
}

// handling is the handler of a request as conn.UserCode.
type handling request

func (h *handling) Run() {
	h.time.Begin()
	h.answered = h.handler.ServeDirect((*direct.Exchange)(&h.x))
	h.time.End()
}

func (h *handling) Ended(e exec.End) {
	h.failed = true
	h.time.End()
	if h.s.LogEnd(e); e.Exited() {
		h.s.exitDirect((*request)(h))
	}
}

// abandon ends the exchange of r, whose handler, or Done of its file, has panicked.
func (s *Session) abandon(r *request) {
	if o := bridge.Abandoned(&r.x); o.Watched() {
		s.FollowAlone(&o)
	}
	exec.Call(r.x.Drop, s.LogEnd)
}

// exitDirect ends r, whose handler ends its goroutine.
func (s *Session) exitDirect(r *request) {
	outbound.Drop(r.x.Plan(), reason.None)
	o := bridge.Abandoned(&r.x)
	s.Follow(s.Link.Out(), &o)
	exec.Call(r.x.Drop, s.LogEnd)
	s.release()
	r.time.Drop(s.Link.Tally())
	s.Unanswered(tally.HTTP11, 0, s.way(stats.Direct), false)
	s.Link.Lent().Yield() // s.direct stays: until here Late may read it
	s.Found(s)
}

// serveAfterAll serves a request the plain way after ServeDirect has declined it.
func (s *Session) serveAfterAll(r *request) conn.Next {
	exec.Call(r.x.Discard, s.LogEnd)
	return s.servePlain(r, len(r.raw)-r.body, r.time, r.x.Pattern(), false)
}

// sendDirect sends the answer that the handler of r has made. more means that
// another request has arrived.
func (s *Session) sendDirect(r *request, now int64, more bool) (next conn.Next) {
	r.s = s
	var a wire.Answer
	if !exec.Call(func() { a = r.x.Finish() }, r.ended) { // Done of a file that is not sent
		s.account(r)
		s.abandon(r)
		return conn.Close
	}
	if next = conn.More; s.closes(!r.head.KeepAlive, r.head.ExpectContinue, &r.in) {
		next = conn.Close
	}
	if !s.Link.OnLoop() {
		now = 0
	}
	out := s.appendAnswer(r.out[:0], &a, now, next == conn.Close)
	w := &r.w
	*w = conn.Write{Holder: r, Cork: more}
	if a.File.File != nil {
		r.file = a.File
		w.File, w.Offset, w.Len = a.File.File, a.File.Offset, a.File.Len
	}
	if len(a.Body) <= joinBody {
		out = append(out, a.Body...)
	} else {
		w.B = a.Body
	}
	r.out, w.A = out, out
	if d := a.WriteLimit(s.WriteTimeout); d > 0 {
		w.Deadline = conn.Earlier(sys.Nanotime()+int64(d), 0)
	}
	if !r.time.Counted(s.Link.Tally(), s.Link.OnLoop(), s.answer(a.Status), r.x.Pattern()) {
		t, id, pattern := r.time, s.answer(a.Status), r.x.Pattern()
		defer func() { t.Account(s.Link.Tally(), s.Link.OnLoop(), id, pattern) }()
	}
	if err := s.Link.Send(w); err != nil { // r may belong to another request from here on
		next = bridge.Failure(err)
	}
	if a.Watcher != nil {
		o := bridge.OutcomeOf(&a)
		s.FollowAlone(&o)
	}
	return next
}

// answer is the counter of direct answers with a status. HTTP/1.0 does not go the direct
// way.
func (s *Session) answer(status int) tally.ID {
	return tally.AnswerOf(tally.HTTP11, tally.ClassOf(status), s.way(stats.Direct))
}

// account counts r, which ends without an answer.
func (s *Session) account(r *request) {
	r.time.Account(s.Link.Tally(), s.Link.OnLoop(), s.answer(0), r.x.Pattern())
}

// Check implements conn.Holder.
func (r *request) Check() (err error) {
	if r.file.Check == nil {
		return nil
	}
	err = http.ErrAbortHandler // if it panics
	exec.Call(func() { err = r.file.Check() }, r.ended)
	return err
}

// Release implements conn.Holder.
func (r *request) Release() {
	if done := r.file.Done; r.file.File != nil {
		r.file = direct.File{}
		if done != nil {
			exec.Call(done, r.ended)
		}
	}
	r.free()
}

// ended is called when the file's Check or Done has panicked, which ends the connection.
func (r *request) ended(e exec.End) {
	r.s.facts.Or(broken)
	r.s.LogEnd(e)
}

// closes reports whether the connection ends after a response that begins now. no: the client wants no other request.
// expects: it waits for a 100 before it sends the body, so that the next bytes could be either that or a request.
func (s *Session) closes(no, expects bool, in *intake) bool {
	return no || !s.KeepAlives() || in.open && (expects || !in.skippable())
}

// appendAnswer appends the head of a. now is of sys.Nanotime, or 0. last: the connection ends after it.
func (s *Session) appendAnswer(b []byte, a *wire.Answer, now int64, last bool) []byte {
	if a.Ready != nil {
		b = append(b, a.Ready.Head(encodeAnswer)...)
	} else {
		b = appendFields(b, a.Status, a.Fields)
	}
	if !a.HasDate {
		if now == 0 {
			now = sys.Nanotime()
		}
		b = bridge.AppendDate(b, now)
	}
	b = append(b, s.AltSvc.Line()...)
	if last {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

// encodeAnswer returns the status line and the fields in HTTP/1.1 form.
func encodeAnswer(status int, fields []wire.Field) []byte {
	return appendFields(nil, status, fields)
}

func appendFields(b []byte, status int, fields []wire.Field) []byte {
	b = http1.AppendStatusLine(b, 1, status)
	for i := range fields {
		b = http1.AppendField(b, fields[i].Name, fields[i].Value)
	}
	return b
}
