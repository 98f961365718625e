package h3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/priority"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// This file is a request from its first byte to its handler (RFC 9114 section 4.1).

// request is a decoded field section. It is pooled.
type request struct {
	fields section.Fields
	t      section.Target
	direct directRequest
}

var requests = sync.Pool{New: func() any {
	r := new(request)
	r.fields.Init()
	return r
}}

func (r *request) free() {
	r.t = section.Target{}
	r.fields.Reset()
	requests.Put(r)
}

// headSize is what is read at first: most requests have less.
const headSize = 2 << 10

var (
	errMessage    = &http3.StreamError{Code: http3.MessageError, Reason: "malformed request"}
	errIncomplete = &http3.StreamError{Code: http3.RequestIncomplete, Reason: "the request has not come to its end"}
	errNoRoom     = &http3.StreamError{Code: http3.RequestRejected, Reason: "too many fields of requests"}
	errTrailers   = &http3.StreamError{Code: http3.ExcessiveLoad, Reason: errNoRoom.Reason}
	errTooLarge   = errors.New("the request's fields are too large")
	errDataFirst  = &http3.ConnError{Code: http3.FrameUnexpected, Reason: "DATA before HEADERS"}
	errAfter      = &http3.ConnError{Code: http3.FrameUnexpected, Reason: "a frame after the trailers"}
	errCut        = &http3.ConnError{Code: http3.FrameError, Reason: "a stream ends within a frame"}
	errLateHead   = errors.New("the request's fields do not come in time")
	errElsewhere  = errors.New("h3: the leader does not wait for more")
)

// serving is a stream as a loop.Task.
type serving stream

func (st *serving) Run() { (*stream)(st).serve() }

// serve serves the stream to its end, but for what outlives its handler, and for what the leader
// leaves to other goroutines. It reports whether the caller is still the leader.
func (st *stream) serve() (leads bool) {
	if st.request == nil {
		st.request = requests.Get().(*request)
	}
	r, s := st.request, st.s
	end, err := st.readHead(r)
	switch {
	case err == errElsewhere:
		return st.elsewhere((*serving)(st))
	case err != nil:
		st.refuse(r, err)
		return st.endLead()
	}
	if r.t.Priority.Len() > 0 {
		st.prioritize(priority.Parse(r.fields.Fields.Get(r.t.Priority)))
	}
	if s.shaking != nil && !st.settleEarly(r, end) {
		return st.hold(end)
	}
	return st.proceed(r, end)
}

// proceed is serve from when the request's fields have been read.
func (st *stream) proceed(r *request, end bool) (leads bool) {
	s := st.s
	if end && st.serveDirect(r) {
		return st.endLead()
	}
	x := new(exchange)
	x.SetContext()
	st.exchange = x
	st.Time = st.timing
	st.Init(&s.Client, st)
	st.Shared, st.Proto = true, tally.HTTP3
	ok := section.Fill(&st.Exchange, &r.fields.Fields, &r.t, st.values[:0], s.cfg.List.Fields)
	if !ok {
		st.exchange = nil
		st.refuse(r, errMessage)
		return st.endLead()
	}
	st.setTLS()
	st.initBody(&r.t, end)
	if st.memo == nil {
		st.memo = new(place.Memo)
	}
	quick := st.Place(r.direct.route, st.memo)
	st.memo = nil
	r.direct.route = ""
	st.freeRequest()
	if st.leading() && !(quick && end && s.Slots == nil) {
		st.Time.Queued = true
		return st.elsewhere((*running)(st))
	}
	st.run()
	return st.endLead()
}

// freeRequest gives the decoded fields back.
func (st *stream) freeRequest() {
	if r := st.request; r != nil {
		st.request = nil
		r.free()
	}
}

// elsewhere leaves the stream to another goroutine, and reports whether the caller is still the
// leader.
func (st *stream) elsewhere(t loop.Task) (leads bool) {
	leads = st.endLead()
	st.memo = nil
	st.s.cfg.pool.Run(t)
	return leads
}

// running is a stream as a loop.Task: to run its handler.
type running stream

func (st *running) Run() { (*stream)(st).run() }

// prioritize does what the request's fields say of its priority. A PRIORITY_UPDATE says the same
// later, though it may have come before (RFC 9218 section 7).
func (st *stream) prioritize(p priority.Priority) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !st.updated {
		st.str.SetPriority(int8(p.Urgency), p.Incremental)
	}
}

// initBody sets the request's body.
func (st *stream) initBody(t *section.Target, end bool) {
	if end {
		st.Req.Body = http.NoBody
		return
	}
	st.Req.ContentLength = t.Length
	// As with net/http over HTTP/2, a read that has timed out is not tried again.
	st.SetBody(&st.reqBody, true, true, t.Expect)
	st.Res.LateContinue = true
}

// readHead reads and judges the fields of the request. end: it has no body.
func (st *stream) readHead(r *request) (end bool, err error) {
	s := st.s
	if st.read != partHeader {
		h, err := st.nextFrame(headSize)
		switch {
		case err == io.EOF:
			return false, errIncomplete
		case err != nil:
			return false, err
		case h.Type == http3.FrameData:
			return false, errDataFirst
		}
		st.read = partHeader
	}
	if err := st.decode(st.frames.Header().Length, &r.fields); err != nil {
		return false, err
	}
	f, t := &r.fields.Fields, &r.t
	if f.TooLarge {
		return false, errTooLarge
	}
	if f.Malformed || !t.Parse(f) || !t.NamesHost() || t.Protocol.Len() > 0 && !s.cfg.ExtendedConnect {
		return false, errMessage
	}
	st.connect = string(f.Get(t.Method)) == http.MethodConnect
	st.length = t.Length
	// Before atEnd, whose deadline hastenLocked must not change.
	if err := st.keep(f.Size()); err != nil {
		return false, err
	}
	if end = st.atEnd(); end && t.Length > 0 {
		return false, errMessage
	}
	return end, nil
}

// keep counts size bytes of fields, which have come, or reports that there are too many.
func (st *stream) keep(size int) error {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	st.awaited = 0
	if section.TooMany(s.fields+size, s.cfg.List) {
		return errNoRoom
	}
	st.fields += size
	s.fields += size
	s.useless.Refund(section.UsefulWorth)
	return nil
}

// decode reads a field section of n bytes.
func (st *stream) decode(n uint64, f *section.Fields) error {
	s := st.s
	if n > uint64(s.cfg.List.Bytes) { // none with so many bytes could be within the limit, decoded
		return errTooLarge
	}
	if have := st.in.Bytes(); uint64(len(have)) >= n { // the usual case: it is decoded where it is
		part, k := st.frames.Next(have[:n])
		if part == http3.PartPayload || n == 0 {
			err := http3.Decode(have[:k], &f.Fields, s.cfg.List)
			st.in = st.in.Consume(k)
			return err
		}
	}
	if st.leading() {
		return errElsewhere
	}
	// RFC 9114 has no bound for what many streams begin: this has.
	if s.heads.Add(int64(n)) > max(maxHeads, int64(2*s.cfg.List.Bytes)) {
		s.heads.Add(-int64(n))
		return errNoRoom
	}
	defer s.heads.Add(-int64(n))
	b := buf.Get(int(min(n, headSize)))
	defer func() { b.Release() }()
	for uint64(len(b.B)) < n {
		// No more room than has come: the client can say that much will without sending it.
		if len(b.B) == cap(b.B) {
			b = b.Grow(int(min(uint64(len(b.B)), n-uint64(len(b.B)))))
		}
		k, err := st.readPayload(b.B[len(b.B):min(uint64(cap(b.B)), n)])
		b.B = b.B[:len(b.B)+k]
		if err != nil {
			return err
		}
	}
	return http3.Decode(b.B, &f.Fields, s.cfg.List)
}

// maxHeads is how many bytes of incomplete sections a connection may have.
const maxHeads = 1 << 20

// refuse ends a request that has no handler. err is why.
func (st *stream) refuse(r *request, err error) {
	s := st.s
	defer st.finished()
	defer st.freeRequest()
	if s.failed(err) {
		st.unanswered(0)
		return
	}
	var e *http3.StreamError
	switch {
	case err == errMessage:
		st.answer(r, http.StatusBadRequest, errMessage.Reason)
		s.spendReset()
		st.abort(errMessage)
	case err == errTooLarge:
		st.answer(r, http.StatusRequestHeaderFieldsTooLarge, err.Error())
		// What is beyond the limits was neither kept nor decoded. One alone does not end the connection, however
		// much a server allows.
		size := min(st.frames.Header().Length, uint64(s.cfg.List.Bytes))
		size = max(size, uint64(r.fields.Size()))
		s.spendUseless(min(size, section.IdleBudget/2*section.UselessSize))
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.tally.Late(false, tally.LateHead)
		if st.frames.Within() || len(st.in.Bytes()) > 0 {
			st.answer(r, http.StatusRequestTimeout, errLateHead.Error())
		} else {
			st.abort(errIncomplete)
		}
	case errors.As(err, &e):
		st.unanswered(0)
		st.abort(e)
	case err == context.Canceled: // the client does not want an answer
		st.unanswered(0)
		st.abort(&http3.StreamError{Code: http3.RequestCancelled})
	default: // it is reset, or the connection has ended. RFC 9114 section 4.1 has the code
		st.unanswered(0)
		st.abort(errIncomplete)
	}
}

// answer sends the server's own answer to a request without a handler.
func (st *stream) answer(r *request, status int, reason string) {
	s := st.s
	st.unanswered(status)
	s.Refuse(status, reason, nil)
	mediaType, text := s.RefusalPage(status)
	if text == nil {
		mediaType = "text/plain; charset=utf-8"
		text = []byte(strconv.Itoa(status) + " " + http.StatusText(status))
	}
	// Of a section that was not decoded the method is not known; without content it suits any.
	known := len(r.fields.List) > 0
	if !known || status == http.StatusBadRequest {
		mediaType, text = "", nil
	}
	block := dateField.Append(qpack{}.Status(nil, status), sys.Nanotime())
	if mediaType != "" {
		block = http3.AppendField(block, "Content-Type", mediaType)
	}
	block = http3.AppendInt(block, pack.IDContentLength, int64(len(text)))
	if known && section.IsHEAD(&r.fields.Fields) {
		text = nil
	}
	if st.put(block, text, nil) == nil {
		st.endSent()
	}
}

// unanswered counts a request without a handler; status 0 is no answer.
func (st *stream) unanswered(status int) {
	if status == 0 {
		st.s.spendReset()
	}
	st.s.Unanswered(tally.HTTP3, status, stats.Goroutine, false)
}

// acquire takes a slot for the handler, and reports whether that is to run, if only to be refused.
func (st *stream) acquire() bool {
	s := st.s
	if s.Slots == nil {
		return true
	}
	st.turn = make(chan struct{}, 1)
	switch s.Slots.Acquire(st) {
	case loop.Admitted:
		st.hasSlot = true
	case loop.Refused:
		st.Refusal = bridge.ForRoom
	case loop.Queued:
		st.Time.Queued = true
		select {
		case <-st.turn:
		case <-st.str.Context().Done():
			if s.Slots.Withdraw(st) {
				return false
			}
			<-st.turn
		}
		st.hasSlot = true
	}
	return true
}

// Acquired implements loop.Waiter.
func (st *stream) Acquired() { st.turn <- struct{}{} }

// run runs the handler.
func (st *stream) run() {
	s := st.s
	st.Way = stats.Goroutine
	if st.leading() { // there are no Slots to wait for
		st.Way = stats.Inline
	}
	st.mu.Lock()
	st.shown = &st.Exchange
	st.mu.Unlock()
	if !st.acquire() {
		st.Time.Drop(s.tally)
		st.unanswered(0)
		st.abort(&http3.StreamError{Code: http3.RequestCancelled})
		st.finished()
		return
	}
	st.Time.Select(s.tally, false)
	st.oversee()
	defer st.finish() // also after runtime.Goexit
	st.next = conn.Close
	exec.Call(st.Run, st.Ended)
}
