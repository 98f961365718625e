package h2

import (
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
)

// This file is answers that have been sent before their requests have come: an upload that
// is refused. RFC 9113 section 8.1 lets the server then reset the stream with NO_ERROR, so
// that the client stops, and forbids the client to discard the answer because of that. But
// clients that find the reset beside the answer do (curl 7.88). So the reset comes later, and
// most clients have ended the stream by then. What they send meanwhile is discarded; it is
// the stream's window at most, which is not given back.

// lingerLocked has st, whose answer has been sent, reset after a time, if the client does not end
// it before. It keeps its place among Config.MaxStreams, but the connection does not wait for
// it: it is idle without other streams, and when it ends the reset leaves at once.
func (s *Session) lingerLocked(st *stream) {
	st.lingerBy = s.Link.Now() + int64(conn.LingerFor)
	s.lingering++
	s.expiresBy = conn.Earlier(s.expiresBy, st.lingerBy)
}

// lingeredLocked closes a stream that has its answer, with a reset unless the client has ended it.
func (st *stream) lingeredLocked() {
	s := st.s
	if !st.remoteClosed {
		s.rstLocked(st.id, http2.NoError)
	}
	s.resets.Refund(1)
	st.closeLocked(nil)
}

// busyLocked reports whether there are streams besides those that linger.
func (s *Session) busyLocked() bool { return len(s.streams) > s.lingering }
