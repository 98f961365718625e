package h1

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

var (
	errTruncated = &http1.Error{Status: http.StatusBadRequest, Reason: "the request ends before its head does"}
	errTimeout   = &http1.Error{Status: http.StatusRequestTimeout, Reason: "the request's head did not come in time"}
)

// refuse answers a request that cannot be served. The connection cannot
// continue: where the next request would begin is unknown.
func (s *Session) refuse(e *http1.Error) conn.Next {
	s.Unanswered(tally.HTTP11, e.Status, s.way(stats.Inline), s.Link.OnLoop()) // before the hook may look
	s.Refuse(e.Status, e.Reason, s.Link.Buffered())
	mediaType, page := s.RefusalPage(e.Status)
	w := conn.Write{A: refusal(e)}
	if page != nil {
		w = conn.Write{A: refusalHead(e.Status, mediaType, len(page)), B: page, Holder: shared{}}
		// RFC 9110 section 9.3.2: no content. The request may be malformed.
		if bytes.HasPrefix(s.Link.Buffered(), []byte("HEAD ")) {
			w.B = nil
		}
	}
	if s.Link.Send(&w) != nil {
		return conn.Close
	}
	return conn.Linger
}

// shared is the Holder of bytes that do not change. Without one each client that does not
// read would have a copy of the page.
type shared struct{}

func (shared) Check() error { return nil }
func (shared) Release()     {}

// way is where the Session serves a request that a loop serves as given.
func (s *Session) way(w stats.Way) stats.Way {
	if !s.is(onLoops) {
		return stats.Goroutine
	}
	return w
}

// notImplemented is for transfer codings that are not supported, byte for byte net/http's:
// programs test for it. RFC 9110 section 6.6.1: a 5xx needs no Date; RFC 9112 section 6.3:
// the end of the connection ends the body.
const notImplemented = "HTTP/1.1 501 Not Implemented\r\nContent-Type: text/plain; charset=utf-8\r\n" +
	"Connection: close\r\n\r\nUnsupported transfer encoding"

func refusal(e *http1.Error) []byte {
	status := e.Status
	if status == http.StatusNotImplemented {
		return []byte(notImplemented)
	}
	text := strconv.Itoa(status) + " " + http.StatusText(status) + ": " + e.Reason
	return append(refusalHead(status, "text/plain; charset=utf-8", len(text)), text...)
}

func refusalHead(status int, mediaType string, length int) []byte {
	b := http1.AppendStatusLine(nil, 1, status)
	b = bridge.AppendDate(b, sys.Nanotime())
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	b = append(append(b, "\r\nContent-Type: "...), mediaType...)
	return append(b, "\r\nConnection: close\r\n\r\n"...)
}
