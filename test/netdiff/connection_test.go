package netdiff

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffConnection(t *testing.T) { diffRun(t, diffConnections) }

const keepAlive = "Connection: keep-alive"

var diffConnections = []diffCase{
	// The client's choice
	{name: "1.1 persists", send: ask("GET /")},
	{name: "close", send: ask("GET /", "Connection: close")},
	{name: "close in capitals", send: ask("GET /", "Connection: CLOSE")},
	{name: "close in a list", send: ask("GET /", "Connection: foo, close")},
	{name: "close in a list without spaces", send: ask("GET /", "Connection: foo,close,bar")},
	{name: "close among empty elements", send: ask("GET /", "Connection: ,, close ,")},
	{name: "close in a second line", send: ask("GET /", "Connection: foo", "Connection: close")},
	{name: "close between tabs", send: ask("GET /", "Connection: foo,\tclose\t,bar")},
	{name: "close and keep-alive", send: ask("GET /", "Connection: close, keep-alive")},
	{name: "keep-alive and close", send: ask("GET /", "Connection: keep-alive, close")},
	{name: "close among words", send: ask("GET /", "Connection: foo close bar"), unlike: like(unlike.ConnectionOptions, sight{handler: `GET "/" HTTP/1.1 host="h" header=map["Connection":["foo close bar"]] close`})},
	{name: "another word", send: ask("GET /", "Connection: closed")},
	{name: "close with a dash", send: ask("GET /", "Connection: close-x")},
	{name: "close in quotes", send: ask("GET /", `Connection: "close"`)},
	{name: "close with a parameter", send: ask("GET /", "Connection: close;q=1")},
	{name: "an empty Connection", send: ask("GET /", "Connection:")},
	{name: "needless keep-alive", send: ask("GET /", keepAlive)},
	{name: "Keep-Alive is an ornament", send: ask("GET /", "Keep-Alive: timeout=5, max=1")},
	{name: "Proxy-Connection is nothing", send: ask("GET /", "Proxy-Connection: close")},
	{name: "close and an unread body", send: post("/unread", "abc", "Connection: close")},
	{name: "close and a HEAD", send: ask("HEAD /", "Connection: close")},
	{name: "close and a 204", send: ask("GET /status/204", "Connection: close")},
	{name: "close and chunks", send: ask("GET /flushed", "Connection: close")},
	{name: "close of a later minor version", send: rawHead("GET / HTTP/1.2", hostH, "Connection: close")},

	{name: "upgrade and close", send: ask("GET /", "Connection: Upgrade, close", "Upgrade: x")},
	{name: "close and an expectation", do: say(ask("POST /read", "Connection: close", expect, length5)).hear(continued).say("hello")},
	{name: "close and a long unread body", do: say(post("/unread", string(servertest.Pattern(400_000)), "Connection: close")).hear("unread").halfClose()},
	{name: "close and a body of which some is read", send: post("/some", "hello, world", "Connection: close")},
	{name: "close and unread chunks", send: postChunks("/unread", servertest.Chunks("hello", 2), "Connection: close")},
	{name: "close and a bad chunk that is not read", send: postChunks("/unread", "x\r\n", "Connection: close")},
	{name: "close and a body that is never sent", do: say(ask("POST /unread", "Connection: close", length5)).hear("unread").halfClose()},
	{name: "close and chunks that are never sent", do: say(ask("POST /unread", "Connection: close", "Transfer-Encoding: chunked")).hear("unread").halfClose()},

	// The handler's choice
	{name: "the handler closes", send: ask("GET /close-header")},
	{name: "the handler closes too", send: ask("GET /close-header", "Connection: close")},
	{name: "the handler keeps", send: ask("GET /keep-header")},
	{name: "the handler cannot keep", send: ask("GET /keep-header", "Connection: close")},
	{name: "the handler says both", h: func(s *scene, w rw, r *http.Request) { set(w, "Connection", "close", "keep-alive"); put(w, "a") }},
	{name: "the handler says keep-alive and close", h: func(s *scene, w rw, r *http.Request) { set(w, "Connection", "keep-alive", "close"); put(w, "a") }},
	{name: "the handler closes after WriteHeader", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(200); set(w, "Connection", "close"); put(w, "a") }},
	{name: "the handler says something else", h: func(s *scene, w rw, r *http.Request) { set(w, "Connection", "foo"); put(w, "a") }},
	{name: "something else and the client closes", send: ask("GET /", "Connection: close"), h: func(s *scene, w rw, r *http.Request) { set(w, "Connection", "foo"); put(w, "a") }},
	{name: "an empty Connection of the handler", h: func(s *scene, w rw, r *http.Request) { set(w, "Connection", ""); put(w, "a") }},
	{name: "a Connection without values", h: func(s *scene, w rw, r *http.Request) { set(w, "Connection"); put(w, "a") }},
	{name: "the handler closes over a 204", h: func(s *scene, w rw, r *http.Request) { set(w, "Connection", "close"); w.WriteHeader(204) }},

	// 1.0
	{name: "1.0 does not persist", send: ask10("GET /")},
	{name: "1.0 with close", send: ask10("GET /", "Connection: close")},
	{name: "1.0 kept", send: ask10("GET /", keepAlive)},
	{name: "1.0 kept, in capitals", send: ask10("GET /", "Connection: Keep-Alive")},
	{name: "1.0 kept, in a list", send: ask10("GET /", "Connection: foo, keep-alive")},
	{name: "1.0 kept, in a second line", send: ask10("GET /", "Connection: foo", keepAlive), unlike: like(unlike.ConnectionOptions, sight{wire: kept10("hello"), end: "kept", states: "new active idle active closed"})},
	{name: "1.0 kept, several words", send: ask10("GET /", "Connection: foo keep-alive"), unlike: like(unlike.ConnectionOptions, sight{wire: closed10("hello"), end: "fin", states: "new active closed"})},
	{name: "1.0 kept and closed", send: ask10("GET /", "Connection: keep-alive, close"), unlike: like(unlike.ConnectionOptions, sight{wire: closed10("hello"), end: "fin", states: "new active closed"})},
	{name: "1.0 closed and kept", send: ask10("GET /", "Connection: close, keep-alive"), unlike: like(unlike.ConnectionOptions, sight{wire: closed10("hello"), end: "fin", states: "new active closed"})},
	{name: "1.0 closed and kept in two lines", send: ask10("GET /", "Connection: close", keepAlive)},
	{name: "1.0 kept with a declared length", send: ask10("GET /length", keepAlive)},
	{name: "1.0 kept without a length", send: ask10("GET /flushed", keepAlive)},
	{name: "1.0 kept with a long body", send: ask10("GET /large", keepAlive)},
	{name: "1.0 kept with a 204", send: ask10("GET /status/204", keepAlive)},
	{name: "1.0 kept with a 304", send: ask10("GET /status/304", keepAlive)},
	{name: "1.0 kept with nothing", send: ask10("GET /quiet", keepAlive)},
	{name: "1.0 kept with a HEAD", send: ask10("HEAD /", keepAlive)},
	{name: "1.0 kept with a HEAD of chunks", send: ask10("HEAD /flushed", keepAlive)},
	{name: "1.0 kept with a HEAD of nothing", send: ask10("HEAD /quiet", keepAlive)},
	{name: "1.0 and the handler closes", send: ask10("GET /close-header", keepAlive)},
	{name: "1.0 and the handler keeps", send: ask10("GET /keep-header", keepAlive)},
	{name: "1.0 and the handler alone keeps", send: ask10("GET /keep-header")},
	{name: "1.0 kept and less written than declared", send: ask10("GET /", keepAlive), h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "5"); put(w, "a") }},
	{name: "1.0 kept twice", send: ask10("GET /", keepAlive) + ask10("GET /quiet", keepAlive), n: 2},
	{name: "1.0 kept and then not", send: ask10("GET /", keepAlive) + ask10("GET /quiet"), n: 2},
	{name: "1.0 and nothing after it is served", send: ask10("GET /") + ask("GET /quiet")},
	{name: "1.0 kept and then 1.1", send: ask10("GET /", keepAlive) + ask("GET /quiet"), n: 2},
	{name: "1.1 and then 1.0", send: ask("GET /") + ask10("GET /quiet"), n: 2},
	{name: "1.0 with a body", send: ask10("POST /read", keepAlive, "Content-Length: 3") + "abc"},
	{name: "1.0 with an unread body", send: ask10("POST /unread", keepAlive, "Content-Length: 3") + "abc"},

	// Pipelining
	{name: "two requests", send: ask("GET /") + ask("GET /quiet"), n: 2},
	{name: "twenty requests", send: strings.Repeat(ask("GET /")+ask("GET /status/404"), 10), n: 20},
	{name: "a HEAD and a GET", send: ask("HEAD /") + ask("GET /"), n: 2},
	{name: "a 204, a 304 and a GET", send: ask("GET /status/204") + ask("GET /status/304") + ask("GET /"), n: 3},
	{name: "chunks and a GET", send: ask("GET /flushed") + ask("GET /"), n: 2},
	{name: "a long answer and a GET", send: ask("GET /large") + ask("GET /"), n: 2},
	{name: "a HEAD of a long answer and a GET", send: ask("HEAD /large") + ask("GET /"), n: 2},
	{name: "a body and a GET", send: post("/read", "abc") + ask("GET /"), n: 2},
	{name: "an unread body and a GET", send: post("/unread", "abc") + ask("GET /"), n: 2},
	{name: "an unread body in chunks and a GET", send: postChunks("/unread", servertest.Chunks("hello", 2)) + ask("GET /"), n: 2},
	{name: "a body of which some is read and a GET", send: post("/some", "hello, world") + ask("GET /"), n: 2},
	{name: "a closed body and a GET", send: post("/close", "hello, world") + ask("GET /"), n: 2},
	{name: "a long unread body and a GET", send: post("/unread", string(servertest.Pattern(100_000))) + ask("GET /"), n: 2},
	{name: "bodies of all kinds", send: post("/read", "abc") + postChunks("/read", servertest.Chunks("hello", 2)) + post("/unread", "def") + post("/read", "") + ask("GET /"), n: 5},
	{name: "nothing is served after close", send: ask("GET /", "Connection: close") + ask("GET /quiet")},
	{name: "nothing is served after the handler's close", send: ask("GET /close-header") + ask("GET /quiet")},
	{name: "nothing is served after less than declared", send: ask("GET /") + ask("GET /"), h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "5"); put(w, "a") }},
	{name: "nothing is served after a refusal", send: ask("GET /") + "bad\r\n\r\n" + ask("GET /quiet"), unlike: like(unlike.RefusalText, sight{
		wire: plainAnswer("hello") + refusalOf(400, "malformed method"), states: activeAgain})},
	{name: "a request while the first is served", do: say(ask("GET /")).reach("in").say(ask("GET /quiet")).settle().let("in"), n: 2, h: heldFirst},
	{name: "part of a request while the first is served", do: say(ask("GET /")).reach("in").say("GET /qui").settle().let("in").hear("first").say("et HTTP/1.1\r\nHost: h\r\n\r\n"), n: 2, h: heldFirst},
	{name: "nonsense while the first is served", do: say(ask("GET /")).reach("in").say("bad\r\n\r\n").settle().let("in"), n: 2, h: heldFirst, unlike: like(unlike.RefusalText, sight{
		wire: plainAnswer("first") + refusalOf(400, "malformed method"), states: activeAgain})},
	{name: "an end while the first is served", do: say(ask("GET /")).reach("in").halfClose().settle().let("in"), h: heldFirst},
	{name: "a request and an end while the first is served", do: say(ask("GET /")).reach("in").say(ask("GET /quiet")).halfClose().settle().let("in"), h: heldFirst},
	{name: "requests one by one", do: say(ask("GET /")).hear("hello").say(ask("GET /quiet")).idle(2).say(ask("GET /")).hear("hello"), n: 3},
	{name: "an end when idle", do: say(ask("GET /")).idle(1).halfClose()},
	{name: "an end after the request", do: say(ask("GET /")).halfClose()},
	{name: "an end after two requests", do: say(ask("GET /") + ask("GET /quiet")).halfClose()},
	{name: "an end after a body", do: say(post("/read", "abc")).halfClose()},

	// Segments
	{name: "cut in the method line", do: say("GET / HT").settle().say("TP/1.1\r\nHost: h\r\n\r\n")},
	{name: "cut between CR and LF", do: say("GET / HTTP/1.1\r").settle().say("\nHost: h\r").settle().say("\n\r").settle().say("\n")},
	{name: "line by line", do: say("GET / HTTP/1.1\r\n").settle().say("Host: h\r\n").settle().say("A: b\r\n").settle().say("\r\n")},
	{name: "cut in the value", do: say("GET / HTTP/1.1\r\nHost: h\r\nA: a").settle().say("b\r\n\r\n")},
	{name: "the head and then the body", do: say(ask("POST /read", "Content-Length: 5")).settle().say("hello")},
	{name: "the head and part of the body", do: say(ask("POST /read", "Content-Length: 5") + "he").settle().say("llo")},
	{name: "the body and part of the next", do: say(post("/read", "abc") + "GET /").hear("read 3").say(" HTTP/1.1\r\nHost: h\r\n\r\n"), n: 2},
	{name: "cut in a chunk's size", do: say(postChunks("/read", "1")).settle().say("0\r\n0123456789abcdef\r\n0\r\n\r\n")},
	{name: "cut in chunk data", do: say(postChunks("/read", "5\r\nhe")).settle().say("llo\r").settle().say("\n0\r\n").settle().say("\r\n")},
	{name: "cut in a trailer", do: say(postChunks("/read", "0\r\nA: 1\r\nB")).settle().say(": 2\r\n\r\n")},
	{name: "a long head in pieces", do: say("GET / HTTP/1.1\r\nHost: h\r\nA: " + strings.Repeat("a", 5000)).settle().say(strings.Repeat("b", 5000)).settle().say("\r\n\r\n")},
}

// kept10 and closed10 are plainAnswer to 1.0.
func kept10(body string) string {
	return strings.Replace(closed10(body), "\r\n\r\n", "\r\nConnection: keep-alive\r\n\r\n", 1)
}

func closed10(body string) string { return strings.Replace(plainAnswer(body), "1.1", "1.0", 1) }

// heldFirst holds the first request, responds with "first", and to others as
// usual.
func heldFirst(s *scene, w rw, r *http.Request) {
	if r.URL.Path != "/" {
		diffHandlers[r.URL.Path](s, w, r)
		return
	}
	s.hold("in")
	put(w, "first")
}
