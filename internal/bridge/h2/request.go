package h2

import (
	"net/http"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/priority"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// This file makes requests of header blocks (RFC 9113 section 8.3).

var (
	errMalformed = &http2.StreamError{Code: http2.ProtocolError, Reason: "malformed request"}
	errRefused   = &http2.StreamError{Code: http2.RefusedStream, Reason: "too many streams"}
	errNotEnded  = &http2.StreamError{Code: http2.ProtocolError, Reason: "trailers without END_STREAM"}
	errConnected = &http2.StreamError{Code: http2.ProtocolError, Reason: "HEADERS after CONNECT"}
	errTrailers  = &http2.StreamError{
		Code: http2.EnhanceYourCalm, Reason: "trailers beyond what the fields of all streams may be",
	}
	errTrailer  = &http2.StreamError{Code: http2.ProtocolError, Reason: "a trailer that must not be one"}
	errReused   = &http2.ConnError{Code: http2.ProtocolError, Reason: "a stream is begun after a later one"}
	errAfterEnd = &http2.ConnError{Code: http2.StreamClosed, Reason: "HEADERS on a stream that is closed"}
)

// onRequest begins a stream. It returns it if its handler is to be begun now.
func (s *Session) onRequest(h http2.Header, r *request) (*stream, error) {
	end := h.Has(http2.FlagEndStream)
	if s.drain.last {
		s.unanswered(0)
		return nil, errRefused
	}
	if r.fields.TooLarge {
		s.answerTooLarge(h.Stream, section.IsHEAD(&r.fields.Fields), end)
		return nil, nil
	}
	t := &r.t
	if r.fields.Malformed || !t.Parse(&r.fields.Fields) || end && t.Length > 0 ||
		t.Protocol.Len() > 0 && !s.cfg.ExtendedConnect {
		s.unanswered(http.StatusBadRequest)
		return nil, s.malformed(h.Stream)
	}
	st := s.open(h.Stream, r, end)
	if st == nil {
		s.unanswered(0)
		return nil, errRefused
	}
	if !s.active {
		s.active = true
		s.SetState(http.StateActive)
	}
	if !s.KeepAlives() {
		s.startDrain()
	}
	if s.takesDirect(r, end) {
		r.st, st.direct = st, r
		return st, nil
	}
	return st.makeRequest(r, end, "")
}

// open makes the stream of a request; nil if there are too many. end: it has no body.
func (s *Session) open(id uint32, r *request, end bool) *stream {
	t, size := &r.t, r.fields.Size()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) >= s.cfg.MaxStreams && s.openStreamsLocked() >= s.cfg.MaxStreams ||
		section.TooMany(s.fields+size, s.cfg.List) {
		return nil
	}
	st := s.spare
	if s.spare = nil; st == nil {
		st = pooled.Get().(*stream)
	}
	if st.exchange == nil {
		st.exchange = newExchange()
	}
	st.fields = size
	st.connect = string(r.fields.Fields.Get(t.Method)) == http.MethodConnect
	s.fields += size
	st.s, st.id, st.length, st.remoteClosed = s, id, t.Length, end
	st.Time.Since = s.Link.Now()
	st.sendWindow = http2.Window(s.peer.InitialWindow)
	st.window = s.cfg.StreamWindow
	st.inflow.Avail = http2.Window(st.window)
	if st.priority = priority.Default; t.Priority.Len() > 0 || s.order.earlyAt != 0 {
		st.priority = s.priorityOfLocked(id, r.fields.Fields.Get(t.Priority))
	}
	st.turn = s.order.turn // or new streams would hold up the others
	s.streams = append(s.streams, st)
	s.useless.Refund(section.UsefulWorth)
	return st
}

// openStreamsLocked is how many streams there are, without those whose both ends have been sent
// and received: the client may have begun others in their place (RFC 9113 section 5.1.2),
// though the goroutine of their handler, which has returned, has not come back. An answer that
// was passed on may end while the handler goes on.
func (s *Session) openStreamsLocked() (n int) {
	for _, st := range s.streams {
		if st.state != stateAnswered || !st.remoteClosed || st.lasting != nil && !st.lasting.returned {
			n++
		}
	}
	return n
}

// unanswered counts a request that is refused, with a status or, without one, by a reset.
func (s *Session) unanswered(status int) {
	w := stats.Inline
	if !s.loops {
		w = stats.Goroutine
	}
	s.Unanswered(tally.HTTP2, status, w, s.loops && s.Link.OnLoop())
}

// malformed answers 400 before the stream is reset, as RFC 9113 section 8.1.1 permits.
// For a mere PROTOCOL_ERROR some clients, Go's among them, send the request again on
// connection after connection.
func (s *Session) malformed(id uint32) error {
	s.Refuse(http.StatusBadRequest, errMalformed.Reason, nil)
	block := dateField.Append(http2.AppendStatus(nil, http.StatusBadRequest), s.Link.Now())
	block = http2.AppendInt(block, pack.IDContentLength, 0)
	s.mu.Lock()
	s.putBlockLocked(&stream{id: id}, block, false)
	s.mu.Unlock()
	return errMalformed
}

// answerTooLarge refuses a request whose fields are too large. head: its method is HEAD, so there is no
// content (RFC 9110 section 9.3.2). end: it has no body.
func (s *Session) answerTooLarge(id uint32, head, end bool) {
	const status = http.StatusRequestHeaderFieldsTooLarge
	s.unanswered(status)
	s.Refuse(status, "the request's fields are too large", nil)
	mediaType, text := s.RefusalPage(status)
	block := dateField.Append(http2.AppendStatus(nil, status), s.Link.Now())
	st := &stream{id: id, sendWindow: http2.Window(s.peer.InitialWindow)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom()
	if text == nil || s.allowLocked(st, len(text)) < len(text) {
		mediaType = "text/plain; charset=utf-8"
		text = []byte("431 " + http.StatusText(status))
	}
	if head || s.allowLocked(st, len(text)) == len(text) {
		block = http2.AppendKnown(block, pack.IDContentType, mediaType)
	} else {
		text = nil // RFC 9113 section 8.1.1: another length than that of the DATA is malformed
	}
	ends := head || text == nil
	s.putBlockLocked(st, http2.AppendInt(block, pack.IDContentLength, int64(len(text))), ends)
	if !ends {
		s.putDataLocked(st, text, nil, len(text), true)
	}
	switch {
	case end:
		s.rememberLocked(id, false)
	case len(s.streams) < s.cfg.MaxStreams:
		st.s, st.exchange = s, newExchange()
		st.inflow.Avail = http2.Window(s.cfg.StreamWindow)
		st.become(stateLingering)
		s.streams = append(s.streams, st)
		s.lingerLocked(st)
	default:
		s.rstLocked(id, http2.NoError)
		s.rememberLocked(id, true)
	}
}

// makeRequest makes the exchange of a request that is not for the direct way, and decides where its handler runs, by
// its route's pattern if that is known. All its strings are parts of one. end: it has no body, which is not that the
// body has come. It returns the stream if its handler is to be begun now, and not when the body has come. A request
// that cannot be made of the fields is refused; the error is for refuse.
func (st *stream) makeRequest(r *request, end bool, route string) (*stream, error) {
	s, t := st.s, &r.t
	st.Init(&s.Client, st)
	st.Shared, st.Proto = true, tally.HTTP2
	switch {
	case !section.Fill(&st.Exchange, &r.fields.Fields, t, st.values[:0], s.cfg.List.Fields):
		st.begins(stateSending)
		st.status = http.StatusBadRequest
		st.accountUnserved() // before the hook may look
		return nil, s.malformed(st.id)
	case end:
		st.Req.Body = http.NoBody
	default:
		st.Req.ContentLength = t.Length
		st.awaits = t.Expect
		// As with net/http, a read that has timed out is not tried again.
		st.SetBody(new(bridge.Body), true, true, t.Expect)
		st.Res.LateContinue = true
	}
	if !s.loops {
		st.Place(route, nil)
		return st, nil
	}
	if !st.Place(route, &s.memo) || st.remoteClosed || t.Expect || t.Protocol.Len() > 0 || !s.Link.OnLoop() {
		return st, nil
	}
	st.become(stateDeferred)
	s.deferred = append(s.deferred, st)
	return nil, nil
}

// onTrailers is a header block on a stream that has begun.
func (s *Session) onTrailers(h http2.Header, r *request) (*stream, error) {
	f := &r.fields.Fields
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streamLocked(h.Stream)
	byUs, known := s.wasClosedLocked(h.Stream, st)
	switch {
	case byUs && !f.Pseudo():
		return nil, s.spendWorkLocked(r.cost) // the client has not heard of it yet
	case known:
		return nil, errAfterEnd
	case st == nil:
		return nil, errReused
	case st.connect: // RFC 9113 section 8.5
		return nil, errConnected
	case st.remoteClosed:
		return nil, errHalfClosed
	case !h.Has(http2.FlagEndStream):
		return nil, errNotEnded
	case f.Malformed || f.TooLarge:
		return nil, errMalformed
	case st.state == stateLingering:
		return st.allComeLocked(), nil
	case st.length >= 0 && st.received != st.length:
		return nil, errLength
	}
	if section.TooMany(s.fields+f.Size(), s.cfg.List) {
		return nil, errTrailers
	}
	trailer, ok := section.Trailer(f)
	if !ok {
		return nil, errTrailer
	}
	if st.upload != nil {
		st.feedLater()
	}
	st.trailer = trailer
	st.fields += f.Size()
	s.fields += f.Size()
	return st.allComeLocked(), nil
}

// allComeLocked notes that END_STREAM has come. It returns the stream if its handler is to be begun now.
func (st *stream) allComeLocked() *stream {
	st.remoteClosed = true
	switch st.wakeLocked(); st.state {
	case stateLingering:
		st.lingeredLocked()
	case stateDeferred:
		st.s.deferred = without(st.s.deferred, st)
		return st
	}
	return nil
}
