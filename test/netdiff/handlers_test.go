package netdiff

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// diffHandler responds to a request and records what it observes in the scene.
type diffHandler func(s *scene, w http.ResponseWriter, r *http.Request)

// diffHandlers are selected by path, for cases about what the client does.
var diffHandlers = map[string]diffHandler{
	"/":       sayHello,
	"*":       sayHello,
	"/quiet":  func(s *scene, w http.ResponseWriter, r *http.Request) {},
	"/unread": func(s *scene, w http.ResponseWriter, r *http.Request) { put(w, "unread") },
	"/read": func(s *scene, w http.ResponseWriter, r *http.Request) {
		n, err := s.readBody(r)
		fmt.Fprintf(w, "read %d %v", n, err == nil)
	},
	"/some": func(s *scene, w http.ResponseWriter, r *http.Request) {
		s.readSome(r, 5)
		put(w, "some")
	},
	"/close": func(s *scene, w http.ResponseWriter, r *http.Request) {
		s.note("closed: %s", errNote(r.Body.Close()))
		put(w, "closed")
	},
	"/status/204": func(s *scene, w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) },
	"/status/304": func(s *scene, w http.ResponseWriter, r *http.Request) { w.WriteHeader(304) },
	"/status/404": func(s *scene, w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) },
	"/flushed": func(s *scene, w http.ResponseWriter, r *http.Request) {
		put(w, "hel")
		flush(w)
		put(w, "lo")
	},
	"/length": func(s *scene, w http.ResponseWriter, r *http.Request) {
		set(w, "Content-Length", "5")
		put(w, "hello")
	},
	"/close-header": func(s *scene, w http.ResponseWriter, r *http.Request) {
		set(w, "Connection", "close")
		put(w, "hello")
	},
	"/keep-header": func(s *scene, w http.ResponseWriter, r *http.Request) {
		set(w, "Connection", "keep-alive")
		put(w, "hello")
	},
	"/large": func(s *scene, w http.ResponseWriter, r *http.Request) {
		n, err := w.Write(servertest.Pattern(100_000))
		s.note("wrote %d %s", n, errNote(err))
	},
	"/hints": func(s *scene, w http.ResponseWriter, r *http.Request) {
		set(w, "Link", "</a>")
		w.WriteHeader(103)
		put(w, "hello")
	},
}

func sayHello(s *scene, w http.ResponseWriter, r *http.Request) { put(w, "hello") }

// readBody reads the body to its end and records the result.
func (s *scene) readBody(r *http.Request) (int, error) {
	b, err := io.ReadAll(r.Body)
	n, again := r.Body.Read(make([]byte, 1))
	s.note("body %s %s, then %d %s%s", servertest.Brief(string(b)), errNote(err), n, errNote(again), trailerNote(r))
	return len(b), err
}

// readSome reads n bytes, or as many as there are.
func (s *scene) readSome(r *http.Request, n int) {
	b := make([]byte, n)
	n, err := io.ReadFull(r.Body, b)
	s.note("some of the body %q %s", b[:n], errNote(err))
}

func trailerNote(r *http.Request) string {
	if r.Trailer == nil {
		return ""
	}
	return fmt.Sprintf(" trailer %q", r.Trailer)
}

// plainAnswer is the response with a handler's body that is short and of a
// known type.
func plainAnswer(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s", len(body), body)
}

// refusalOf is chert's response to a malformed request.
func refusalOf(status int, reason string) string {
	text := fmt.Sprintf("%d %s", status, http.StatusText(status))
	body := text + ": " + reason
	return "HTTP/1.1 " + text + "\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" + body
}

// otherWords is for requests that both refuse with the same status.
func otherWords(status int, reason string) *unlikeness {
	return &unlikeness{id: unlike.RefusalText, sight: sight{wire: refusalOf(status, reason)}}
}

// refused is for requests that chert refuses at once and net/http serves.
func refused(id *unlike.Difference, status int, reason string) *unlikeness {
	return &unlikeness{id: id, sight: sight{
		wire: refusalOf(status, reason), end: "fin", handler: nothing, states: "new active closed",
	}}
}

// like is a difference with chert's observation.
func like(id *unlike.Difference, s sight) *unlikeness { return &unlikeness{id: id, sight: s} }

// getNote is the note on the request that a case without a script sends.
const getNote = `GET "/" HTTP/1.1 host="h"`

const chunkedHead = `POST "/read" HTTP/1.1 host="h" length=-1 te=["chunked"] body` + "\n"

const (
	errChunkNote   = `"http: malformed chunked encoding" []`
	errTrailerNote = `"http: malformed trailer after chunked body" []`
	errCutNote     = `"unexpected EOF" [ErrUnexpectedEOF]`
)

// bodyFails is for a chunked body for which "/read" gets different errors on
// the two sides.
func bodyFails(id *unlike.Difference, got, err string) *unlikeness {
	return like(id, sight{handler: fmt.Sprintf("%sbody %q %s, then 0 %s", chunkedHead, got, err, err)})
}

// bodyRefused is for a chunked body that net/http reads to its end.
func bodyRefused(id *unlike.Difference, got, err string) *unlikeness {
	u := bodyFails(id, got, err)
	u.wire = closing(fmt.Sprintf("read %d false", len(got)))
	u.end, u.states = "fin", "new active closed"
	return u
}

// bodyServed is for a chunked body whose end net/http does not read.
func bodyServed(id *unlike.Difference, got, trailer string) *unlikeness {
	return like(id, sight{
		wire: plainAnswer(fmt.Sprintf("read %d true", len(got))), end: "kept", states: "new active idle active closed",
		handler: fmt.Sprintf(`%sbody %q ok, then 0 "EOF" [EOF]%s`, chunkedHead, got, trailer),
	})
}

// closing is plainAnswer when the server announces the close.
func closing(body string) string {
	return strings.Replace(plainAnswer(body), "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
}

// cutLength is for a body of a known length that ends early: it stays cut, and
// the connection ends.
func cutLength(length, got string) *unlikeness {
	return like(unlike.CutBody, sight{
		wire: closing(fmt.Sprintf("read %d false", len(got))), states: "new active closed",
		handler: fmt.Sprintf(`POST "/read" HTTP/1.1 host="h" header=map["Content-Length":[%q]] length=%s body`+"\nbody %q %s, then 0 %s", length, length, got, errCutNote, errCutNote),
	})
}
