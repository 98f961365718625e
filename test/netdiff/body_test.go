package netdiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffBody(t *testing.T) { diffRun(t, diffBodies) }

// limited reads a body with http.MaxBytesReader and responds 413 beyond it.
func limited(limit int64) diffHandler {
	return func(s *scene, w rw, r *http.Request) {
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		s.note("%s %s", servertest.Brief(string(b)), errNote(err))
		if err != nil {
			w.WriteHeader(413)
		}
		fmt.Fprint(w, len(b))
	}
}

// drain is how much of an unread body either server reads to keep the
// connection.
const drain = 256 << 10

func unreadBody(size int) string { return post("/unread", string(servertest.Pattern(size))) }
func unreadChunks(size int) string {
	return postChunks("/unread", servertest.Chunks(string(servertest.Pattern(size)), 8000))
}

var diffBodies = []diffCase{
	// Reads, one by one
	{name: "the end comes with the last of a length", whole: "how much has come is what it is about", send: post("/", "hello"), h: readsOfThree},
	{name: "the end comes with the last of the chunks", whole: "how much has come is what it is about", send: postChunks("/", "5\r\nhello\r\n0\r\n\r\n"), h: readsOfThree},
	{name: "one read spans chunks", whole: "how much has come is what it is about", send: postChunks("/", servertest.Chunks("hello, world", 4)), h: func(s *scene, w rw, r *http.Request) { s.reads(r, 100, 3) }},
	{name: "an empty read", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		n, err := r.Body.Read(nil)
		s.note("%d %s", n, errNote(err))
		s.readBody(r)
	}},
	{name: "an empty read after the end", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		s.readBody(r)
		n, err := r.Body.Read(nil)
		s.note("%d %s", n, errNote(err))
	}},
	{name: "an empty read of no body", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		n, err := r.Body.Read(nil)
		s.note("%d %s, %s", n, errNote(err), errNote(r.Body.Close()))
		s.readBody(r)
	}},
	{name: "read in turns with the client", do: say(ask("POST /", "Content-Length: 6") + "ab").reach("2").say("cd").reach("4").say("ef"), h: func(s *scene, w rw, r *http.Request) {
		for _, at := range []string{"2", "4", "6"} {
			s.readSome(r, 2)
			s.point(at)
		}
		s.readBody(r)
	}},
	{name: "chunks read in turns with the client", do: say(postChunks("/", "2\r\nab\r\n")).reach("2").say("2\r\ncd\r\n").reach("4").say("2\r\nef\r\n0\r\nA: 1\r\n\r\n"), h: func(s *scene, w rw, r *http.Request) {
		for _, at := range []string{"2", "4", "6"} {
			s.readSome(r, 2)
			s.point(at)
		}
		s.readBody(r)
	}},
	{name: "the trailer is not there before the end", send: postChunks("/", "5\r\nhello\r\n0\r\nA: 1\r\n\r\n", "Trailer: A"), h: func(s *scene, w rw, r *http.Request) {
		s.note("%q", r.Trailer)
		s.readBody(r)
	}},
	{name: "the trailer of a body that was closed", send: postChunks("/", "5\r\nhello\r\n0\r\nA: 1\r\n\r\n"), h: func(s *scene, w rw, r *http.Request) {
		s.note("%s %q", errNote(r.Body.Close()), r.Trailer)
	}},
	{name: "a long body in small reads", send: post("/", string(servertest.Pattern(20_000))), h: func(s *scene, w rw, r *http.Request) {
		var b bytes.Buffer
		n, err := io.CopyBuffer(&b, onlyReader{r.Body}, make([]byte, 7))
		s.note("%d %v %v", n, err, b.String() == string(servertest.Pattern(20_000)))
	}},
	{name: "decoded as JSON", send: post("/", `{"a": 1}`) + ask("GET /read"), n: 2, h: decoded},
	{name: "decoded as JSON, in chunks", send: postChunks("/", servertest.Chunks(`{"a": 1}`, 3)) + ask("GET /read"), n: 2, h: decoded},

	// Unread
	{name: "nothing is read of a little", send: unreadBody(10)},
	{name: "nothing is read of a little in chunks", send: unreadChunks(10)},
	{name: "a byte less than is drained", send: unreadBody(drain - 1)},
	{name: "as much as is drained", do: say(unreadBody(drain)).hear("unread").halfClose()},
	{name: "a byte more than is drained", do: say(unreadBody(drain + 1)).hear("unread").halfClose()},
	{name: "a byte less than is drained, in chunks", send: unreadChunks(drain - 1)},
	{name: "as much as is drained, in chunks", do: say(unreadChunks(drain)).hear("unread").halfClose()},
	{name: "a byte more than is drained, in chunks", do: say(unreadChunks(drain + 1)).hear("unread").halfClose()},
	{name: "a length that is too much to drain", do: say(ask("POST /unread", "Content-Length: 1000000000")).hear("unread").halfClose()},
	{name: "the drain waits for the rest", do: say(ask("POST /unread", length5) + "he").reach("returned").say("llo"), h: func(s *scene, w rw, r *http.Request) {
		put(w, "unread")
		s.point("returned")
	}},
	{name: "the drain meets an end", do: say(ask("POST /unread", length5) + "he").halfClose()},
	{name: "the drain meets an end, in chunks", do: say(postChunks("/unread", "5\r\nhe")).halfClose()},
	{name: "the drain comes before a long answer", send: post("/", string(servertest.Pattern(5000))), h: func(s *scene, w rw, r *http.Request) {
		w.Write(servertest.Pattern(5000))
		s.readBody(r)
	}},
	{name: "the drain comes before a flush", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		s.flushed(w)
		s.readBody(r)
	}},
	{name: "a little is written before reading", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		put(w, "early ")
		s.readBody(r)
	}},
	{name: "status before reading", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(202)
		s.readBody(r)
	}},
	{name: "hints before reading", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(103)
		s.readBody(r)
	}},
	{name: "some is read and then much written", send: post("/", "hello, world"), h: func(s *scene, w rw, r *http.Request) {
		s.readSome(r, 5)
		w.Write(servertest.Pattern(5000))
		s.readBody(r)
	}},
	{name: "the end is read and then much written", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		s.readBody(r)
		w.Write(servertest.Pattern(5000))
		s.readBody(r)
	}},
	{name: "a bad chunk after what was read", send: postChunks("/", "5\r\nhello\r\nx\r\n") + smuggled, h: func(s *scene, w rw, r *http.Request) {
		s.readSome(r, 5)
		put(w, "some")
	}},

	// Closed
	{name: "closed at once", send: post("/close", "hello") + ask("GET /"), n: 2},
	{name: "closed at once, in chunks", send: postChunks("/close", servertest.Chunks("hello", 2)) + ask("GET /"), n: 2},
	{name: "closed twice", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		s.note("%s %s", errNote(r.Body.Close()), errNote(r.Body.Close()))
	}},
	{name: "read when closed", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		r.Body.Close()
		s.readBody(r)
		n, err := r.Body.Read(nil)
		s.note("%d %s", n, errNote(err))
	}},
	{name: "read when closed, in chunks", send: postChunks("/", servertest.Chunks("hello", 2)), h: func(s *scene, w rw, r *http.Request) {
		r.Body.Close()
		s.readBody(r)
	}},
	{name: "closed after its end", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		s.readBody(r)
		s.note("%s", errNote(r.Body.Close()))
		s.readBody(r)
	}},
	{name: "closed in the middle", send: post("/", "hello, world") + ask("GET /read"), n: 2, h: func(s *scene, w rw, r *http.Request) {
		s.readSome(r, 5)
		s.note("%s", errNote(r.Body.Close()))
	}},
	{name: "closed with the client gone", do: say(ask("POST /", length5) + "he").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		s.note("%s", errNote(r.Body.Close()))
	}, unlike: like(unlike.CutBody, sight{wire: emptyClosing, states: "new active closed"})},
	{name: "closed over a bad chunk", send: postChunks("/", "x\r\n") + smuggled, h: func(s *scene, w rw, r *http.Request) {
		s.note("%s", errNote(r.Body.Close()))
	}, unlike: like(unlike.BodyRefusal, sight{wire: strings.Replace(emptyClosing, "200 OK", "400 Bad Request", 1), handler: chunkedNote + "\n" + errChunkNote})},
	{name: "closed over much", do: say(ask("POST /", "Content-Length: 1000000")).hear("closed").halfClose(), h: diffHandlers["/close"]},
	{name: "closed over much in chunks", do: say(postChunks("/", servertest.Chunks(string(servertest.Pattern(400_000)), 8000))).hear("closed").halfClose(), h: diffHandlers["/close"]},
	{name: "no body closed", send: ask("GET /close")},

	// Replaced
	{name: "another body in its place", send: post("/", "hello") + ask("GET /read"), n: 2, h: func(s *scene, w rw, r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader("other"))
		s.readBody(r)
	}},
	{name: "nil in its place", send: post("/", "hello") + ask("GET /read"), n: 2, h: func(s *scene, w rw, r *http.Request) { r.Body = nil }},
	{name: "NoBody in its place", send: post("/", "hello") + ask("GET /read"), n: 2, h: func(s *scene, w rw, r *http.Request) { r.Body = http.NoBody }},
	{name: "a wrapper in its place", send: post("/", "hello") + ask("GET /read"), n: 2, h: func(s *scene, w rw, r *http.Request) {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(r.Body, 3), r.Body}
		s.readBody(r)
	}},
	{name: "the length changed by the handler", whole: panicsBetween, send: post("/", "hello") + ask("GET /read"), n: 2, h: func(s *scene, w rw, r *http.Request) {
		r.ContentLength = 0
		put(w, "a")
	}, unlike: like(unlike.RequestChanged, sight{wire: plainAnswer("a") + plainAnswer("a"), end: "kept", handler: helloNote + "\n" + `GET "/read" HTTP/1.1 host="h"`, log: nothing, states: "new active idle active idle active closed"})},
	{name: "the method changed by the handler", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		r.Method = "HEAD"
		put(w, "a")
	}, unlike: like(unlike.RequestChanged, sight{wire: plainAnswer("a")})},
	{name: "the header emptied by the handler", send: post("/", "hello", "Connection: close"), h: func(s *scene, w rw, r *http.Request) {
		r.Header, r.Close = nil, false
		put(w, "a")
	}},
	{name: "a copy of the request", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		c := r.Clone(r.Context())
		s.readBody(c)
		c.Header.Set("A", "1")
		s.note("%q", r.Header)
	}},
	{name: "dumped", send: postChunks("/?q", servertest.Chunks("hello", 2), "A: 1"), h: func(s *scene, w rw, r *http.Request) {
		b, err := httputil.DumpRequest(r, true)
		s.note("%q %s", b, errNote(err))
	}},

	// MaxBytesReader
	{name: "within the limit", send: post("/", "hello"), h: limited(5)},
	{name: "within the limit, in chunks", send: postChunks("/", servertest.Chunks("hello", 2)), h: limited(5)},
	{name: "beyond the limit", send: post("/", "hello!"), h: limited(5), unlike: like(unlike.MaxBytes, sight{wire: tooLarge("5"), end: "kept", states: "new active idle active closed"})},
	{name: "beyond the limit, in chunks", send: postChunks("/", servertest.Chunks("hello!", 2)), h: limited(5), unlike: like(unlike.MaxBytes, sight{wire: tooLarge("5"), end: "kept", states: "new active idle active closed"})},
	{name: "far beyond the limit", do: say(post("/", string(servertest.Pattern(300_000)))).hear("\r\n\r\n5").halfClose(), h: limited(5), unlike: like(unlike.MaxBytes, sight{wire: strings.Replace(tooLarge("5"), "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)})},
	{name: "a limit of none", send: post("/", "hello"), h: limited(0), unlike: like(unlike.MaxBytes, sight{wire: tooLarge("0"), end: "kept", states: "new active idle active closed"})},
	{name: "a negative limit", send: post("/", "hello"), h: limited(-1), unlike: like(unlike.MaxBytes, sight{wire: tooLarge("0"), end: "kept", states: "new active idle active closed"})},
	{name: "beyond the limit and a request after it", send: post("/", "hello!") + ask("GET /read"), h: limited(5), unlike: like(unlike.MaxBytes, sight{wire: tooLarge("5") + plainAnswer("0"), end: "kept", handler: strings.ReplaceAll(helloNote, "5", "6") + "\n" + `"hello" "http: request body too large" [MaxBytesError 5]` + "\n" + `GET "/read" HTTP/1.1 host="h"` + "\n\"\" ok", states: "new active idle active idle active closed"})},
	{name: "beyond the limit, status first", send: post("/", "hello!"), h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(200)
		limited(5)(s, w, r)
	}, unlike: like(unlike.MaxBytes, sight{wire: plainAnswer("5"), end: "kept", states: "new active idle active closed"})},
	{name: "beyond the limit, flushed first", send: post("/", "hello!"), h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		s.flushed(w)
		limited(5)(s, w, r)
	}, unlike: like(unlike.MaxBytes, sight{end: "kept", states: "new active idle active closed"})},
	{name: "a limit through a wrapper", send: post("/", "hello!"), h: func(s *scene, w rw, r *http.Request) {
		limited(5)(s, struct{ http.ResponseWriter }{w}, r)
	}},

	// Full duplex
	{name: "full duplex", do: say(postChunks("/", "2\r\nab\r\n")).hear("2\r\nab\r\n").say("2\r\ncd\r\n").hear("2\r\ncd\r\n").say(lastChunk), h: duplex},
	{name: "full duplex of a length", do: say(ask("POST /", "Content-Length: 4") + "ab").hear("2\r\nab\r\n").say("cd"), h: duplex},
	{name: "full duplex and cut", do: say(postChunks("/", "2\r\nab\r\n")).hear("2\r\nab\r\n").halfClose(), h: duplex, unlike: like(unlike.CutBody, sight{states: "new active closed"})},
	{name: "full duplex and unread", whole: panicsBetween, send: post("/", "hello") + ask("GET /read"), n: 2, h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		s.flushed(w)
	}, unlike: like(unlike.FullDuplex, sight{wire: noChunks + noChunks, end: "kept", handler: helloNote + "\nFlush: ok\n" + `GET "/read" HTTP/1.1 host="h"` + "\nFlush: ok", log: nothing, states: "new active idle active idle active closed"})},
	{name: "full duplex and a bad chunk", send: postChunks("/", "x\r\n") + smuggled, h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		s.flushed(w)
		s.readBody(r)
	}, unlike: like(unlike.FullDuplex, sight{wire: noChunks, end: "fin", handler: chunkedNote + "\nFlush: ok\nbody \"\" " + errChunkNote + ", then 0 " + errChunkNote, states: "new active closed"})},
	{name: "full duplex, unread, and a bad chunk", send: postChunks("/", "x\r\n") + smuggled, h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		s.flushed(w)
	}, unlike: like(unlike.FullDuplex, sight{wire: noChunks, end: "fin", handler: chunkedNote + "\nFlush: ok", states: "new active closed"})},
	{name: "full duplex of a GET", send: ask("GET /"), h: duplex},

	// Deadlines
	{name: "a read deadline that has passed", do: say(ask("POST /", length5)).hear("late").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		s.note("%s", errNote(http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))))
		_, err := r.Body.Read(make([]byte, 5))
		s.note("%s", errNote(err))
		put(w, "late")
	}},
	{name: "a read deadline that has passed and nothing written", do: say(ask("POST /", length5)).hear("\r\n\r\n").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		_, err := r.Body.Read(make([]byte, 5))
		s.note("%s", errNote(err))
	}},
	{name: "the text of a passed deadline", do: say(ask("POST /", length5)).hear("late").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		_, err := r.Body.Read(make([]byte, 5))
		s.note("%s", addresses.ReplaceAllString(err.Error(), "ADDR"))
		put(w, "late")
	}},
	{name: "a read deadline that is moved", do: say(ask("POST /", length5)).reach("moved").say("hello"), h: func(s *scene, w rw, r *http.Request) {
		rc := http.NewResponseController(w)
		rc.SetReadDeadline(time.Unix(1, 0))
		rc.SetReadDeadline(time.Time{})
		s.point("moved")
		s.readBody(r)
	}},
	{name: "a read deadline that ends a read", do: say(ask("POST /", length5) + "he").hear("late").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		s.readSome(r, 2)
		s.spawn(func() { http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) })
		_, err := io.ReadAll(r.Body)
		s.note("%s", errNote(err))
		put(w, "late")
	}},
	{name: "a read deadline of a request without a body", send: ask("GET /") + ask("GET /"), n: 2, h: func(s *scene, w rw, r *http.Request) {
		s.note("%s", errNote(http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Hour))))
		put(w, "a")
	}},
	{name: "a write deadline that has passed", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		rc := http.NewResponseController(w)
		s.note("%s", errNote(rc.SetWriteDeadline(time.Unix(1, 0))))
		s.wrote(w, "held")
		s.note("%s", errNote(rc.Flush()))
		s.note("%s", errNote(rc.Flush()))
	}, unlike: like(unlike.WriteTimeout, sight{end: "reset"})},
	{name: "writes after one that has failed", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
		put(w, "held")
		s.flushed(w)
		s.wrote(w, "more")
		s.wrote(w, string(servertest.Pattern(10_000)))
	}, unlike: like(unlike.WriteError, sight{end: "reset", handler: getNote + "\nFlush: " + lateNote + "\nWrite 4: 0 " + lateNote + "\nWrite 10000: 0 " + lateNote})},
	{name: "a write deadline that has passed and is not noticed", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
		put(w, "lost")
	}, unlike: like(unlike.WriteTimeout, sight{end: "reset"})},
	{name: "a write deadline that is moved", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		rc := http.NewResponseController(w)
		rc.SetWriteDeadline(time.Unix(1, 0))
		rc.SetWriteDeadline(time.Now().Add(time.Hour))
		put(w, "sent")
	}},
	{name: "deadlines end with their request", do: say(ask("GET /")).idle(1).say(ask("GET /read")).idle(2).say(post("/read", "abc")), n: 3, h: func(s *scene, w rw, r *http.Request) {
		if r.URL.Path == "/" {
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
			return
		}
		s.readBody(r)
	}},

	// Forms
	{name: "a form", send: post("/?q=1", "a=1&b=2&a=3", "Content-Type: application/x-www-form-urlencoded"), h: form},
	{name: "a form in chunks", send: postChunks("/?q=1", servertest.Chunks("a=1&b=2&a=3", 3), "Content-Type: application/x-www-form-urlencoded; charset=utf-8"), h: form},
	{name: "a form that is cut", do: say(ask("POST /", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 10") + "a=1").halfClose(), h: form, unlike: like(unlike.CutBody, sight{wire: emptyClosing, states: "new active closed"})},
	{name: "a malformed form", send: post("/", "a=%zz&b=1", "Content-Type: application/x-www-form-urlencoded"), h: form},
	{name: "a form of another type", send: post("/", "a=1", "Content-Type: text/plain"), h: form},
	{name: "a form of no type", send: post("/", "a=1"), h: form},
	{name: "a query with semicolons", send: ask("GET /?a=1;b=2"), h: form},
	{name: "a multipart form", send: post("/", multipartForm, "Content-Type: multipart/form-data; boundary=b"), h: multiform},
	{name: "a multipart form in chunks", send: postChunks("/", servertest.Chunks(multipartForm, 30), "Content-Type: multipart/form-data; boundary=b"), h: multiform},
	{name: "a multipart form without its end", send: post("/", multipartForm[:60], "Content-Type: multipart/form-data; boundary=b"), h: multiform},
	{name: "a multipart form without a boundary", send: post("/", multipartForm, "Content-Type: multipart/form-data"), h: multiform},
}

const (
	chunkedNote = `POST "/" HTTP/1.1 host="h" length=-1 te=["chunked"] body`
	helloNote   = `POST "/" HTTP/1.1 host="h" header=map["Content-Length":["5"]] length=5 body`
	noChunks    = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + lastChunk
	lateNote    = `"write tcp ADDR: i/o timeout" [wraps ErrDeadlineExceeded timeout]`
	// emptyClosing is the response of a handler that writes nothing when the
	// connection cannot continue.
	emptyClosing = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)

// tooLarge is limited's response to a body beyond the limit.
func tooLarge(body string) string {
	return strings.Replace(plainAnswer(body), "200 OK", "413 Request Entity Too Large", 1)
}

const panicsBetween = "net/http panics over its own read if no byte comes meanwhile"

const multipartForm = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\nfile\r\n--b--\r\n"

func form(s *scene, w rw, r *http.Request) {
	err := r.ParseForm()
	s.note("%v %v %s", r.Form, r.PostForm, errNote(err))
}

func multiform(s *scene, w rw, r *http.Request) {
	err := r.ParseMultipartForm(1 << 20)
	s.note("%v %s", r.Form, errNote(err))
	if r.MultipartForm != nil {
		for name, files := range r.MultipartForm.File {
			s.note("%s %s %d", name, files[0].Filename, files[0].Size)
		}
	}
}

// reads reads into size bytes, n times.
func (s *scene) reads(r *http.Request, size, n int) {
	for range n {
		b := make([]byte, size)
		k, err := r.Body.Read(b)
		s.note("%q %s", b[:k], errNote(err))
	}
}

func readsOfThree(s *scene, w rw, r *http.Request) { s.reads(r, 3, 3) }

func decoded(s *scene, w rw, r *http.Request) {
	var v any
	err := json.NewDecoder(r.Body).Decode(&v)
	s.note("%v %s", v, errNote(err))
}

// duplex echoes what it reads as it reads it.
func duplex(s *scene, w rw, r *http.Request) {
	rc := http.NewResponseController(w)
	s.note("%s", errNote(rc.EnableFullDuplex()))
	b := make([]byte, 2)
	for {
		n, err := io.ReadFull(r.Body, b)
		if err != nil {
			s.note("%d %s", n, errNote(err))
			return
		}
		w.Write(b)
		rc.Flush()
	}
}
