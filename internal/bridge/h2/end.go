package h2

import (
	"net/http"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file is how streams and connections end: by errors, by the client, and at last.

// The names, in the order of events. Of a stream's Run, which is that of its handler, of a direct
// one, or of a tunnel:
//
//	Left       user code has returned, on another goroutine than the owner's: it is counted
//	handOver   the same, if it has taken the stream over
//	finish     the owner goes on with what the Run has left
//
// Of a stream:
//
//	end        what its answer, or what has taken it over, sends is complete; if nothing of that
//	           is left, END_STREAM is out
//	answered   the handler has returned as well
//	close      nothing more is sent or expected of it, because of END_STREAM or a reset
//	Gone       the handler's context ends, if that was early
//	retire     nothing runs for it any more: it leaves the Session
//
// Of a connection:
//
//	fail       the client has made an error
//	abort      it has ended, or will: handlers are notified
//	Closed     the Link has closed it

// PeerGone implements conn.Session: nothing runs that has the Link to itself, but
// stream.Conn.Kill calls it.
func (s *Session) PeerGone(bool) { s.abort(errClosed) }

// Closed implements conn.Session.
func (s *Session) Closed(hijacked bool) {
	s.Link.Tally().Add(false, tally.HTTP2Ended, 1)
	s.mu.Lock()
	if s.gone = true; s.over == nil {
		s.over = errClosed
	}
	lost := int64(len(s.out.Bytes()))
	s.out = s.dropLocked(s.out) // before handlers count what was sent of their answers
	s.mu.Unlock()
	s.abort(errClosed)
	s.mu.Lock()
	s.out = s.out.Drop() // what has been added since is no DATA
	s.closeAllLocked()
	for _, st := range s.streams { // those with a Run, whose Done will not be called
		st.dropRestLocked()
		st.dropFollowerLocked()
		if !st.made() {
			st.accountUnserved()
		}
		if r := st.direct; r != nil && r.over.Swap(true) {
			s.freed = append(s.freed, r.drop)
		}
		if t := st.tunnel; t != nil && !t.inside {
			t.closeLocked()
		}
	}
	all := s.followers
	s.followers = nil
	s.mu.Unlock()
	_, before := s.Link.Out().Unsent()
	for _, f := range all { // the end of their answers was in out
		f.Sent(max(before+lost, 1))
	}
	s.free()
	s.SetState(http.StateClosed)
}

// abort ends what handlers wait for, and their contexts: the connection has ended because
// of err, or is about to. Safe for concurrent use.
func (s *Session) abort(err error) {
	s.mu.Lock()
	if s.over == nil {
		s.over = err
	}
	var all []*stream
	for _, st := range s.streams {
		if st.err == nil {
			st.err = err
		}
		st.wakeLocked()
		if st.state >= stateQueued {
			all = append(all, st)
		}
	}
	s.mu.Unlock()
	for _, st := range all {
		st.Gone(true)
	}
}

// closeAllLocked closes all streams, after abort. It is the owner's.
func (s *Session) closeAllLocked() {
	for _, st := range slices.Backward(s.streams) { // which leave the Session
		st.closeLocked(nil)
	}
}

// fail ends the connection because of err (RFC 9113 section 5.4.1).
func (s *Session) fail(err error) {
	e, ok := err.(*http2.ConnError)
	if !ok {
		e = &http2.ConnError{Code: http2.CompressionError, Reason: err.Error()}
	}
	if s.closing {
		return
	}
	s.count("conn_", e.Code)
	// Those of which net/http logs nothing: the first two are what scanners cause.
	quiet := e == errSecurity || e == errTimeout && !s.begun || e == http2.ErrTooLarge
	if !quiet {
		s.logf("http2: server connection error from %s: connection error: %v: %s", e.Code, e.Reason)
	}
	s.Refuse(http.StatusBadRequest, e.Error(), nil)
	s.mu.Lock()
	s.closing = true // others check it when the Link has failed
	s.goAwayLocked(e.Code, e.Reason)
	s.pass(nil)
	s.mu.Unlock()
	s.abort(e)
	s.mu.Lock()
	s.closeAllLocked()
	s.mu.Unlock()
}

// logf logs what the client has caused, as net/http's server does; its address is the first argument. No connection
// has more than two lines: about its end, and of the first GOAWAY frame.
func (s *Session) logf(format string, args ...any) {
	if s.LogSoon != nil {
		s.LogSoon(format, append([]any{s.Link.Peer().RemoteAddr}, args...)...)
	}
}

// count calls Config.CountError.
func (s *Session) count(kind string, code http2.ErrCode) {
	if f := s.cfg.CountError; f != nil {
		f(kind + strings.ReplaceAll(strings.ToLower(code.String()), " ", "_"))
	}
}

// refuse answers an error of a frame.
func (s *Session) refuse(id uint32, err error) {
	e, ok := err.(*http2.StreamError)
	if !ok {
		s.fail(err)
		return
	}
	if s.idle(id) {
		// RFC 9113 section 6.4: RST_STREAM MUST NOT be sent for an idle stream, which
		// PRIORITY may be of.
		s.fail(&http2.ConnError{Code: e.Code, Reason: e.Reason})
		return
	}
	s.resetStream(id, e.Code, e)
}

// resetStream ends a stream because of what the client has sent.
func (s *Session) resetStream(id uint32, code http2.ErrCode, err error) {
	if !s.spendReset() {
		return
	}
	s.count("stream_", code)
	s.mu.Lock()
	st := s.streamLocked(id)
	s.rstLocked(id, code)
	if st != nil {
		st.closeLocked(err)
	} else {
		s.rememberLocked(id, true)
	}
	s.mu.Unlock()
	if st != nil {
		st.Gone(true)
	}
}

// spendReset charges a stream that ends early. It reports whether the connection goes on.
func (s *Session) spendReset() bool {
	s.mu.Lock()
	ok := s.resets.Spend(1, sys.Nanotime)
	s.mu.Unlock()
	if !ok {
		s.fail(errResets)
	}
	return !s.closing
}

// spendWork charges as much as n frames that do nothing.
func (s *Session) spendWork(n int32) {
	s.mu.Lock()
	err := s.spendWorkLocked(n)
	s.mu.Unlock()
	if err != nil {
		s.fail(err)
	}
}

var (
	errResets  = &http2.ConnError{Code: http2.EnhanceYourCalm, Reason: "too many streams are reset"}
	errUseless = &http2.ConnError{Code: http2.EnhanceYourCalm, Reason: "too many frames that do nothing"}
)

// closeLocked closes the stream: END_STREAM was sent and has come, or a RST_STREAM has come or is
// in out. err is why, for the handler, if that is early. The caller ends the handler's context
// then, by Gone, without mu. If nothing runs for the stream it is another one
// afterwards.
func (st *stream) closeLocked(err error) {
	if st.closed() {
		return
	}
	s := st.s
	if st.err == nil {
		st.err = err
	}
	if st.state < stateDirect {
		st.accountUnserved()
	}
	// Now, not when its handler has returned: it would hold up others, and the handler may
	// wait for it.
	s.unsent = without(s.unsent, st)
	// A handler may read what has come also if the client has left. Its windows are given back at once, if
	// what is kept in this way is not too much.
	keep := (st.state == stateRunning || st.state == stateAnswered) && st.ownsBodyLocked()
	if !keep {
		st.dropBodyLocked()
	}
	if st.tunnel != nil {
		st.tunnel.dropMarksLocked()
	}
	st.wakeLocked()
	l := st.lasting
	switch {
	case st.state == stateQueued && !s.Slots.Withdraw(st):
		// It has been given a slot. The Post that says so comes to nothing, if it comes: the connection may end before.
		s.freed = append(s.freed, s.Slots.Release)
		st.retireLocked()
	case st.state >= stateDirect && !st.returned() || st.tunnel != nil && st.tunnel.running:
		st.become(stateReset)
	default:
		st.retireLocked()
	}
	if keep && s.over == nil && !st.refundGatheredLocked(0) {
		st.dropBodyLocked()
	}
	l.settledLocked()
}

// ownsBodyLocked reports whether only a handler reads the body: neither a tunnel nor an answer that
// outlives the handler has taken the stream over.
func (st *stream) ownsBodyLocked() bool {
	return st.made() && st.tunnel == nil && st.lasting == nil
}

// answeredLocked is called when END_STREAM is out, and the handler has returned. What the client
// still sends of the request is not wanted (RFC 9113 section 8.1); see linger. It reports
// whether the stream goes on.
func (st *stream) answeredLocked() bool {
	s := st.s
	if st.become(stateLingering); !st.remoteClosed {
		// A client that waits for 100 (Continue) would wait on. It sends nothing that could be
		// in the way of the answer.
		waits := st.awaits && st.received == 0
		if st.tunnel == nil && (st.lasting == nil || st.upload != nil) && !waits {
			if s.lingerLocked(st); st.lasting != nil {
				s.freed = append(s.freed, st.lasting.close) // the response has ended
			}
			return true
		}
	}
	st.lingeredLocked()
	return false
}

// retireLocked is the end of a stream that is closed and for which nothing runs. It may be another
// one afterwards.
func (st *stream) retireLocked() {
	s := st.s
	switch {
	case st.state == stateDeferred: // which only the owner closes
		s.deferred = without(s.deferred, st)
	case st.lingerBy != 0:
		s.lingering--
	}
	st.become(stateClosed)
	s.streams = without(s.streams, st)
	st.unkeepLocked()
	if s.over == nil {
		s.rememberLocked(st.id, st.byUs())
	}
	st.dropRestLocked()
	st.dropFollowerLocked()
	if st.tunnel != nil {
		st.tunnel.closeLocked()
	} else {
		st.recycleLocked()
	}
}

// dropFollowerLocked notifies the follower of an answer that will not be sent whole.
func (st *stream) dropFollowerLocked() {
	f := st.follower
	if f == nil {
		return
	}
	st.follower = nil
	lost := int64(1) // more than nothing
	if o, ok := f.(*bridge.Outcome); ok {
		o.Cut(st.sent)
		lost = 0
	}
	st.s.freed = append(st.s.freed, func() { f.Sent(lost) })
}
