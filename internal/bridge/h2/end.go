package h2

import (
	"net/http"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file is how streams and connections end: by errors, by the client, and at last.

// Of a stream:
//
//	Run            the handler returns
//	Left           the same, on another goroutine than the owner's: it is counted
//	finish         the owner has seen that: the rest of the answer is sent
//	answered       END_STREAM is out as well
//	close          nothing more is sent or expected of it, because of END_STREAM or a reset
//	retire         nothing runs for it any more: it leaves the Session
//	Gone           the handler's context ends, after a close that is early
//
// and of the connection:
//
//	fail           it is ended by an error of the client's
//	abort          it has ended, or will: handlers are notified
//	Closed         the Link has closed it

// PeerGone implements conn.Session: nothing runs that has the Link to itself, but
// stream.Conn.Kill calls it.
func (s *Session) PeerGone(bool) { s.abort(errClosed) }

// Closed implements conn.Session.
func (s *Session) Closed(hijacked bool) {
	s.Link.Tally().Add(false, tally.HTTP2Ended, 1)
	s.abort(errClosed)
	s.mu.Lock()
	s.gone = true
	if s.out != nil {
		s.out.Release()
		s.out = nil
	}
	s.closeAll()
	for st := range s.streams.all() { // those with a Run, whose Done will not be called
		st.dropRest()
		st.dropFollower()
		if !st.made() {
			st.accountUnserved()
		}
		if r := st.direct; r != nil && r.over.Swap(true) {
			s.freed = append(s.freed, func() { s.guard(r.x.Drop) })
		}
		if t := st.tunnel; t != nil && !t.inside {
			t.close()
		}
	}
	all := s.followers
	s.followers = nil
	s.mu.Unlock()
	for _, f := range all {
		s.Link.Follow(f)
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
	for st := range s.streams.all() {
		if st.err == nil {
			st.err = err
		}
		st.cond.Broadcast()
		if st.state >= stateQueued {
			all = append(all, st)
		}
	}
	s.mu.Unlock()
	for _, st := range all {
		st.Gone(true)
	}
}

// closeAll closes all streams, after abort. It is the owner's; mu is held.
func (s *Session) closeAll() {
	for st := range s.streams.all() {
		st.close(nil)
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
	s.Refuse(http.StatusBadRequest, e.Error(), nil)
	s.mu.Lock()
	s.closing = true // others look at it when the Link has failed
	s.goAway(e.Code, e.Reason)
	s.flush()
	s.mu.Unlock()
	s.abort(e)
	s.mu.Lock()
	s.closeAll()
	s.mu.Unlock()
}

// count tells Config.CountError.
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
	st := s.streams.get(id)
	s.rst(id, code)
	if st != nil {
		st.close(err)
	} else {
		s.remember(id, true)
	}
	s.mu.Unlock()
	if st != nil {
		st.Gone(true)
	}
}

// rst appends a RST_STREAM frame. mu is held.
func (s *Session) rst(id uint32, code http2.ErrCode) {
	s.room(http2.HeaderLen + 4)
	s.out.B = http2.AppendRST(s.out.B, id, code)
}

// spendReset charges a stream that ends early.
func (s *Session) spendReset() bool {
	if s.closing {
		return false
	}
	if !s.resets.spend(1, sys.Nanotime) {
		s.fail(errResets)
		return false
	}
	return true
}

// spendUseless charges a frame that does nothing.
func (s *Session) spendUseless() { s.spendWork(1) }

// spendWork charges as much as n frames that do nothing.
func (s *Session) spendWork(n int32) {
	s.mu.Lock()
	ok := s.takeWork(n)
	s.mu.Unlock()
	if !ok {
		s.fail(errUseless)
	}
}

// takeUseless is spendUseless with mu held, for who fails by itself.
func (s *Session) takeUseless() bool { return s.takeWork(1) }

func (s *Session) takeWork(n int32) bool {
	s.useless.refund(usefulWorth * min(s.useful, idleBudget))
	s.useful = 0
	return s.useless.spend(n, sys.Nanotime)
}

var (
	errResets  = &http2.ConnError{Code: http2.EnhanceYourCalm, Reason: "too many streams are reset"}
	errUseless = &http2.ConnError{Code: http2.EnhanceYourCalm, Reason: "too many frames that do nothing"}
)

// close closes the stream: END_STREAM was sent and has come, or a RST_STREAM has come or is
// in out. err is why, for the handler, if that is early. The caller ends the handler's context
// then, by Gone, without mu. mu is held. If nothing runs for the stream it is another one
// afterwards.
func (st *stream) close(err error) {
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
	s.unpend(st)
	st.dropBody()
	st.tunnel.dropMarks()
	st.cond.Broadcast()
	l := st.lasting
	switch {
	case st.state == stateQueued && !s.Slots.Withdraw(st):
		// It has been given a slot, which comes by Post unless the connection has ended.
		if st.become(stateReset); s.over != nil {
			s.freed = append(s.freed, s.Slots.Release)
			st.retire()
		}
	case st.state >= stateDirect && !st.returned() || st.tunnel != nil && st.tunnel.running:
		st.become(stateReset)
	default:
		st.retire()
	}
	l.settled()
}

// answered is called when END_STREAM is out, and the handler has returned. What the client
// still sends of the request is not wanted (RFC 9113 section 8.1); see linger. It reports
// whether the stream goes on. mu is held.
func (st *stream) answered() bool {
	s := st.s
	if st.become(stateLingering); !st.remoteClosed {
		// A client that waits for 100 (Continue) would wait on. It sends nothing that could be
		// in the way of the answer.
		waits := st.awaits && st.received == 0
		if st.tunnel == nil && st.lasting == nil && !waits {
			s.linger(st)
			return true
		}
		s.rst(st.id, http2.NoError)
	}
	s.resets.refund(1)
	st.close(nil)
	return false
}

// retire is the end of a stream that is closed and for which nothing runs. It may be another
// one afterwards. mu is held.
func (st *stream) retire() {
	s := st.s
	switch {
	case st.state == stateDeferred: // which only the owner closes
		s.undefer(st)
	case st.lingerBy != 0:
		s.unlinger(st)
	}
	st.become(stateClosed)
	s.streams.remove(st)
	st.unkeep()
	if s.over == nil {
		s.remember(st.id, st.byUs())
	}
	st.dropRest()
	st.dropFollower()
	if st.tunnel != nil {
		st.tunnel.close()
	} else if st.reusable() {
		st.recycle()
	}
}

// dropFollower notifies the follower of an answer that will not be sent. mu is held.
func (st *stream) dropFollower() {
	if f := st.follower; f != nil {
		// What was not sent is not known; more than nothing.
		st.follower = nil
		st.s.freed = append(st.s.freed, func() { f.Sent(1) })
	}
}

// remember notes that a stream is closed, byUs if the client may not know: what is on its way
// may be of as many streams as resetBudget permits, and of as many as were open before.
func (s *Session) remember(id uint32, byUs bool) {
	if !byUs {
		s.closed[s.closedAt%len(s.closed)] = id
		s.closedAt++
		return
	}
	if s.reset == nil {
		s.reset = make([]uint32, min(max(s.cfg.MaxStreams, len(s.closed)), 1000)+resetBudget)
	}
	s.reset[s.resetAt%len(s.reset)] = id
	s.resetAt++
}

// wasClosed tells whether the stream is one of those that have ended last, and how.
func (s *Session) wasClosed(id uint32) (byUs, known bool) {
	byUs = slices.Contains(s.reset, id)
	return byUs, byUs || slices.Contains(s.closed[:], id)
}
