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

// PeerGone implements conn.Session: nothing runs that has the Link to itself, but
// stream.Conn.Kill calls it.
func (s *Session) PeerGone(bool) { s.cancelAll(errClosed) }

// Closed implements conn.Session.
func (s *Session) Closed(hijacked bool) {
	s.Link.Tally().Add(false, tally.HTTP2Ended, 1)
	s.cancelAll(errClosed)
	s.mu.Lock()
	s.gone = true
	if s.out != nil {
		s.out.Release()
		s.out = nil
	}
	for _, st := range slices.Clone(s.pending) {
		s.drop(st)
	}
	for st := range s.streams.all() { // those whose Done will not be called
		st.dropRest()
		s.lose(st)
		st.lost()
		if r := st.direct; r != nil && r.over.Swap(true) {
			s.freed = append(s.freed, func() { s.guard(r.x.Drop) })
		}
		if t := st.tunnel; t != nil && !t.inside {
			t.over()
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

// cancelAll ends all streams, since the connection has ended.
func (s *Session) cancelAll(err error) {
	s.mu.Lock()
	if s.over == nil {
		s.over = err
	}
	var all []*stream
	for st := range s.streams.all() {
		st.kill(err)
		all = append(all, st)
	}
	s.mu.Unlock()
	for _, st := range all {
		st.gone()
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
	s.cancelAll(e)
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
	s.room(16)
	s.out.B = http2.AppendRST(s.out.B, id, code)
	if st != nil {
		st.kill(err)
		s.drop(st)
	} else {
		s.remember(id, true)
	}
	s.mu.Unlock()
	if st != nil {
		st.gone()
	}
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

// drop forgets a stream that is closed, unless its handler still runs. It may be
// another stream afterwards, unless it was killed. mu is held.
func (s *Session) drop(st *stream) {
	if !st.closed || !st.done && st.started || st.tunnel != nil && st.tunnel.running {
		return
	}
	if !st.listed {
		return
	}
	if st.listed = false; st.deferred { // which only the owner resets
		s.undefer(st)
	}
	s.streams.remove(st)
	st.unkeep()
	if st.lingerBy != 0 {
		s.unlinger(st)
	}
	s.remember(st.id, st.byUs)
	s.unpend(st)
	st.dropRest()
	st.dropBody()
	s.lose(st)
	st.lost()
	if st.tunnel != nil {
		st.tunnel.over()
	} else if st.reusable() {
		st.recycle()
	}
}

// lose has the one that follows an answer told that it will not be sent. mu is held.
func (s *Session) lose(st *stream) {
	if f := st.follower; f != nil {
		// What was not sent is not known; more than nothing.
		st.follower = nil
		s.freed = append(s.freed, func() { f.Sent(1) })
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
