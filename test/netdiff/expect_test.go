package netdiff

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffExpect(t *testing.T) { diffRun(t, diffExpects) }

const (
	expect    = "Expect: 100-continue"
	length5   = "Content-Length: 5"
	continued = "HTTP/1.1 100 Continue\r\n\r\n"
	// expectFailed is the response to an unknown expectation.
	expectFailed = "HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)

var diffExpects = []diffCase{
	// 100-continue
	{name: "invited", do: say(ask("POST /read", expect, length5)).hear(continued).say("hello")},
	{name: "invited, in any case", do: say(ask("POST /read", "expect: 100-Continue", length5)).hear(continued).say("hello")},
	{name: "invited to send chunks", do: say(ask("POST /read", expect, "Transfer-Encoding: chunked")).hear(continued).say(servertest.Chunks("hello", 3))},
	{name: "invited to send trailers", do: say(ask("POST /read", expect, "Transfer-Encoding: chunked", "Trailer: A")).hear(continued).say("0\r\nA: 1\r\n\r\n")},
	{name: "invited twice on a connection", do: say(ask("POST /read", expect, length5)).hear(continued).say("hello" + ask("POST /read", expect, length5)).hear(continued).say("again"), n: 2},
	{name: "the body comes without waiting", send: ask("POST /read", expect, length5) + "hello"},
	{name: "the body and the next come without waiting", send: ask("POST /read", expect, length5) + "hello" + ask("GET /"), n: 2},
	{name: "half of it comes without waiting", do: say(ask("POST /read", expect, length5) + "he").hear(continued).say("llo")},
	{name: "nothing to send", send: ask("POST /read", expect, "Content-Length: 0")},
	{name: "no body at all", send: ask("GET /", expect)},
	{name: "1.0 cannot expect", send: ask10("POST /read", expect, length5) + "hello"},
	{name: "invited and cut", do: say(ask("POST /read", expect, length5)).hear(continued).say("he").halfClose(), unlike: like(unlike.CutBody, sight{wire: continued + closing("read 2 false"), states: "new active closed", handler: `POST "/read" HTTP/1.1 host="h" header=map["Content-Length":["5"] "Expect":["100-continue"]] length=5 body` + "\nbody \"he\" " + errCutNote + ", then 0 " + errCutNote})},
	{name: "invited to HEAD", do: say(ask("HEAD /read", expect, length5)).hear(continued).say("hello")},
	{name: "not read", do: say(ask("POST /unread", expect, length5)).hear("unread").halfClose()},
	{name: "not read, in chunks", do: say(ask("POST /unread", expect, "Transfer-Encoding: chunked")).hear("unread").halfClose()},
	{name: "not read but sent", do: say(ask("POST /unread", expect, length5)).hear("unread").say("hello").halfClose()},
	{name: "not read, close", do: say(ask("POST /unread", expect, length5, "Connection: close")).hear("unread").halfClose()},
	{name: "not read, sent at once", send: ask("POST /unread", expect, length5) + "hello"},
	{name: "not read, and nothing after it is served", send: ask("POST /unread", expect, length5) + "hello" + ask("GET /")},
	{name: "not read and long", do: say(ask("POST /unread", expect, "Content-Length: 1000000")).hear("unread").halfClose()},
	{name: "closed", do: say(ask("POST /", expect, length5)).halfClose(), h: func(s *scene, w rw, r *http.Request) {
		s.note("closed: %s", errNote(r.Body.Close()))
		_, err := r.Body.Read(make([]byte, 1))
		s.note("read %s", errNote(err))
		put(w, "no")
	}, unlike: like(unlike.ExpectClose, sight{handler: `POST "/" HTTP/1.1 host="h" header=map["Content-Length":["5"] "Expect":["100-continue"]] length=5 body` +
		"\nclosed: ok\nread \"http: invalid Read on closed Body\" [ErrBodyReadAfterClose]"})},
	{name: "closed after a part", do: say(ask("POST /", expect, length5)).hear(continued).say("hello"), h: func(s *scene, w rw, r *http.Request) {
		r.Body.Read(make([]byte, 1))
		s.note("closed: %s", errNote(r.Body.Close()))
		put(w, "no")
	}, unlike: like(unlike.ExpectClose, sight{wire: continued + plainAnswer("no"), end: "kept", states: "new active idle active closed"})},
	{name: "refused by the handler", do: say(ask("POST /", expect, length5)).hear("Forbidden").halfClose(), h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(403) }},
	{name: "refused and then read", send: ask("POST /", expect, length5) + "hello", h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(403)
		s.flushed(w)
		s.readBody(r)
	}},
	{name: "begun and then read", send: ask("POST /", expect, length5) + "hello", h: func(s *scene, w rw, r *http.Request) {
		put(w, "begun ")
		s.readBody(r)
		put(w, "done")
	}},
	{name: "an empty write and then read", send: ask("POST /", expect, length5) + "hello", h: func(s *scene, w rw, r *http.Request) {
		w.Write(nil)
		s.readBody(r)
	}},
	{name: "a flush and then read", send: ask("POST /", expect, length5) + "hello", h: func(s *scene, w rw, r *http.Request) {
		s.flushed(w)
		s.readBody(r)
	}},
	{name: "an empty read invites", do: say(ask("POST /", expect, length5)).hear(continued).say("hello"), h: func(s *scene, w rw, r *http.Request) {
		n, err := r.Body.Read(nil)
		s.note("read %d %s", n, errNote(err))
	}},
	{name: "invited by hand", do: say(ask("POST /", expect, length5)).hear(continued).say("hello"), h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(100)
		s.readBody(r)
	}},
	{name: "invited by hand twice", do: say(ask("POST /", expect, length5)).hear(continued).hear(continued).say("hello"), h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(100)
		w.WriteHeader(100)
		s.readBody(r)
	}},
	{name: "hints and then invited", do: say(ask("POST /", expect, length5)).hear(continued).say("hello"), h: func(s *scene, w rw, r *http.Request) {
		set(w, "Link", "</a>")
		w.WriteHeader(103)
		s.readBody(r)
	}},
	{name: "some read and the rest not", do: say(ask("POST /some", expect, "Content-Length: 10")).hear(continued).say("hello, you"), n: 1},
	{name: "all read but not its end", do: say(ask("POST /some", expect, length5)).hear(continued).say("hello")},
	{name: "a panic before the invitation", do: say(ask("POST /", expect, length5)).halfClose(), h: func(s *scene, w rw, r *http.Request) { panic(http.ErrAbortHandler) }},
	{name: "full duplex and not read", do: say(ask("POST /", expect, length5)).hear("no").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		put(w, "no")
	}},
	{name: "read by http.MaxBytesReader", do: say(ask("POST /", expect, length5)).hear(continued).say("hello"), h: func(s *scene, w rw, r *http.Request) {
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 100))
		s.note("%q %s", b, errNote(err))
	}},
	{name: "the handler has another body", do: say(ask("POST /", expect, length5)).halfClose(), h: func(s *scene, w rw, r *http.Request) {
		r.Body = http.NoBody
		s.readBody(r)
		put(w, "none")
	}},

	// Other expectations
	{name: "an unknown expectation", send: ask("GET /", "Expect: tea")},
	{name: "an unknown expectation in 1.0", send: ask10("GET /", "Expect: tea")},
	{name: "an unknown expectation and a body", do: say(ask("POST /read", "Expect: tea", length5) + "hello").halfClose()},
	{name: "an unknown expectation and a body that is not sent", do: say(ask("POST /read", "Expect: tea", length5)).hear("417").halfClose()},
	{name: "nothing is served after an unknown expectation", send: ask("GET /", "Expect: tea") + ask("GET /")},
	{name: "an empty expectation", send: ask("GET /", "Expect:")},
	{name: "an expectation with a parameter", do: say(ask("POST /read", "Expect: 100-continue;a=b", length5)).hear("417").halfClose()},
	{name: "two expectations, one unknown", do: say(ask("POST /read", "Expect: 100-continue, tea", length5) + "hello").halfClose(), unlike: like(unlike.ExpectList, sight{wire: expectFailed, end: "fin", handler: nothing, states: "new active closed"})},
	{name: "two expectations, the first unknown", do: say(ask("POST /read", "Expect: tea, 100-continue", length5) + "hello").halfClose(), unlike: like(unlike.ExpectList, sight{wire: expectFailed, end: "fin", handler: nothing, states: "new active closed"})},
	{name: "two lines, the second unknown", do: say(ask("POST /read", expect, "Expect: tea", length5) + "hello").halfClose(), unlike: like(unlike.ExpectList, sight{wire: expectFailed, end: "fin", handler: nothing, states: "new active closed"})},
	{name: "two lines, the first unknown", do: say(ask("POST /read", "Expect: tea", expect, length5) + "hello").halfClose()},
	{name: "the same twice", send: ask("POST /read", expect, expect, length5) + "hello"},
	{name: "in words", send: ask("POST /read", "Expect: please 100-continue", length5) + "hello", unlike: like(unlike.ExpectList, sight{wire: expectFailed, end: "fin", handler: nothing, states: "new active closed"})},
	{name: "in 1.0 the one that is known", send: ask10("GET /", expect)},

	// 1xx
	{name: "early hints", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Link", "</a>")
		w.WriteHeader(103)
		set(w, "Link", "</b>")
		set(w, "Content-Length", "1")
		w.WriteHeader(103)
		w.Header().Del("Link")
		put(w, "a")
	}},
	{name: "processing", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(102); w.WriteHeader(204) }},
	{name: "continue by hand", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(100); put(w, "a") }},
	{name: "a 1xx without a phrase", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(199); put(w, "a") }},
	{name: "a 1xx with every field", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Connection", "close")
		set(w, "Content-Type", "a/b")
		set(w, "Transfer-Encoding", "chunked")
		set(w, "Date", "today")
		set(w, "B", "1", "2")
		set(w, "a", "3")
		w.WriteHeader(103)
		put(w, "a")
	}},
	{name: "a 1xx goes out at once", do: say(ask("GET /")).hear("103 Early Hints\r\n\r\n").let("in"), h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(103)
		s.hold("in")
		put(w, "a")
	}},
	{name: "a 1xx too late", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(200); w.WriteHeader(103); put(w, "a") }},
	{name: "a 1xx after a write", h: func(s *scene, w rw, r *http.Request) { put(w, "a"); w.WriteHeader(103) }},
	{name: "a 1xx and nothing else", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(103) }},
	{name: "a 1xx to HEAD", send: ask("HEAD /hints")},
	{name: "a 1xx and close", send: ask("GET /hints", "Connection: close")},
	{name: "a 1xx to 1.0", send: ask10("GET /hints"), unlike: like(unlike.No1xxTo10, sight{wire: strings.Replace(closed10("hello"), "\r\n", "\r\nLink: </a>\r\n", 1)})},
	{name: "a 1xx to 1.0, kept", send: ask10("GET /hints", keepAlive), unlike: like(unlike.No1xxTo10, sight{wire: strings.Replace(kept10("hello"), "\r\n", "\r\nLink: </a>\r\n", 1)})},
	{name: "a 100 to 1.0", send: ask10("GET /"), h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(100); put(w, "a") }, unlike: like(unlike.No1xxTo10, sight{wire: closed10("a")})},
	{name: "101 without a hijack", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Connection", "Upgrade")
		set(w, "Upgrade", "x")
		w.WriteHeader(101)
	}},
	{name: "101 without a hijack, and a body", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(101); s.wrote(w, "a") }},
	{name: "101 without fields, close", send: ask("GET /", "Connection: close"), h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(101) }},
	{name: "101 of an upgrade, close", send: ask("GET /", "Connection: close"), h: func(s *scene, w rw, r *http.Request) {
		set(w, "Connection", "Upgrade")
		set(w, "Upgrade", "x")
		w.WriteHeader(101)
	}},
	{name: "101 of an upgrade to 1.0", send: ask10("GET /"), h: func(s *scene, w rw, r *http.Request) {
		set(w, "Connection", "Upgrade")
		set(w, "Upgrade", "x")
		w.WriteHeader(101)
	}},
	{name: "hints while the body comes", do: say(ask("POST /", length5) + "he").hear("103 Early Hints\r\n\r\n").say("llo"), h: func(s *scene, w rw, r *http.Request) {
		s.readSome(r, 2)
		w.WriteHeader(103)
		n, err := s.readBody(r)
		fmt.Fprint(w, n, err)
	}},
}
