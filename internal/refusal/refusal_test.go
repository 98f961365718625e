package refusal

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

func TestProblemJSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		p    Problem
		want string
	}{
		{Problem{Title: "Unauthorized", Status: 401}, `{"title":"Unauthorized","status":401}`},                                       // about:blank is left out
		{Problem{Type: "t:x", Title: "Too many", Status: 429}, `{"type":"t:x","title":"Too many","status":429}`},                     //
		{Problem{Title: "a", Status: 429, Violated: []string{"b", "c"}}, `{"title":"a","status":429,"violated-policies":["b","c"]}`}, //
		{Problem{Title: "\"\n\x00\xff", Status: 400}, `{"title":"\"\n\u0000\ufffd","status":400}`},                                   // valid whatever the text
		{Problem{Title: "<script>", Status: 400, Violated: []string{}}, `{"title":"\u003cscript\u003e","status":400}`},               // harmless as HTML too
	} {
		if got := string(tt.p.JSON()); got != tt.want+"\n" {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// hookedWriter is a writer with a hook, as middleware.Problems has it.
type hookedWriter struct {
	http.ResponseWriter
	hook *Hook
}

func (w hookedWriter) RefusalHook() *Hook          { return w.hook }
func (w hookedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// wrapper is another middleware's, opaque one that says nothing of what is inside.
type (
	wrapper struct{ http.ResponseWriter }
	opaque  struct{ http.ResponseWriter }
)

func (w wrapper) Unwrap() http.ResponseWriter                  { return w.ResponseWriter }
func (w wrapper) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

func TestAround(t *testing.T) {
	t.Parallel()
	respond := func(*Problem, http.Header) []byte { return nil }
	one, two := NewHook(respond), NewHook(respond)
	rec := httptest.NewRecorder()
	for _, tt := range []struct {
		name string
		w    http.ResponseWriter
		want *Hook
	}{
		{"none", rec, nil},
		{"none below others", wrapper{wrapper{rec}}, nil},
		{"next", hookedWriter{rec, one}, one},
		{"below others", wrapper{wrapper{hookedWriter{rec, one}}}, one},
		{"the inner of two", wrapper{hookedWriter{wrapper{hookedWriter{rec, one}}, two}}, two},
		{"hidden", opaque{hookedWriter{rec, one}}, nil},
		{"a writer of nothing", wrapper{nil}, nil},
		{"switched off inside", hookedWriter{hookedWriter{rec, one}, nil}, nil},
	} {
		if got := Around(tt.w); got != tt.want {
			t.Errorf("%s: got %p, want %p", tt.name, got, tt.want)
		}
	}
}

// Set gives back what was, so that the middleware can leave it as it found it.
func TestSet(t *testing.T) {
	t.Parallel()
	respond := func(*Problem, http.Header) []byte { return nil }
	one, two := NewHook(respond), NewHook(respond)
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: "GET"})
	if got := In(&x); got != nil {
		t.Errorf("a new exchange has %p", got)
	}
	first := Set(&x, one)
	second := Set(&x, two)
	if first != nil || second != one || In(&x) != two {
		t.Errorf("got %p, %p, %p", first, second, In(&x))
	}
	Set(&x, second)
	if In(&x) != one {
		t.Error("the first hook is not there again")
	}
	Set(&x, first)
	if In(&x) != nil {
		t.Error("there is a hook yet")
	}
	Set(&x, one)
	x.Wire().Reset(wire.Request{Method: "GET"})
	if In(&x) != nil {
		t.Error("the next request has the hook of the last")
	}
}

// answers are those of Plain and of Direct for a request of method, which must be
// alike.
func answers(t *testing.T, k *Hook, method string, refused *direct.Response) (status int, h http.Header, body string) {
	t.Helper()
	rec := httptest.NewRecorder()
	var w http.ResponseWriter = rec
	if k != nil {
		w = hookedWriter{rec, k}
	}
	Plain(w, httptest.NewRequest(method, "/", nil), refused)

	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: method})
	if k != nil {
		Set(&x, k)
	}
	Direct(&x, refused)
	a := x.Wire().Finish()
	fields := http.Header{}
	for _, f := range a.Fields {
		fields.Add(f.Name, f.Value)
	}
	if a.Status != rec.Code || fmt.Sprint(fields) != fmt.Sprint(rec.Header()) || method != "HEAD" && string(a.Body) != rec.Body.String() {
		t.Errorf("direct %d %v %q, plain %d %v %q", a.Status, fields, a.Body, rec.Code, rec.Header(), rec.Body)
	}
	return rec.Code, rec.Header(), rec.Body.String()
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	refused := direct.NewResponse(401, http.Header{
		"Content-Type": {"text/plain"}, "Www-Authenticate": {`Bearer realm="a"`, `Basic realm="b"`},
	}, []byte("no\n"))
	json := func(p *Problem, h http.Header) []byte {
		h.Set("Content-Type", "application/problem+json")
		return p.JSON()
	}
	const problem = `{"title":"Unauthorized","status":401}` + "\n"
	for _, tt := range []struct {
		name    string
		respond func(p *Problem, h http.Header) []byte
		method  string
		header  string // fields without Content-Length
		body    string
	}{
		{"no hook", nil, "GET", `map[Content-Type:[text/plain] Www-Authenticate:[Bearer realm="a" Basic realm="b"]]`, "no\n"},
		{"no hook, HEAD", nil, "HEAD", `map[Content-Type:[text/plain] Www-Authenticate:[Bearer realm="a" Basic realm="b"]]`, ""},
		{"hook", json, "GET", `map[Content-Type:[application/problem+json] Www-Authenticate:[Bearer realm="a" Basic realm="b"]]`, problem},
		{"hook, HEAD", json, "HEAD", `map[Content-Type:[application/problem+json] Www-Authenticate:[Bearer realm="a" Basic realm="b"]]`, ""},
		{"fields taken away and added", func(p *Problem, h http.Header) []byte {
			h.Del("Www-Authenticate")
			h["x-own"] = []string{"1", "2"}
			return []byte("own")
		}, "GET", `map[Content-Type:[text/plain] X-Own:[1 2]]`, "own"},
		{"no body", func(_ *Problem, h http.Header) []byte { clear(h); return nil }, "GET", `map[]`, ""},
		// These are the server's. Package direct would panic, in the face of a client.
		{"fields that frame", func(p *Problem, h http.Header) []byte {
			clear(h)
			for _, name := range []string{"Connection", "content-length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"} {
				h[name] = []string{"1"}
			}
			return []byte("own")
		}, "GET", `map[Content-Type:[text/plain; charset=utf-8]]`, "own"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var k *Hook
			if tt.respond != nil {
				k = NewHook(tt.respond)
			}
			for range 2 { // the second from what was kept
				status, h, body := answers(t, k, tt.method, refused)
				length := h.Get("Content-Length")
				h.Del("Content-Length")
				if got := fmt.Sprint(h); status != 401 || got != tt.header || body != tt.body {
					t.Errorf("got %d %s %q, want %s %q", status, got, body, tt.header, tt.body)
				}
				if tt.method == "GET" && length != fmt.Sprint(len(body)) {
					t.Errorf("Content-Length %s of %q", length, body)
				}
			}
		})
	}
}

// A hook is asked once for each Response, and another one makes its own of it. What
// it does to the fields stays with its answer.
func TestKept(t *testing.T) {
	t.Parallel()
	refused := direct.NewResponse(403, http.Header{"X-Seen": {"0"}}, []byte("no"))
	var calls atomic.Int32
	count := func(p *Problem, h http.Header) []byte {
		if seen := h.Get("X-Seen"); seen != "0" || h.Get("Content-Length") != "" {
			t.Errorf("the hook has seen %v", h)
		}
		h.Set("X-Seen", "1")
		return fmt.Append(nil, calls.Add(1))
	}
	one, two := NewHook(count), NewHook(count)
	for range 3 {
		if _, _, body := answers(t, one, "GET", refused); body != "1" {
			t.Errorf("one: %q", body)
		}
		if _, _, body := answers(t, two, "GET", refused); body != "2" {
			t.Errorf("two: %q", body)
		}
		if _, h, body := answers(t, nil, "GET", refused); body != "no" || h.Get("X-Seen") != "0" {
			t.Errorf("without a hook: %v %q", h, body)
		}
	}
	// What is made for one request is made each time.
	for i := range 2 {
		h := http.Header{"X-Seen": {"0"}}
		if body := string(one.Body(&Problem{}, h)); body != fmt.Sprint(3+i) || h.Get("X-Seen") != "1" {
			t.Errorf("for one request: %q %v", body, h)
		}
	}
}

// All requests that come at the same time get the same answer.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	refused := direct.NewResponse(403, nil, []byte("no"))
	var calls atomic.Int32
	k := NewHook(func(*Problem, http.Header) []byte { return fmt.Append(nil, calls.Add(1)) })
	var mu sync.Mutex
	bodies := map[string]bool{}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				rec := httptest.NewRecorder()
				Plain(hookedWriter{rec, k}, httptest.NewRequest("GET", "/", nil), refused)
				mu.Lock()
				bodies[strings.Clone(rec.Body.String())] = true
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if len(bodies) != 1 {
		t.Errorf("the answers are %v", bodies)
	}
}
