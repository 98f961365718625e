package h2

import (
	"bytes"

	"github.com/chert-http/chert/internal/http2"
)

// reader makes frames and header blocks of the bytes that come, and has what the client has said
// about the connection. It is the owner's.
type reader struct {
	dec http2.Decoder
	// block is a header block of which more is to come, cont whose it is.
	block []byte
	cont  continuation
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

// continuation is a header block under way.
type continuation struct {
	h      http2.Header // of the HEADERS frame; zero if there is none
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

// headers begins the header block of a HEADERS frame that CONTINUATION follows. err is what is
// wrong with the frame.
func (r *reader) headers(h http2.Header, block []byte, err error) {
	r.block = append(r.block[:0], block...)
	r.cont = continuation{h: h, err: err}
}

// maxContinuations bounds the frames of one header block (CVE-2024-27316), besides those
// that a large one needs.
const maxContinuations = 16

// continued adds a CONTINUATION frame to the header block, which has most bytes at most. done: it
// is complete, that of the HEADERS frame of whole.
func (r *reader) continued(
	h http2.Header, p []byte, most int,
) (whole continuation, block []byte, done bool, err error) {
	if r.cont.h.Stream == 0 {
		return whole, nil, false, errStray
	}
	frames := maxContinuations + most/http2.MinFrameSize
	if r.cont.frames++; r.cont.frames > frames || len(r.block)+len(p) > most {
		return whole, nil, false, errBlockLarge
	}
	if r.block = append(r.block, p...); !h.Has(http2.FlagEndHeaders) {
		return whole, nil, false, nil
	}
	whole, block = r.cont, r.block
	r.block, r.cont, r.headBy = nil, continuation{}, 0
	return whole, block, true, nil
}

// idle reports whether a stream has not begun. Those with even numbers, which a server
// begins, never do (RFC 9113 section 5.1.1).
func (r *reader) idle(id uint32) bool { return id > r.lastID || id != 0 && id%2 == 0 }
