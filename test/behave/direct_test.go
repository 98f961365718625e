package behave

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// directWay is a server that can run direct handlers.
type directWay struct {
	name  string
	set   func(s *chert.Server)
	knows bool // ServeDirect is called
}

// directWays returns all of them, net/http's first.
func directWays() (ways []directWay) {
	ways = append(ways, directWay{"nethttp", func(s *chert.Server) { s.Engine = engines.NetHTTP }, false})
	ways = append(ways, directWay{"goroutines", func(s *chert.Server) { s.Engine = chert.EngineGoroutines }, true})
	if sys.HavePoller {
		ways = append(ways,
			directWay{"inline", func(s *chert.Server) { s.Engine, s.Placement = chert.EngineLoops, chert.PlacementInline }, true},
			directWay{"adaptive", func(s *chert.Server) { s.Engine, s.Placement = chert.EngineLoops, chert.PlacementAdaptive }, true},
			directWay{"pooled", func(s *chert.Server) { s.Engine, s.Placement = chert.EngineLoops, chert.PlacementPooled }, false},
			directWay{"slots", func(s *chert.Server) {
				s.Engine, s.Placement, s.MaxHandlers = chert.EngineLoops, chert.PlacementInline, 100
			}, true})
	}
	return ways
}

// eachDirect runs f on chert's ways.
func eachDirect(t *testing.T, f func(t *testing.T, way directWay)) {
	t.Helper()
	for _, w := range directWays()[1:] {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f(t, w)
		})
	}
}

func (w directWay) start(t *testing.T, s *chert.Server) *engines.Server {
	t.Helper()
	w.set(s)
	return engines.Start(t, s)
}

// directMux selects a handler by the first segment of the path, and counts.
type directMux struct {
	handlers        map[string]direct.Handler
	directly, plain atomic.Int64
}

func (m *directMux) find(path string) direct.Handler {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if h := m.handlers[name]; h != nil {
		return h
	}
	return m.handlers[""]
}

func (m *directMux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.plain.Add(1)
	m.find(r.URL.Path).ServeHTTP(w, r)
}

func (m *directMux) ServeDirect(x *direct.Exchange) bool {
	m.directly.Add(1)
	return m.find(string(x.Path())).ServeDirect(x)
}

// directSight describes everything in a request that a direct handler can see.
func directSight(x *direct.Exchange) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from=%s target=%q path=%q query=%q host=%q", x.Method(), x.RemoteAddr(), x.Wire().Target(), x.Path(), x.RawQuery(), x.Host())
	if len(x.Body()) < 200 {
		fmt.Fprintf(&b, " body=%q", x.Body())
	} else {
		fmt.Fprintf(&b, " body=%d %x", len(x.Body()), sum(x.Body()))
	}
	var all []string
	for name, value := range x.Wire().Fields().All() {
		key := http.CanonicalHeaderKey(string(name))
		all = append(all, fmt.Sprintf("%s=%q", key, value))
	}
	slices.Sort(all)
	fmt.Fprintf(&b, " all=%s", all)
	for _, name := range []string{"X-One", "x-one", "Host", "host", "content-LENGTH", "Content-Type", "X-Twice", "x_odd", "X'Odd~", "Connection", "Nowhere", ""} {
		if v := x.RequestHeader(name); v != nil {
			fmt.Fprintf(&b, " %s=%q", name, v)
		}
	}
	return b.String()
}

func sum(b []byte) (n uint32) {
	for _, c := range b {
		n = n*31 + uint32(c)
	}
	return n
}

// directHandlers are handlers of all kinds, by name. file has ten thousand
// bytes; done counts the files that the server has released.
func directHandlers(file *os.File, given, done *atomic.Int64) map[string]direct.Handler {
	m := map[string]direct.Handler{
		"":            direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(directSight(x)) }),
		"empty":       direct.HandlerFunc(func(x *direct.Exchange) {}),
		"emptywrite":  direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(""); x.Write(nil) }),
		"health":      direct.Health(nil),
		"ill":         direct.Health(func() error { return errors.New("secret") }),
		"ready":       direct.NewResponse(200, http.Header{"Content-Type": {"text/x"}, "x-b": {"2", "1"}, "X-A": {"3"}}, []byte("ready")),
		"readysniff":  direct.NewResponse(200, nil, []byte("<html>hello")),
		"readyempty":  direct.NewResponse(200, nil, nil),
		"readylong":   direct.NewResponse(200, nil, servertest.Pattern(70000)),
		"readydate":   direct.NewResponse(404, http.Header{"Date": {"a date"}}, []byte("x")),
		"readylength": direct.NewResponse(200, http.Header{"Content-Length": {"7"}, "content-length": {"8"}}, []byte("x")),
		"readycoded":  direct.NewResponse(200, http.Header{"Content-Encoding": {"br"}}, []byte("x")),
		"types": direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetHeader("Content-Type", "application/json")
			x.WriteString("{}")
		}),
		"sniffed": direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString("<html>hello") }),
		"binary":  direct.HandlerFunc(func(x *direct.Exchange) { x.Write([]byte{0, 1, 2}) }),
		"coded": direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetHeader("Content-Encoding", "gzip")
			x.WriteString("not really")
		}),
		"untyped": direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetHeader("Content-Type", "")
			x.WriteString("no type")
		}),
		"fields": direct.HandlerFunc(func(x *direct.Exchange) {
			x.AddHeader("X-B", "1")
			x.AddHeader("x-a", "2")
			x.AddHeader("X-B", "3")
			x.SetHeader("x-c", "gone")
			x.SetHeader("X-C", "4")
			x.AddHeader("Server", "s")
			x.AddHeader("Set-Cookie", "b=1")
			x.AddHeader("Set-Cookie", "a=2")
			x.SetHeader("X-B0", x.Wire().GetHeader("x-b")+x.Wire().GetHeader("none"))
			x.SetHeader("Zz", "")
			x.WriteString("fields")
		}),
		"odd": direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetHeader("X-Lines", "a\r\nSet-Cookie: b\n\rc")
			x.SetHeader("X-Space", "  in the middle \t")
			x.SetHeader("x_odd!#", "1")
			x.SetHeader("X-High", "\xff\xfe")
			x.WriteString("odd")
		}),
		"date": direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetHeader("date", "Mon, 01 Jan 1990 00:00:00 GMT, so to speak")
			x.WriteString("dated")
		}),
		"length": direct.HandlerFunc(func(x *direct.Exchange) {
			fmt.Fprint(x, x.Wire().Size())
			fmt.Fprint(x, x.Wire().Size(), x.Wire().Status())
		}),
		"sent": direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetStatus(500)
			x.SetHeader("X-Gone", "1")
			x.WriteString("gone")
			x.Send(direct.NewResponse(201, http.Header{"X-There": {"1"}}, []byte("there")))
			x.WriteString("gone too")
			x.SetHeader("X-Gone-Too", "1")
		}),
	}
	for _, n := range []int{1, 2047, 2048, 2049, 4000, 4096, 4097, 8192, 65536, 65537, 200000} {
		m[fmt.Sprint("size", n)] = direct.HandlerFunc(func(x *direct.Exchange) { x.Write(servertest.Pattern(n)) })
	}
	for _, code := range []int{200, 202, 204, 205, 206, 299, 304, 404, 500, 999} {
		m[fmt.Sprint("status", code)] = direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetStatus(code)
			x.SetHeader("X-Status", fmt.Sprint(x.Wire().Status()))
			x.WriteString("body")
		})
		m[fmt.Sprint("typed", code)] = direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetStatus(code)
			x.SetHeader("Content-Type", "text/typed")
			x.WriteString("body")
		})
		m[fmt.Sprint("bare", code)] = direct.HandlerFunc(func(x *direct.Exchange) { x.SetStatus(code) })
		m[fmt.Sprint("ready", code)] = direct.NewResponse(code, http.Header{"X-Status": {"ready"}}, []byte("ready"))
	}
	send := func(name string, offset, n int64, before func(x *direct.Exchange)) {
		m[name] = direct.HandlerFunc(func(x *direct.Exchange) {
			if before != nil {
				before(x)
			}
			given.Add(1)
			x.SendFile(direct.File{File: file, Offset: offset, Len: n, Done: func() { done.Add(1) }})
			x.SetHeader("X-Size", fmt.Sprint(x.Wire().Size()))
		})
	}
	send("file", 0, 10000, nil)
	send("filepart", 5000, 5000, nil)
	send("fileone", 9999, 1, nil)
	send("fileempty", 5000, 0, nil)
	send("filewritten", 10, 20, func(x *direct.Exchange) { x.WriteString("instead") })
	send("file204", 10, 20, func(x *direct.Exchange) { x.SetStatus(204) })
	send("file304", 10, 20, func(x *direct.Exchange) { x.SetStatus(304) })
	send("file206", 10, 20, func(x *direct.Exchange) { x.SetStatus(206); x.SetHeader("Content-Range", "bytes 10-29/10000") })
	send("filetyped", 10, 20, func(x *direct.Exchange) { x.SetHeader("Content-Type", "a/b") })
	send("filesent", 10, 20, func(x *direct.Exchange) { x.Send(direct.NewResponse(200, nil, []byte("no file"))) })
	return m
}

// directTalk sends the client's bytes, whole or in pieces, and FIN, and returns
// all that came back.
func directTalk(ts *engines.Server, s string, size int) string {
	ts.T.Helper()
	c := ts.Dial()
	defer c.Close()
	go func() { // the responses may fill the sockets meanwhile
		defer c.Conn.(*net.TCPConn).CloseWrite()
		for rest := s; len(rest) > 0; {
			k := min(size, len(rest))
			if _, err := io.WriteString(c.Conn, rest[:k]); err != nil {
				return
			}
			rest = rest[k:]
		}
	}()
	got := strings.ReplaceAll(servertest.Undated(c.UpToEnd()), c.LocalAddr().String(), "CLIENT")
	if strings.Contains(got, "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n") {
		return servertest.BeforeRefusal(got) // the text of a refusal is chert's own
	}
	return got
}

// directRun sends the scripts to servers of each way and compares with
// net/http's. It returns the handlers.
func directRun(t *testing.T, scripts []string, pieces func(script string) []int) {
	t.Helper()
	type answerTo struct {
		script string
		size   int
	}
	file := directFile(t)
	var want map[answerTo]string
	for _, way := range directWays() {
		var given, done atomic.Int64
		mux := &directMux{handlers: directHandlers(file, &given, &done)}
		ts := way.start(t, &chert.Server{Handler: mux})
		got := make(map[answerTo]string)
		for _, s := range scripts {
			for _, size := range pieces(s) {
				got[answerTo{s, size}] = directTalk(ts, s, size)
			}
		}
		servertest.Eventually(t, "all files are done with", func() bool { return done.Load() >= given.Load() })
		if n, m := done.Load(), given.Load(); n != m {
			t.Errorf("%s: of %d files, Done was called %d times", way.name, m, n)
		}
		if n := mux.directly.Load(); way.knows != (n > 0) {
			t.Errorf("%s: %d direct calls, %d plain ones", way.name, n, mux.plain.Load())
		}
		if log := ts.Log.String(); log != "" {
			t.Errorf("%s: logged %s", way.name, servertest.Brief(log))
		}
		if want == nil {
			want = got
			continue
		}
		for at, g := range got {
			if w := want[at]; g != w {
				t.Errorf("%s, in pieces of %d: to %s\ngot      %s\nnet/http %s", way.name, at.size, servertest.Brief(at.script), servertest.Brief(g), servertest.Brief(w))
			}
		}
	}
}

func wholeOnly(string) []int { return []int{1 << 30} }

func wholeAndBytes(s string) []int {
	if len(s) > 2000 {
		return []int{1 << 30, len(s)/100 + 1}
	}
	return []int{1 << 30, 1}
}

// The two ways give the same bytes, whatever the handler does.
func TestDirectAnswers(t *testing.T) {
	t.Parallel()
	var given, done atomic.Int64
	var scripts []string
	for name := range directHandlers(nil, &given, &done) {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			line := method + " /" + name
			scripts = append(scripts, ask(line)+ask("GET /after"), ask(line, "Connection: close")+ask("GET /never"), ask10(line))
		}
	}
	slices.Sort(scripts)
	directRun(t, scripts, wholeOnly)
}

// A handler sees the same request on all ways.
func TestDirectRequests(t *testing.T) {
	t.Parallel()
	body := string(servertest.Pattern(5000))
	full, over := string(servertest.Pattern(64<<10)), string(servertest.Pattern(64<<10+1))
	scripts := []string{
		ask("GET /"), ask("GET /?"), ask("GET /?a=b&c=%20+"), ask("GET /a%20b%2Fc?d"), ask("GET /%41%zz"), ask("GET /a//b/../c"), ask("GET //h/p"),
		ask("GET /a;b=c,d:e@f"), ask("GET /\"quoted\"?\"q\""), ask("GET /a?b?c/d#e"), ask("GET /\xc3\xa4?\xc3\xa4"),
		ask("GET http://other/abs?q"), ask("GET http://other"), ask("OPTIONS *"), ask("GET *"), ask("OPTIONS /"), ask("TRACE /"), ask("M-SEARCH /"), ask("CONNECT h:1"),
		ask("DELETE /"), ask("PUT /"), ask("get /"), ask("HEAD /"),
		ask10("GET /"), ask10("GET /", "Connection: keep-alive") + ask10("GET /"), "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / HTTP/1.1\r\nhOST: h:80\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		ask("GET /", "Connection: close") + ask("GET /"), ask("GET /", "Connection: keep-alive, X-One", "X-One: 1"), ask("GET /", "connection: CLOSE"),
		ask("GET /", "Connection: upgrade", "Upgrade: other") + ask("GET /"), ask("GET /", "Upgrade: h2c"),
		ask("GET /", "X-One: 1", "X-Twice: 1", "x-twice: 2", "X-One: 2"), ask("GET /", "x_odd: 1", "x'ODD~: 2", "X'odd~:3"),
		ask("GET /", "X-One:  \t spaced out \t "), ask("GET /", "X-One: \xe4\xff"), ask("GET /", "Cookie: a=b", "Cookie: c=d", "Accept: */*", "User-Agent: me"),
		ask("GET /", "Trailer: X-One"), ask("GET /", "TE: trailers"), ask("GET /", "Content-Length: 0"), ask("POST /"), ask("POST /", "Content-Type: text/plain"),
		ask("POST /", "Content-Length: 3", "Content-Length: 4") + "abcd", ask("POST /", "Content-Length: 3, 3") + "abc", ask("POST /", "Content-Length: +3") + "abc",
		post("/", "hello") + post("/b", "again"), post("/", "hello", "X-One: 1", "Connection: close") + ask("GET /"), "HEAD / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello" + ask("GET /"),
		post("/empty", "unread") + ask("GET /after"), post("/ready", "unread") + ask("GET /after"), post("/health", "unread") + ask("GET /after"),
		post("/", body) + ask("GET /after"), post("/ready", body) + ask("GET /after"), post("/size4097", body) + ask("GET /after"),
		post("/", full) + ask("GET /after"), post("/", over) + ask("GET /after"), post("/ready", over) + ask("GET /after"), post("/file", full) + ask("HEAD /file"),
		postChunks("/", servertest.Chunks("hello", 2)) + ask("GET /after"), postChunks("/", servertest.Chunks(full, 1000)) + ask("GET /after"), postChunks("/", servertest.Chunks(over, 1000)) + ask("GET /after"), postChunks("/", "x\r\n"),
		post("/", "hello", "Expect: 100-continue") + ask("GET /after"), post("/ready", "hello", "Expect: 100-continue", "Connection: close"), ask("GET /", "Expect: something"),
		post("/", "too short for its length")[:60], ask("POST /", "Content-Length: 10") + "short",
		strings.Repeat(ask("GET /16?q", "X-One: 1"), 16), strings.Repeat(post("/16", "hello"), 16) + strings.Repeat(ask("GET /ready"), 16),
		ask("GET /", "Upgrade: x", "Connection: upgrade") + ask("GET /ready") + post("/", "1") + postChunks("/", servertest.Chunks("hello", 5)) + ask("GET /ready") + ask("HEAD /file") + ask("GET /file") + ask("GET /", "Expect: 100-continue") + ask("GET /size65536") + post("/", "2"),
		strings.Repeat(ask("GET /size200000")+ask("GET /file")+ask("GET /ready"), 3), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.2\r\nHost: h\r\n\r\n", "nonsense\r\n\r\n",
	}
	directRun(t, scripts, wholeAndBytes)
}

// directFunc has a function for each way.
type directFunc struct {
	direct func(x *direct.Exchange) bool
	plain  http.HandlerFunc
}

func (d directFunc) ServeDirect(x *direct.Exchange) bool              { return d.direct(x) }
func (d directFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.plain(w, r) }

func TestDirectPanic(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				x.WriteString("never seen")
				switch string(x.Path()) {
				case "/panic":
					panic("boom")
				case "/nil":
					var p *direct.Response
					p.Wire().Status()
				case "/abort":
					panic(http.ErrAbortHandler)
				case "/goexit":
					runtime.Goexit()
				case "/goexit-panic":
					defer panic("boom")
					runtime.Goexit()
				case "/status":
					x.SetStatus(199)
				case "/status1000":
					x.SetStatus(1000)
				case "/framing":
					x.SetHeader("content-length", "1")
				case "/name":
					x.AddHeader("no name", "1")
				case "/noname":
					x.SetHeader("", "1")
				}
			})})
			for _, tt := range []struct{ path, log string }{
				{"/panic", "boom"}, {"/abort", ""}, {"/goexit", ""}, {"/goexit-panic", "boom"}, {"/nil", "nil pointer"},
				{"/status", "direct: SetStatus of 199"}, {"/status1000", "direct: SetStatus of 1000"},
				{"/framing", "direct: the field Content-Length is set by the server"},
				{"/name", `direct: "no name" is no field name`}, {"/noname", `direct: "" is no field name`},
			} {
				for _, before := range []string{"", ask("GET /fine"), ask("GET /fine", "Upgrade: x", "Connection: upgrade")} {
					ts.Log.Reset()
					c := ts.Dial()
					c.Send(before + ask("GET "+tt.path) + ask("GET /fine"))
					want := 0
					if before != "" {
						want = 1
					}
					if got := c.UpToEnd(); strings.Count(got, "HTTP/1.1") != want || strings.Count(got, "never seen") != want {
						t.Errorf("%s: got %q", tt.path, got)
					}
					// The client may see the end before the log has the reason.
					servertest.Eventually(t, "the panic is logged", func() bool { return tt.log == "" || ts.Log.String() != "" })
					line, stack, _ := strings.Cut(ts.Log.String(), "\n")
					if tt.log == "" && line != "" || tt.log != "" && (!strings.HasPrefix(line, "http: panic serving "+c.LocalAddr().String()+": ") || !strings.Contains(line, tt.log) || !strings.Contains(stack, "behave/direct_test.go")) {
						t.Errorf("%s: logged %s", tt.path, servertest.Brief(line))
					}
				}
			}
			if _, body := ts.Dial().Get("/fine"); body != "never seen" {
				t.Errorf("got %q", body)
			}
		})
	}
}

// A direct handler may leave a request to the ordinary path, which receives it
// whole.
func TestDirectDeclined(t *testing.T) {
	t.Parallel()
	eachDirect(t, func(t *testing.T, way directWay) {
		release := make(chan struct{})
		running := make(chan struct{}, 1000)
		var directly atomic.Int64
		ts := way.start(t, &chert.Server{Handler: directFunc{
			func(x *direct.Exchange) bool {
				directly.Add(1)
				if string(x.Path()) == "/direct" {
					x.WriteString("direct")
					return true
				}
				return false
			},
			func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if r.URL.Path == "/slow" {
					running <- struct{}{}
					<-release
				}
				if r.URL.Path == "/direct" { // where ServeDirect is not called
					put(w, "direct")
					return
				}
				fmt.Fprintf(w, "%s %s %q %q", r.Method, r.RequestURI, b, r.Header["X-One"])
			},
		}})
		script := post("/a", "hello", "X-One: 1") + ask("GET /direct") + post("/b?c", "again") + ask("GET /d") + ask("GET /direct") + postChunks("/e", servertest.Chunks("chunks", 2)) + ask("GET /last", "Connection: close")
		for _, size := range []int{len(script), 1, 7} {
			c := ts.Dial()
			c.SendSlowly(script, size)
			for _, want := range []string{`POST /a "hello" ["1"]`, "direct", `POST /b?c "again" []`, `GET /d "" []`, "direct", `POST /e "chunks" []`, `GET /last "" []`} {
				if _, body := c.Response("POST"); body != want {
					t.Errorf("got %q, want %q", body, want)
				}
			}
			c.Ended()
		}
		if way.knows != (directly.Load() > 0) {
			t.Errorf("%d direct calls", directly.Load())
		}
		// Slow ones on all loops leave them to the others.
		var slow []*servertest.Client
		for range 8 * runtime.GOMAXPROCS(0) {
			c := ts.Dial()
			c.Send(post("/slow", "body"))
			servertest.Await(t, running, "a slow handler")
			slow = append(slow, c)
			if _, body := ts.Dial().Get("/direct"); body != "direct" {
				t.Errorf("got %q", body)
			}
		}
		close(release)
		for _, c := range slow {
			if _, body := c.Response("POST"); body != `POST /slow "body" []` {
				t.Errorf("got %q", body)
			}
		}
	})
}

// The time of a direct request whose head came in parts does not count for a later one.
func TestDirectReadTimeout(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const limit = 2 * time.Second // for a busy machine, too
		s := engines.Start(t, &chert.Server{Engine: e, ReadTimeout: limit, IdleTimeout: time.Minute, Handler: directFunc{
			func(x *direct.Exchange) bool { return string(x.Path()) == "/direct" },
			func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				put(w, fmt.Sprint(string(b), err))
			},
		}})
		c := s.Dial()
		c.Send("GET /direct HT")
		servertest.Eventually(t, "a part of the head has come", func() bool { return s.Stats().BytesRead > 0 })
		c.Send("TP/1.1\r\nHost: h\r\n\r\n")
		c.Status(200)
		time.Sleep(limit + limit/10) // it is the time that counts
		before := s.Stats().BytesRead
		c.Send("POST /plain HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n")
		servertest.Eventually(t, "the head has come", func() bool { return s.Stats().BytesRead > before })
		c.Send("body")
		if got := c.Status(200); got != "body<nil>" {
			t.Errorf("got %q", got)
		}
	})
}
