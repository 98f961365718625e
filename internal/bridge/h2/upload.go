package h2

import (
	"maps"
	"net/http"
	"slices"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/view"
)

// This file passes the body of a request that is forwarded on, as it comes from the client. What has come
// waits in stream.body until the other server's socket accepts it, and only then the windows are given
// back: so a stream keeps as much as its window is, whatever the server does, and what is gathered for it, of which
// there is a limit for all streams.

// upload is such a body. All is the owner's, which drives the loop, but for by.
type upload struct {
	f      *forwarded
	open   bool  // it has not been passed on as a whole, and the server may want more
	begun  bool  // Exchange.Run was called
	inside bool  // feed is running
	gather int   // how much has to come before that
	passed int64 // bytes
	readBy int64 // when the request must have come, of sys.Nanotime; 0 for never
	by     int64 // when more of it must have, under Session.mu; 0 while the server is waited for
}

func (f *forwarded) Room() {
	u, s := &f.up, f.st.s
	if !u.open || u.inside {
		return
	}
	if u.f.st.feedLater(); !s.inData.Load() {
		s.settleSoon()
	}
}

// feed passes on what has come, as far as the server accepts it.
func (u *upload) feed() {
	u.inside = true
	defer func() { u.inside = false }()
	f := u.f
	for sent := 0; u.goesOn(); {
		switch {
		case !u.begun:
			if !u.begin() {
				return
			}
			continue
		case !f.x.Room():
			u.limit(false)
			return
		case f.x.Stopped():
			u.leave()
			return
		case sent >= sendTurn:
			f.st.feedLater() // others have their turn
			return
		}
		b, end := u.take()
		switch {
		case b != nil:
			n := len(b.B)
			sent += n
			f.x.Upload(b.B)
			b.Release()
		case end:
			u.open = false
			u.limit(false)
			f.x.UploadEnd(u.trailer())
			return
		default:
			u.limit(true)
			return
		}
	}
}

// goesOn reports whether something may still be passed on. What ends the stream or the connection ends the
// exchange a little later, and meanwhile what was dropped of the body must not be taken for its end.
func (u *upload) goesOn() bool {
	f := u.f
	if !u.open || f.over || f.ends {
		return false
	}
	st, s := f.st, f.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return !st.closed() && st.err == nil && s.over == nil
}

// begin begins the exchange, when so much of the body has come as has to.
func (u *upload) begin() bool {
	st, s := u.f.st, u.f.st.s
	s.mu.Lock()
	ready := st.body.size >= u.gather && (st.length < 0 || int64(u.gather) < st.length || st.remoteClosed)
	n := u.gather
	if !ready && !st.refundGatheredLocked(u.gather) {
		if n = st.body.size; int64(n) == st.length {
			n-- // see take
		}
		ready = n > 0
	}
	whole := int64(n) == st.length
	var b *buf.Buf
	if ready {
		if b = st.popBodyLocked(n); whole {
			st.refundPassedLocked()
		}
	}
	if s.mu.Unlock(); !ready {
		u.limit(true)
		return false
	}
	u.begun, u.passed = true, int64(n)
	if n > 0 || whole {
		u.f.x.Hold(b.Bytes(), whole)
		b.Drop()
	}
	if whole {
		u.open = false
		u.limit(false)
	}
	u.f.x.Run()
	return true
}

// refundPassedLocked gives the windows of what was passed on back.
func (st *stream) refundPassedLocked() {
	if n := st.body.passing; n > 0 {
		st.body.passing = 0
		st.s.refundLocked(st, uint32(n))
	}
}

// refundGatheredLocked gives the windows back of what has come, while more is waited for: otherwise there might
// never be room for that, if the stream's own window is smaller than what is gathered, or other streams gather
// too. It also does so for what a handler has not read of a stream that is closed. It reports false, and does
// nothing, if that would be too much: all streams together get the connection's window once more, or most bytes,
// if those are more.
func (st *stream) refundGatheredLocked(most int) bool {
	s := st.s
	n := st.body.size - st.body.ahead
	if n == 0 {
		return true
	}
	if s.ahead+n > max(int(s.cfg.ConnWindow), most) {
		return false
	}
	st.body.ahead += n
	s.ahead += n
	s.refundLocked(st, uint32(n))
	return true
}

// take returns the next part of the body, for the caller to release; nil if none has come. end: all of it was
// taken. It is called when the server has accepted what was taken before.
func (u *upload) take() (b *buf.Buf, end bool) {
	st, s := u.f.st, u.f.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	st.refundPassedLocked()
	if st.awaits && st.received == 0 && !st.remoteClosed && st.status == 0 {
		s.putBlockLocked(st, http2.AppendStatus(nil, http.StatusContinue), false)
	}
	st.awaits = false
	if st.body.size == 0 {
		return nil, st.remoteClosed
	}
	n := len(st.body.pieces[0].B)
	if !st.remoteClosed && u.passed+int64(n) == st.length {
		// RFC 9113 section 8.1.1: with more DATA, or malformed trailers, the request would be malformed. The
		// server, which takes the last byte of a body with a length for its end, must not have it before.
		if n--; n == 0 {
			return nil, false
		}
	}
	u.passed += int64(n)
	return st.popBodyLocked(n), false
}

// trailer returns the trailer section of the request, for HTTP/1.
func (u *upload) trailer() []byte {
	var b []byte
	t := u.f.st.trailer
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if forward.IsTrailer(view.Bytes(name)) {
			for _, v := range t[name] {
				b = http1.AppendField(b, name, v)
			}
		}
	}
	return append(b, "\r\n"...)
}

// limit notes whether it is the client that is waited for.
func (u *upload) limit(client bool) {
	s := u.f.st.s
	by := int64(0)
	if client {
		by = conn.Earlier(u.readBy, stallBy(s.Shared.Limits.ReadStall))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u.by = by
	s.expireByLocked(by)
}

// leave drops what is left of the body: the server does not want it, or has responded. As after DropBody the
// stream's own window stays used up, so that the client does not send it all.
func (u *upload) leave() {
	if !u.open {
		return
	}
	u.open = false
	st, s := u.f.st, u.f.st.s
	s.mu.Lock()
	st.body.unwanted = true
	st.dropBodyLocked()
	u.by = 0
	s.mu.Unlock()
}

// expired ends the exchange of a client that has not sent its body in time.
func (u *upload) expired() {
	if s := u.f.st.s; u.goesOn() {
		s.Link.Tally().Late(s.Link.OnLoop(), tally.LateRead)
		u.f.x.Spoil(http.StatusRequestTimeout, "request body not received in time")
	}
}
