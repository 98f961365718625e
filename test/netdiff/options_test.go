package netdiff

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffOptions(t *testing.T) { diffRun(t, diffOptions) }

func noKeepAlives(s *chert.Server) { s.SetKeepAlivesEnabled(false) }

func headBytes(n int) func(*chert.Server) { return func(s *chert.Server) { s.MaxHeaderBytes = n } }

// shortly is a time limit that a test waits for. Within it only the client's
// bytes have to arrive.
const shortly = 2 * time.Second

// shutDown shuts the server down and calls f when that has begun.
func shutDown(f func(s *scene, w rw)) diffHandler {
	return func(s *scene, w rw, r *http.Request) {
		s.ctl.RegisterOnShutdown(func() { s.point("down") })
		s.spawn(func() { s.note("Shutdown: %s", errNote(s.ctl.Shutdown(context.Background()))) })
		s.await("Shutdown has begun", func() bool { return s.gates["down"] > 0 })
		f(s, w)
	}
}

var headLate = refusalOf(408, "the request's head did not come in time")

var diffOptions = []diffCase{
	{name: "OPTIONS for the handler", send: ask("OPTIONS *"), set: func(s *chert.Server) { s.DisableGeneralOptionsHandler = true }},
	{name: "OPTIONS for the handler, with a body", send: ask("OPTIONS *", "Content-Length: 3") + "abc", set: func(s *chert.Server) { s.DisableGeneralOptionsHandler = true }},

	{name: "no keep-alives", send: ask("GET /"), set: noKeepAlives},
	{name: "no keep-alives and a 204", send: ask("GET /status/204"), set: noKeepAlives},
	{name: "no keep-alives and chunks", send: ask("GET /flushed"), set: noKeepAlives},
	{name: "no keep-alives and the client wants them", send: ask("GET /", keepAlive), set: noKeepAlives},
	{name: "no keep-alives and the handler wants them", send: ask("GET /keep-header"), set: noKeepAlives},
	{name: "no keep-alives and the handler closes", send: ask("GET /close-header"), set: noKeepAlives},
	{name: "no keep-alives and 1.0", send: ask10("GET /", keepAlive), set: noKeepAlives},
	{name: "no keep-alives and the handler wants them for 1.0", send: ask10("GET /keep-header", keepAlive), set: noKeepAlives},
	{name: "no keep-alives and a body", send: post("/read", "abc"), set: noKeepAlives},
	{name: "no keep-alives and an unread body", send: post("/unread", "abc"), set: noKeepAlives},
	{name: "no keep-alives and HEAD", send: ask("HEAD /"), set: noKeepAlives},
	{name: "no keep-alives and hints", send: ask("GET /hints"), set: noKeepAlives},
	{name: "no keep-alives and an upgrade", send: ask("GET /"), set: noKeepAlives, h: func(s *scene, w rw, r *http.Request) {
		set(w, "Connection", "Upgrade")
		set(w, "Upgrade", "x")
		w.WriteHeader(101)
	}},
	{name: "no keep-alives, and nothing after the first is served", send: ask("GET /") + ask("GET /quiet"), set: noKeepAlives},
	{name: "no keep-alives and a list of the handler", send: ask("GET /"), set: noKeepAlives, h: func(s *scene, w rw, r *http.Request) { set(w, "Connection", "x, close"); put(w, "a") }},

	{name: "a head within its limit", send: ask("GET /", "A: "+strings.Repeat("a", 900)), set: headBytes(1000)},
	{name: "a body is not in the head's limit", send: post("/read", string(servertest.Pattern(9000))), set: headBytes(1000)},
	{name: "a chunked body is not in the head's limit", send: postChunks("/read", servertest.Chunks(string(servertest.Pattern(9000)), 3000)), set: headBytes(1000)},
	{name: "two heads within their limits", send: ask("GET /", "A: "+strings.Repeat("a", 900)) + ask("GET /", "A: "+strings.Repeat("a", 900)), n: 2, set: headBytes(1000)},
	{name: "a negative limit is no limit", send: ask("GET /", "A: "+strings.Repeat("a", 70_000)), set: headBytes(-1)},
	{name: "a head a little beyond its limit", send: ask("GET /", "A: "+strings.Repeat("a", 1500)), set: headBytes(1000), unlike: refused(unlike.HeadLimits, 431, "header section too long")},
	{name: "a head far beyond its limit", send: ask("GET /", "A: "+strings.Repeat("a", 9000)), set: headBytes(1000), unlike: otherWords(431, "header section too long")},
	{name: "a target far beyond the limit", send: ask("GET /" + strings.Repeat("a", 9000)), set: headBytes(1000), unlike: like(unlike.HeadLimits, sight{wire: refusalOf(414, "request line too long")})},
	{name: "many fields beyond the limit", send: ask("GET /", strings.Split(strings.Repeat("A: aaaaaaaaaaaaaaaaaaaa\n", 99)+"B: b", "\n")...), set: headBytes(1000), unlike: refused(unlike.HeadLimits, 431, "header section too long")},
	{name: "a head that never ends", send: "GET / HTTP/1.1\r\n" + strings.Repeat("A: a\r\n", 2000), set: headBytes(1000), unlike: otherWords(431, "too many fields")},
	{name: "a line that never ends", send: "GET /" + strings.Repeat("a", 9000), set: headBytes(1000), unlike: like(unlike.HeadLimits, sight{wire: refusalOf(414, "request line too long")})},
	{name: "a head beyond the default", send: ask("GET /", "A: "+strings.Repeat("a", 70_000)), unlike: refused(unlike.HeadLimits, 431, "header section too long")},
	{name: "a target beyond the default", send: ask("GET /" + strings.Repeat("a", 70_000)), unlike: like(unlike.HeadLimits, sight{
		wire: refusalOf(414, "request line too long"), end: "fin", handler: nothing, states: "new active closed"})},
	{name: "a head beyond the limit, after a request", do: say(ask("GET /")).idle(1).say(ask("GET /", "A: "+strings.Repeat("a", 30_000))), n: 2, set: headBytes(1000), unlike: like(unlike.RefusalText, sight{wire: plainAnswer("hello") + refusalOf(431, "header section too long")})},

	{name: "times that do not pass", send: ask("GET /") + post("/read", "abc"), n: 2, set: func(s *chert.Server) {
		s.ReadTimeout, s.ReadHeaderTimeout, s.WriteTimeout, s.IdleTimeout = time.Hour, time.Hour, time.Hour, time.Hour
	}},
	{name: "negative times are none", send: ask("GET /") + post("/read", "abc"), n: 2, set: func(s *chert.Server) {
		s.ReadTimeout, s.ReadHeaderTimeout, s.WriteTimeout, s.IdleTimeout = -1, -1, -1, -1
	}},
	{name: "half a head in time", do: say("GET / HTTP/1.1\r\nHost: h\r\n").hearEnd(), set: func(s *chert.Server) { s.ReadHeaderTimeout = shortly }, unlike: like(unlike.HeadTimeout, sight{wire: headLate})},
	{name: "half a head in the time of the whole", do: say("GET / HTTP/1.1\r\nHost: h\r\n").hearEnd(), set: func(s *chert.Server) { s.ReadTimeout = shortly }, unlike: like(unlike.HeadTimeout, sight{wire: headLate})},
	{name: "nothing in time", do: diffScript{}.hearEnd(), set: func(s *chert.Server) { s.ReadHeaderTimeout = shortly }},
	{name: "half a second head in time", do: say(ask("GET /")).idle(1).say("GET / HT").hearEnd(), set: func(s *chert.Server) { s.ReadHeaderTimeout = shortly }, unlike: like(unlike.HeadTimeout, sight{wire: plainAnswer("hello") + headLate, states: activeAgain})},
	{name: "idle for too long", do: say(ask("GET /")).idle(1).hearEnd(), set: func(s *chert.Server) { s.IdleTimeout = shortly }},
	{name: "idle for too long by ReadTimeout", do: say(ask("GET /")).idle(1).hearEnd(), set: func(s *chert.Server) { s.ReadTimeout = shortly }},
	{name: "half a body in time", do: say(ask("POST /read", length5) + "he").hearEnd(), set: func(s *chert.Server) { s.ReadTimeout = shortly }},
	{name: "half a body in time and nothing written", do: say(ask("POST /", length5) + "he").hearEnd(), set: func(s *chert.Server) { s.ReadTimeout = shortly }, h: func(s *scene, w rw, r *http.Request) { s.readBody(r) }, unlike: like(unlike.BodyRefusal, sight{wire: strings.Replace(emptyClosing, "200 OK", "408 Request Timeout", 1)})},
	{name: "half an unread body in time", do: say(ask("POST /unread", length5) + "he").hearEnd(), set: func(s *chert.Server) { s.ReadTimeout = shortly }},
	{name: "a response that comes too late", do: say(ask("GET /")).hearEnd(), set: func(s *chert.Server) { s.WriteTimeout = shortly }, h: func(s *scene, w rw, r *http.Request) {
		time.Sleep(shortly + shortly/4) // the limit is what it waits for
		s.wrote(w, "late")
		s.note("flush: %s", errNote(http.NewResponseController(w).Flush()))
	}, unlike: like(unlike.WriteTimeout, sight{end: "reset"})},

	{name: "keep-alives end while it is served", h: func(s *scene, w rw, r *http.Request) {
		s.ctl.SetKeepAlivesEnabled(false)
		put(w, "a")
	}},
	{name: "keep-alives end after the head", send: ask("GET /") + ask("GET /quiet"), h: func(s *scene, w rw, r *http.Request) {
		s.flushed(w)
		s.ctl.SetKeepAlivesEnabled(false)
		put(w, "a")
	}},
	{name: "Shutdown while it is served", send: ask("GET /") + ask("GET /quiet"), h: shutDown(func(s *scene, w rw) { put(w, "a") })},
	{name: "Shutdown after the head", send: ask("GET /") + ask("GET /quiet"), h: func(s *scene, w rw, r *http.Request) {
		s.flushed(w)
		shutDown(func(s *scene, w rw) { put(w, "a") })(s, w, r)
	}},
	{name: "Shutdown and a hijack", send: ask("GET /"), h: shutDown(func(s *scene, w rw) {
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { put(nc, "hi") })(s, w, nil)
	})},
	{name: "Shutdown while the body comes", do: say(ask("POST /", length5) + "he").reach("down").say("llo"), h: func(s *scene, w rw, r *http.Request) {
		s.readSome(r, 2)
		shutDown(func(s *scene, w rw) { s.readBody(r) })(s, w, r)
	}},
	{name: "Close while it is served", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		done := r.Context().Done()
		s.note("Close: %s", errNote(s.ctl.Close()))
		servertest.Await(s.t, done, "the context is done")
		s.note("%v", r.Context().Err())
		put(w, "a")
		s.note("closed %v", errors.Is(http.NewResponseController(w).Flush(), net.ErrClosed))
	}},
	{name: "Close while the body comes", do: say(ask("POST /", length5) + "he"), h: func(s *scene, w rw, r *http.Request) {
		s.readSome(r, 2)
		s.note("Close: %s", errNote(s.ctl.Close()))
		_, err := r.Body.Read(make([]byte, 3))
		s.note("closed %v, %v", errors.Is(err, net.ErrClosed), r.Context().Err())
	}},

	{name: "the connection that ConnContext is shown", send: ask("GET /"), set: func(s *chert.Server) {
		s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, ctxKey("conn"), c)
		}
	}, h: func(s *scene, w rw, r *http.Request) {
		c := r.Context().Value(ctxKey("conn")).(net.Conn)
		s.note("%T %v %v", c, c.RemoteAddr().String() == r.RemoteAddr, c.LocalAddr() != nil)
	}, unlike: &unlikeness{unlike.HookConn, chert.EngineLoops, sight{handler: getNote + "\nconn.hookConn true true"}}},
	{name: "a context for each connection", send: ask("GET /") + ask("GET /"), n: 2, set: func(s *chert.Server) {
		s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, ctxKey("conn"), new(int))
		}
	}, h: func(s *scene, w rw, r *http.Request) {
		n := r.Context().Value(ctxKey("conn")).(*int)
		*n++
		s.note("%d", *n)
	}},
}
