package h2

import (
	"bytes"
	"encoding/binary"

	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/http2"
)

// This file is what each frame does.

var (
	errInterleaved = &http2.ConnError{Code: http2.ProtocolError, Reason: "another frame within a header block"}
	errStray       = &http2.ConnError{Code: http2.ProtocolError, Reason: "CONTINUATION without HEADERS"}
	errIdle        = &http2.ConnError{Code: http2.ProtocolError, Reason: "a frame of a stream that was not begun"}
	errBlockLarge  = &http2.ConnError{Code: http2.EnhanceYourCalm, Reason: "a header block is too large"}
	errConnFlow    = &http2.ConnError{Code: http2.FlowControlError, Reason: "more DATA than the connection's window"}
	errConnWindow  = &http2.ConnError{Code: http2.FlowControlError, Reason: "the connection's window is too large"}
	errFlow        = &http2.StreamError{Code: http2.FlowControlError, Reason: "more DATA than the stream's window"}
	errWindow      = &http2.StreamError{Code: http2.FlowControlError, Reason: "the stream's window is too large"}
	errHalfClosed  = &http2.StreamError{Code: http2.StreamClosed, Reason: "a frame after END_STREAM"}
	errLength      = &http2.StreamError{
		Code: http2.ProtocolError, Reason: "the body is not as long as Content-Length says",
	}
)

// frame handles a frame that is all there. It returns a stream whose handler is to be
// begun now. An error is a ConnError, or a StreamError of the frame's stream.
func (s *Session) frame(h http2.Header, p []byte) (*stream, error) {
	if s.cfg.PingAfter > 0 {
		s.heard = s.Link.Now()
	}
	switch h.Type {
	case http2.FrameData:
		return s.onData(h, p)
	case http2.FrameHeaders:
		return s.onHeaders(h, p)
	case http2.FrameContinuation:
		return s.onContinuation(h, p)
	case http2.FrameWindowUpdate:
		return nil, s.onWindowUpdate(h, p)
	case http2.FrameRSTStream:
		return nil, s.onReset(h, p)
	}
	s.spendWork(1)
	switch h.Type {
	case http2.FramePriority:
		if err := h.CheckPriority(p); err != nil {
			return nil, err
		}
	case http2.FrameSettings:
		return nil, s.onSettings(h, p)
	case http2.FramePing:
		s.onPing(h, p)
	case http2.FramePriorityUpdate:
		return nil, s.onPriority(h, p)
	case http2.FrameGoAway:
		s.onGoAway(p)
	}
	return nil, nil
}

// onSettings is RFC 9113 section 6.5.
func (s *Session) onSettings(h http2.Header, p []byte) error {
	if h.Has(http2.FlagAck) {
		s.dec.SetLimit(s.cfg.TableSize)
		return nil
	}
	s.settled, s.headBy = true, 0 // no header block is under way
	before, table := s.peer.InitialWindow, s.peer.LeastTable
	if err := s.peer.Apply(p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order.known = s.order.known || s.peer.NoPriorities
	if more := int64(s.peer.InitialWindow) - int64(before); more != 0 {
		for _, st := range s.streams {
			if !st.closed() && !st.sendWindow.Add(more) { // one that is has no window any more
				return errConnWindow
			}
		}
		s.wakeNextLocked()
	}
	if s.peer.LeastTable < table && table == http2.DefaultSettings.LeastTable { // for the first time
		s.tableDue = true
	}
	s.roomLocked(http2.HeaderLen)
	s.out.B = http2.AppendSettingsAck(s.out.B)
	return nil
}

// maxDebug bounds what is logged of the debug data of a GOAWAY frame, which the client chooses.
const maxDebug = 128

// onGoAway is RFC 9113 section 6.8. An error is logged, as net/http's server does, but of the first frame only: it is
// what the client thinks of this server.
func (s *Session) onGoAway(p []byte) {
	if code := http2.ErrCode(binary.BigEndian.Uint32(p[4:])); code != http2.NoError && !s.leaving {
		debug := p[8:min(len(p), 8+maxDebug)]
		s.logf("http2: received GOAWAY from %s: %v, debug data %q", code, debug)
	}
	s.leaving = true
}

func (s *Session) onPing(h http2.Header, p []byte) {
	if h.Has(http2.FlagAck) {
		s.pinged = 0
		switch string(p) {
		case pingDrain:
			if s.drain.by != 0 {
				s.endDrain()
			}
		case pingWindow:
			s.sampled()
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pingLocked(true, p)
}

// onWindowUpdate is RFC 9113 section 6.9.
func (s *Session) onWindowUpdate(h http2.Header, p []byte) error {
	s.spendWork(1)
	n, err := h.Increment(p)
	if s.idle(h.Stream) {
		return errIdle
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Stream == 0 {
		if !s.sendWindow.Add(int64(n)) {
			return errConnWindow
		}
	} else if st := s.streamLocked(h.Stream); st != nil && !st.closed() && !st.sendWindow.Add(int64(n)) {
		return errWindow // one of which there is none may have ended meanwhile
	}
	s.wakeNextLocked()
	return nil
}

// onReset is RST_STREAM (RFC 9113 section 6.4).
func (s *Session) onReset(h http2.Header, p []byte) error {
	if s.idle(h.Stream) {
		return errIdle
	}
	s.mu.Lock()
	st := s.streamLocked(h.Stream)
	if st == nil || st.closed() || st.state == stateLingering {
		defer s.mu.Unlock()
		if st != nil && !st.closed() { // it has its answer
			st.allComeLocked() // nothing of it comes any more
		}
		return s.spendWorkLocked(1)
	}
	st.closeLocked(&resetError{StreamID: h.Stream, Code: http2.ErrCode(binary.BigEndian.Uint32(p))})
	s.mu.Unlock()
	s.spendReset()
	st.Gone(true)
	return nil
}

// onData is RFC 9113 section 6.1. All of the frame counts against the windows, the
// padding too.
func (s *Session) onData(h http2.Header, p []byte) (*stream, error) {
	data, err := h.Content(p)
	if err != nil {
		return nil, err
	}
	if s.idle(h.Stream) {
		return nil, errIdle
	}
	end := h.Has(http2.FlagEndStream)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(data) == 0 && !end { // CVE-2019-9518
		if err := s.spendWorkLocked(1); err != nil {
			return nil, err
		}
	}
	if !s.inflow.Avail.Take(h.Length) {
		return nil, errConnFlow
	}
	st := s.streamLocked(h.Stream)
	if st == nil || st.closed() || st.remoteClosed {
		s.refundLocked(nil, h.Length)
		if byUs, _ := s.wasClosedLocked(h.Stream, st); byUs {
			return nil, s.spendWorkLocked(1) // the client has not heard of it yet
		}
		return nil, errHalfClosed
	}
	if !st.inflow.Avail.Take(h.Length) {
		s.refundLocked(nil, h.Length)
		return nil, errFlow
	}
	if st.state == stateLingering {
		if s.refundLocked(nil, h.Length); end {
			st.allComeLocked()
		}
		return nil, nil
	}
	st.received += int64(len(data))
	if left := st.length - st.received; st.length >= 0 && (left < 0 || end && left > 0) {
		s.refundLocked(nil, h.Length)
		return nil, errLength
	}
	kept := uint32(len(data)) // of the stream's window
	switch reads := st.state < stateSending || st.upload != nil || st.tunnel != nil && !st.tunnel.ending; {
	case !reads:
		kept = 0
	case st.body.unwanted:
		st.body.dropped = st.body.dropped || kept > 0
		s.refundLocked(nil, kept)
	default:
		st.body.add(data)
	}
	if st.tunnel != nil || st.upload != nil {
		st.feedLater()
	}
	s.refundLocked(st, h.Length-kept)
	if end {
		return st.allComeLocked(), nil
	}
	st.wakeLocked()
	return nil, nil
}

// maxBlock bounds the bytes of a header block as it is on the wire. Huffman's code
// is up to 3.75 times as long as what it stands for, but not of text.
func (s *Session) maxBlock() int { return s.cfg.List.Bytes + s.cfg.List.Bytes/4 + 1024 }

// onHeaders is RFC 9113 section 6.2.
func (s *Session) onHeaders(h http2.Header, p []byte) (*stream, error) {
	block, err := h.Content(p)
	if _, ok := err.(*http2.ConnError); ok {
		return nil, err
	}
	if h.Stream%2 == 0 {
		return nil, errIdle
	}
	if len(block) > s.maxBlock() {
		return nil, errBlockLarge
	}
	if h.Has(http2.FlagEndHeaders) {
		return s.onBlock(h, block, err)
	}
	s.cont = continuation{h: h, block: bytes.Clone(block), err: err}
	s.headBy = stallBy(s.cfg.HeadTime)
	return nil, nil
}

// maxContinuations bounds the frames of one header block (CVE-2024-27316), besides those
// that a large one needs.
const maxContinuations = 16

func (s *Session) onContinuation(h http2.Header, p []byte) (*stream, error) {
	if s.cont.h.Stream == 0 {
		return nil, errStray
	}
	most := s.maxBlock()
	frames := maxContinuations + most/http2.MinFrameSize
	if s.cont.frames++; s.cont.frames > frames || len(s.cont.block)+len(p) > most {
		return nil, errBlockLarge
	}
	if s.cont.block = append(s.cont.block, p...); !h.Has(http2.FlagEndHeaders) {
		return nil, nil
	}
	c := s.cont
	s.cont, s.headBy = continuation{}, 0
	return s.onBlock(c.h, c.block, c.err)
}

// onBlock decodes a header block, which is done with every one of them, or the tables
// would not be the same any more.
func (s *Session) onBlock(h http2.Header, block []byte, err error) (*stream, error) {
	r := s.spareRequest
	if s.spareRequest = nil; r == nil {
		r = requests.Get().(*request)
	}
	st, err := s.decoded(h, block, err, r)
	if st == nil || st.direct != r {
		r.reset()
		s.spareRequest = r
	}
	return st, err
}

// decoded is onBlock with r to decode the block into, which st.direct is if it goes the direct way.
func (s *Session) decoded(h http2.Header, block []byte, err error, r *request) (st *stream, _ error) {
	if e := s.dec.Decode(block, &r.fields.Fields, s.cfg.List); e != nil {
		return nil, e
	}
	r.cost = int32(1 + max(len(block), r.fields.Size())/section.UselessSize)
	s.work += r.fields.Size() / madeSize
	if r.fields.TooLarge {
		if s.spendWork(r.cost); s.closing {
			return nil, nil
		}
	}
	trailers := h.Stream <= s.lastID
	s.lastID = max(s.lastID, h.Stream)
	switch {
	case err != nil:
		return nil, err
	case trailers:
		return s.onTrailers(h, r)
	}
	return s.onRequest(h, r)
}
