package h2

import (
	"bytes"

	"github.com/chert-http/chert/internal/http2"
)

// reader makes frames and header blocks of the bytes that come, and has what the client has said
// about the connection. It is the owner's.
type reader struct {
	dec  http2.Decoder
	cont continuation
	// lastID is the newest stream that the client has begun.
	lastID  uint32
	peer    http2.Settings
	begun   bool // the preface has come
	settled bool // and SETTINGS after it
	leaving bool // the client has sent GOAWAY
	// Times of sys.Nanotime: when a frame has come, and by when what is begun must have come; 0
	// for none.
	heard, headBy int64
}

// continuation is a header block of which more is to come.
type continuation struct {
	h      http2.Header // of the HEADERS frame; zero if there is none
	block  []byte
	frames int
	err    error // of the HEADERS frame
}

// preface consumes the client's preface at the beginning of b; n is 0 while it is incomplete.
func (r *reader) preface(b []byte) (n int, err error) {
	const want = http2.Preface
	if len(b) < len(want) && bytes.HasPrefix([]byte(want), b) {
		return 0, nil
	}
	if !bytes.HasPrefix(b, []byte(want)) {
		return 0, errPreface
	}
	r.begun = true
	return len(want), nil
}

// next returns the header of the frame at the beginning of b, which has n bytes with it; n is 0
// while it is incomplete. most is the longest that a frame may be. An error ends the connection.
func (r *reader) next(b []byte, most uint32) (h http2.Header, n int, err error) {
	if len(b) < http2.HeaderLen {
		return h, 0, nil
	}
	h = http2.ParseHeader(b)
	if err := h.Check(most); err != nil {
		return h, 0, err
	}
	if !r.settled && (h.Type != http2.FrameSettings || h.Has(http2.FlagAck)) {
		return h, 0, errNoSettings
	}
	if open := r.cont.h.Stream; open != 0 && (h.Type != http2.FrameContinuation || h.Stream != open) {
		return h, 0, errInterleaved
	}
	if n = http2.HeaderLen + int(h.Length); len(b) < n {
		return h, 0, nil
	}
	return h, n, nil
}

// idle reports whether a stream has not begun. Those with even numbers, which a server
// begins, never do (RFC 9113 section 5.1.1).
func (r *reader) idle(id uint32) bool { return id > r.lastID || id != 0 && id%2 == 0 }
