package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/router"
)

// recorder returns a provider that samples all and what it has recorded.
func recorder(o ...sdk.TracerProviderOption) (*sdk.TracerProvider, *tracetest.SpanRecorder) {
	rec := tracetest.NewSpanRecorder()
	return sdk.NewTracerProvider(append(o, sdk.WithSpanProcessor(rec))...), rec
}

// ended waits for n spans.
func ended(t *testing.T, rec *tracetest.SpanRecorder, n int) []sdk.ReadOnlySpan {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(rec.Ended()) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d spans, want %d", len(rec.Ended()), n)
		}
	}
	return rec.Ended()
}

// servers runs f on net/http and on chert.
func servers(t *testing.T, f func(t *testing.T, start func(h http.Handler) (url string, c *http.Client))) {
	t.Run("net/http", func(t *testing.T) {
		t.Parallel()
		f(t, func(h http.Handler) (string, *http.Client) {
			s := httptest.NewUnstartedServer(h)
			s.Config.ErrorLog = nil
			s.Start()
			t.Cleanup(s.Close)
			return s.URL, s.Client()
		})
	})
	t.Run("chert", func(t *testing.T) {
		t.Parallel()
		f(t, func(h http.Handler) (string, *http.Client) {
			s := chertest.NewServer(h)
			t.Cleanup(s.Close)
			return s.URL, s.Client()
		})
	})
}

func attr(s sdk.ReadOnlySpan, key string) string {
	for _, a := range s.Attributes() {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func events(s sdk.ReadOnlySpan) (names []string) {
	for _, e := range s.Events() {
		names = append(names, e.Name)
	}
	return names
}

func get(t *testing.T, c *http.Client, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	return do(t, c, "GET", url, fields...)
}

func do(t *testing.T, c *http.Client, method, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		return nil, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp, string(b)
}

// A span has the name of the route, the attributes of the conventions, and the
// client's as parent.
func TestSpan(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, start func(http.Handler) (string, *http.Client)) {
		tp, rec := recorder()
		mux := http.NewServeMux()
		var inside trace.SpanContext
		mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
			inside = SpanOf(r.Context()).SpanContext()
			io.WriteString(w, "hello")
		})
		url, c := start(New(&Options{TracerProvider: tp, Query: true, Respond: true})(mux))
		resp, _ := get(t, c, url+"/users/7?a=b", "Traceparent", valid01, "Tracestate", "v=1", "User-Agent", "test\xff")
		s := ended(t, rec, 1)[0]
		if s.Name() != "GET /users/{id}" || s.SpanKind() != trace.SpanKindServer || s.Status().Code != codes.Unset {
			t.Errorf("%q %v %v", s.Name(), s.SpanKind(), s.Status())
		}
		if p := s.Parent(); p.TraceID().String() != traceHex || p.SpanID().String() != spanHex || !p.IsRemote() || p.TraceState().String() != "v=1" {
			t.Errorf("parent %v", p)
		}
		if !inside.Equal(s.SpanContext()) || inside.TraceID().String() != traceHex {
			t.Errorf("the handler sees %v, not %v", inside, s.SpanContext())
		}
		if got, want := resp.Header.Get("Traceresponse"), "00-"+traceHex+"-"+s.SpanContext().SpanID().String()+"-01"; got != want {
			t.Errorf("traceresponse %q, want %q", got, want)
		}
		host, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
		for key, want := range map[string]string{
			"http.request.method": "GET", "http.route": "/users/{id}", "http.response.status_code": "200", "http.response.body.size": "5",
			"url.path": "/users/7", "url.query": "a=b", "url.scheme": "http", "server.address": host, "server.port": port,
			"network.protocol.version": "1.1", "client.address": "127.0.0.1", "user_agent.original": "test\ufffd", "error.type": "",
			"http.request.body.size": "",
		} {
			if got := attr(s, key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		if got := fmt.Sprint(events(s)); got != "[handler.start handler.end]" {
			t.Error(got)
		}
		if e := s.Events(); e[0].Time.Before(s.StartTime()) || e[1].Time.Before(e[0].Time) || s.EndTime().Before(e[1].Time) {
			t.Errorf("events are out of order: %v, %v, %v", s.StartTime(), e, s.EndTime())
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	tp, rec := recorder()
	r := router.New()
	ok := func(http.ResponseWriter, *http.Request) {}
	r.HandleFunc("GET /a/{id}", ok)
	r.HandleFunc("/any", ok)
	r.HandleFunc("example.org/host", ok)
	r.Mount("/sub", http.HandlerFunc(ok))
	h := New(&Options{TracerProvider: tp})(r)
	for i, tt := range []struct{ method, target, name, original string }{
		{"GET", "/a/1", "GET /a/{id}", ""},
		{"HEAD", "/a/1", "HEAD /a/{id}", ""},
		{"POST", "/any", "POST /any", ""},
		{"BREW", "/any", "HTTP /any", "BREW"},
		{"get", "/any", "HTTP /any", "get"},
		{"GET", "http://example.org/host", "GET example.org/host", ""},
		{"GET", "/none", "GET", ""},
		{"BREW", "/none", "HTTP", "BREW"},
	} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(tt.method, tt.target, nil))
		s := rec.Ended()[i]
		if s.Name() != tt.name || attr(s, "http.request.method_original") != tt.original {
			t.Errorf("%s %s: %q, %q", tt.method, tt.target, s.Name(), attr(s, "http.request.method_original"))
		}
		if tt.original != "" && attr(s, "http.request.method") != "_OTHER" {
			t.Errorf("%s: method %q", tt.method, attr(s, "http.request.method"))
		}
	}
	// A router that sets no pattern.
	h = New(&Options{TracerProvider: tp, Route: func(r *http.Request) string { return "/own/" + r.Method }})(http.HandlerFunc(ok))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
	if s := rec.Ended()[8]; s.Name() != "GET /own/GET" {
		t.Error(s.Name())
	}
}

// A panic is recorded and passed on, and so is the abort of a response.
func TestFailures(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		h      http.HandlerFunc
		panics any
		kind   string
		events string
	}{
		"500":   {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, nil, "500", "[handler.start handler.end]"},
		"panic": {func(w http.ResponseWriter, r *http.Request) { panic(boom) }, boom, "*errors.errorString", "[handler.start handler.end exception response.incomplete]"},
		"abort": {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, http.ErrAbortHandler, "http.ErrAbortHandler",
			"[handler.start handler.end response.incomplete]"},
	} {
		tp, rec := recorder()
		func() {
			defer func() {
				if v := recover(); v != tt.panics {
					t.Errorf("%s: panics with %v", name, v)
				}
			}()
			New(&Options{TracerProvider: tp})(tt.h).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}()
		s := rec.Ended()[0]
		if s.Status().Code != codes.Error || attr(s, "error.type") != tt.kind || fmt.Sprint(events(s)) != tt.events {
			t.Errorf("%s: %v, %q, %v", name, s.Status(), attr(s, "error.type"), events(s))
		}
		for _, e := range s.Events() {
			if e.Name != "exception" {
				continue
			}
			set := attribute.NewSet(e.Attributes...)
			stack, _ := set.Value("exception.stacktrace")
			message, _ := set.Value("exception.message")
			if message.AsString() != "boom" || !strings.Contains(stack.AsString(), "TestFailures") {
				t.Errorf("%q %q", message.AsString(), stack.AsString())
			}
		}
	}
}

// Goexit ends a handler without a panic and without a return: the span ends too.
func TestGoexit(t *testing.T) {
	t.Parallel()
	tp, rec := recorder()
	var wg sync.WaitGroup
	wg.Go(func() {
		t.Run("exits", func(t *testing.T) {
			New(&Options{TracerProvider: tp})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.SkipNow() })).
				ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		})
	})
	wg.Wait()
	if n := len(rec.Ended()); n != 1 {
		t.Errorf("%d spans", n)
	}
}

// On chert the status is the one that was sent, also by middleware outside.
func TestRecoverOutside(t *testing.T) {
	t.Parallel()
	tp, rec := recorder()
	quiet := middleware.Recover(&middleware.RecoverOptions{Handle: func(any, []byte) {}})
	s := chertest.NewServer(quiet(New(&Options{TracerProvider: tp})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") }))))
	defer s.Close()
	if resp, _ := get(t, s.Client(), s.URL); resp.StatusCode != 500 {
		t.Error(resp.Status)
	}
	if s := ended(t, rec, 1)[0]; attr(s, "http.response.status_code") != "500" || attr(s, "error.type") != "string" {
		t.Errorf("%v", s.Attributes())
	}
}

// The decision is the client's where it traces, and SampleRatio's elsewhere; whatever
// it is, the handler's own calls keep to it.
func TestSampling(t *testing.T) {
	t.Parallel()
	unsampled00 := valid01[:53] + "00"
	const all, none = 1, -1
	for _, tt := range []struct {
		why     string
		ratio   float64
		public  bool
		sampler sdk.Sampler
		client  string
		span    bool
		ofTrace bool // the handler's trace is the client's
	}{
		{"no client", all, false, nil, "", true, false},
		{"no client", none, false, nil, "", false, false},
		{"sampled client", none, false, nil, valid01, true, true},
		{"unsampled client", all, false, nil, unsampled00, false, true},
		{"unsampled client of a later version", all, false, nil, "cc" + unsampled00[2:] + "-x", false, true},
		{"invalid client", none, false, nil, "00-x", false, false},
		{"public, sampled client", none, true, nil, valid01, false, false},
		{"public, sampled client", all, true, nil, valid01, true, false},
		{"public, unsampled client", all, true, nil, unsampled00, true, false},
		{"the SDK's sampler alone", 0, false, sdk.NeverSample(), valid01, false, true},
		{"the SDK's sampler alone", 0, false, sdk.AlwaysSample(), unsampled00, true, true},
		{"the SDK's sampler does not agree", all, false, sdk.NeverSample(), "", false, false},
	} {
		sampler := tt.sampler
		if sampler == nil {
			sampler = sdk.ParentBased(sdk.AlwaysSample())
		}
		tp, rec := recorder(sdk.WithSampler(sampler))
		var inside, again trace.SpanContext
		type key struct{}
		h := New(&Options{TracerProvider: tp, SampleRatio: tt.ratio, Public: tt.public})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// As a handler that calls another service.
			ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
			defer cancel()
			if ctx.Value(key{}) != "v" {
				t.Errorf("%s: the context has lost a value", tt.why)
			}
			again = trace.SpanContextFromContext(ctx)
			_, span := tp.Tracer("handler").Start(ctx, "call")
			defer span.End()
			out := http.Header{}
			propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(out))
			inside = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(out)))
		}))
		r := httptest.NewRequest("GET", "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), key{}, "v"))
		if tt.client != "" {
			r.Header.Set("Traceparent", tt.client)
			r.Header.Set("Tracestate", "v=1")
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		spans := rec.Ended()
		if got := len(spans) == 2; got != tt.span || len(spans) == 1 {
			t.Errorf("%s, %v: %d spans", tt.why, tt.ratio, len(spans))
			continue
		}
		if !inside.IsValid() || inside.IsSampled() != tt.span || inside.TraceID() != again.TraceID() || inside.SpanID() != again.SpanID() {
			t.Errorf("%s, %v: calls of the handler have %v, then %v", tt.why, tt.ratio, inside, again)
		}
		if ofTrace := inside.TraceID().String() == traceHex; ofTrace != tt.ofTrace || tt.ofTrace && inside.TraceState().String() != "v=1" {
			t.Errorf("%s, %v: calls of the handler have trace %v", tt.why, tt.ratio, inside)
		}
		if tt.span && tt.public {
			if l := spans[1].Links(); len(l) != 1 || l[0].SpanContext.TraceID().String() != traceHex || spans[1].Parent().IsValid() {
				t.Errorf("%s: links %v", tt.why, l)
			}
		}
	}
}

// The share is about right: 10 % of 20,000, within ten standard deviations.
func TestRatio(t *testing.T) {
	t.Parallel()
	tr := &tracing{Options: Options{SampleRatio: 0.1}}
	n := 0
	for range 20000 {
		if !tr.skips(&parent{}) {
			n++
		}
	}
	if n < 1576 || n > 2424 {
		t.Errorf("%d of 20000", n)
	}
}

func TestPropagator(t *testing.T) {
	t.Parallel()
	tp, rec := recorder()
	h := New(&Options{TracerProvider: tp, Propagator: other{}, SampleRatio: -1})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("GET", "/", nil)
	h.ServeHTTP(httptest.NewRecorder(), r)
	r.Header.Set("X-Trace", traceHex)
	h.ServeHTTP(httptest.NewRecorder(), r)
	if all := rec.Ended(); len(all) != 1 || all[0].SpanContext().TraceID().String() != traceHex {
		t.Errorf("%v", all)
	}
}

// What a propagator finds besides the trace is in the request's context, recorded or not.
func TestBaggage(t *testing.T) {
	t.Parallel()
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	for _, o := range []Options{{}, {SampleRatio: -1}, {SampleRatio: 1, Public: true}, {SampleRatio: -1, Public: true}} {
		tp, _ := recorder()
		o.TracerProvider, o.Propagator = tp, both
		var got, id string
		h := New(&o)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			b := baggage.FromContext(r.Context())
			got = b.Member("a").Value() + b.Member("c").Value()
			id = SpanOf(r.Context()).SpanContext().TraceID().String()
		}))
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Baggage"] = []string{"a=b", "c=d"}
		outer, end := tp.Tracer("").Start(context.Background(), "outer")
		for _, lines := range [][]string{nil, {valid01}} {
			for _, ctx := range []context.Context{context.Background(), outer} {
				if got, id = "", ""; lines != nil {
					r.Header["Traceparent"] = lines
				}
				h.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
				if got != "bd" || (id == traceHex) != (lines != nil && !o.Public) {
					t.Errorf("%+v, %v: baggage %q, trace %q", o, lines, got, id)
				}
			}
		}
		end.End()
	}
}

// A client's trace that what is around the middleware has read already is not taken for none.
func TestPropagatorTwice(t *testing.T) {
	t.Parallel()
	for _, ratio := range []float64{1, -1} {
		tp, _ := recorder()
		id := ""
		h := New(&Options{TracerProvider: tp, SampleRatio: ratio, Propagator: propagation.TraceContext{}})(
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				id = SpanOf(r.Context()).SpanContext().TraceID().String()
			}))
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Traceparent"] = []string{valid01}
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		h.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		if id != traceHex {
			t.Errorf("ratio %v: trace %q", ratio, id)
		}
	}
}

// other is a propagator of another format.
type other struct{ propagation.TraceContext }

func (other) Extract(ctx context.Context, c propagation.TextMapCarrier) context.Context {
	id, err := trace.TraceIDFromHex(c.Get("X-Trace"))
	if err != nil || len(c.Keys()) == 0 {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}, TraceFlags: 1}))
}

// hello is direct.
var hello = direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString("hello") })

// Direct handlers stay direct, recorded or not.
func TestDirect(t *testing.T) {
	t.Parallel()
	for _, ratio := range []float64{-1, 1} {
		tp, rec := recorder()
		var pattern string
		ways := make(chan bool, 1)
		var inside trace.SpanContext
		note := filter.New(func(c *filter.Call) filter.Outcome {
			pattern, inside = c.Pattern(), SpanOf(c).SpanContext()
			ways <- c.Direct()
			return filter.Pass
		})
		r := router.New()
		r.Handle("GET /d/{id}", note(hello))
		s := chertest.NewServer(New(&Options{TracerProvider: tp, SampleRatio: ratio, Respond: true})(r))
		defer s.Close()
		resp, body := get(t, s.Client(), s.URL+"/d/7")
		if body != "hello" || pattern != "GET /d/{id}" || !<-ways {
			t.Errorf("%v: %q, %q; not direct", ratio, body, pattern)
		}
		if ratio < 0 {
			if len(rec.Started()) != 0 || resp.Header.Get("Traceresponse") != "" {
				t.Errorf("%v", rec.Started())
			}
			continue
		}
		span := ended(t, rec, 1)[0]
		if span.Name() != "GET /d/{id}" || attr(span, "http.response.status_code") != "200" || attr(span, "http.response.body.size") != "5" ||
			attr(span, "url.path") != "/d/7" || attr(span, "url.scheme") != "http" ||
			attr(span, "network.protocol.version") != "1.1" || attr(span, "client.address") != "127.0.0.1" || !inside.Equal(span.SpanContext()) ||
			!strings.Contains(resp.Header.Get("Traceresponse"), span.SpanContext().SpanID().String()) {
			t.Errorf("%q, %v, %v, %v", span.Name(), span.Attributes(), inside, resp.Header)
		}
	}
}

// A direct handler that panics, or leaves the request to the ordinary path: one span.
func TestDirectOtherwise(t *testing.T) {
	t.Parallel()
	tp, rec := recorder()
	traced := New(&Options{TracerProvider: tp})
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: "GET", Path: []byte("/"), Fields: wire.FieldsOf(nil)})
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("panics with %v", v)
			}
		}()
		traced(direct.HandlerFunc(func(*direct.Exchange) { panic("boom") })).(direct.Handler).ServeDirect(&x)
	}()
	x.Wire().TakeWatcher().Sent(wire.Delivery{Status: 500, Complete: true})
	if s := ended(t, rec, 1)[0]; attr(s, "error.type") != "string" || attr(s, "http.response.status_code") != "500" {
		t.Errorf("%v", s.Attributes())
	}
	later := filter.New(func(c *filter.Call) filter.Outcome {
		if c.Direct() {
			return filter.OnPlain
		}
		return filter.Pass
	})
	s := chertest.NewServer(traced(later(hello)))
	defer s.Close()
	get(t, s.Client(), s.URL)
	s.Close()
	if n := len(rec.Ended()); n != 2 {
		t.Errorf("%d spans", n)
	}
}

// Files are sent by the server as without the middleware, and writers keep what else
// they can do.
func TestWriter(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	servers(t, func(t *testing.T, start func(http.Handler) (string, *http.Client)) {
		tp, rec := recorder()
		is := map[string]func(w http.ResponseWriter) bool{
			"FileSender": func(w http.ResponseWriter) bool { _, ok := w.(wire.FileSender); return ok },
			"ReaderFrom": func(w http.ResponseWriter) bool { _, ok := w.(io.ReaderFrom); return ok },
			"Flusher":    func(w http.ResponseWriter) bool { _, ok := w.(http.Flusher); return ok },
			"Hijacker":   func(w http.ResponseWriter) bool { _, ok := w.(http.Hijacker); return ok },
		}
		without := make(map[string]bool)
		traced := New(&Options{TracerProvider: tp})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for name, f := range is {
				if without[name] && !f(w) {
					t.Errorf("no %s any more", name)
				}
			}
			switch r.URL.Path {
			case "/file":
				http.ServeFile(w, r, file)
			case "/flush":
				io.WriteString(w, "a")
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				io.WriteString(w, "b")
			case "/hijack":
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
				c.Close()
			}
		}))
		url, c := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for name, f := range is {
				without[name] = f(w)
			}
			traced.ServeHTTP(w, r)
		}))
		for i, tt := range []struct {
			path, status, size string
			n                  int
		}{{"/file", "200", "1048576", 1 << 20}, {"/flush", "200", "2", 2}, {"/hijack", "101", "0", 1}} {
			_, body := get(t, c, url+tt.path)
			s := ended(t, rec, i+1)[i]
			if len(body) != tt.n || attr(s, "http.response.status_code") != tt.status || attr(s, "http.response.body.size") != tt.size {
				t.Errorf("%s: %d bytes, %v", tt.path, len(body), s.Attributes())
			}
		}
	})
}

// A response that the client accepts slowly: the span ends when it has all of it, or
// has left.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	tp, rec := recorder()
	returned := make(chan struct{}, 2)
	mux := http.NewServeMux()
	big := make([]byte, 60<<10) // is queued, so that the handler returns
	traced := New(&Options{TracerProvider: tp})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(big)))
		w.Write(big)
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		traced.ServeHTTP(w, r)
		returned <- struct{}{}
	})
	s := chertest.NewUnstartedServer(mux)
	s.Listener.Close()
	s.Listener = servertest.ListenSmall(t, 4<<10)
	s.Start()
	defer s.Close()
	for i, leaves := range []bool{false, true} {
		c := servertest.DialSmall(t, strings.TrimPrefix(s.URL, "http://"), 4<<10)
		c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-returned
		reads := time.Now()
		if leaves {
			c.Reset()
		} else if _, body := c.Response("GET"); len(body) != len(big) {
			t.Errorf("%d bytes", len(body))
		}
		span := ended(t, rec, i+1)[i]
		if e := span.Events(); !e[1].Time.Before(reads) || !span.EndTime().After(reads) || (len(e) == 3) != leaves {
			t.Errorf("the handler ended at %v, the client read at %v, the span ended at %v: %v", e[1].Time, reads, span.EndTime(), events(span))
		}
	}
}

// Where a span may end on an event loop, a processor that blocks does not hold it, and
// few goroutines wait.
func TestLate(t *testing.T) {
	t.Parallel()
	b := &blocking{release: make(chan struct{})}
	tp, rec := recorder(sdk.WithSpanProcessor(b))
	tr := &tracing{tracer: tp.Tracer(""), late: make(chan struct{}, maxLate)}
	for range maxLate + 10 {
		c := &call{t: tr, method: "GET"}
		c.start(t.Context(), &parent{}, time.Now(), nil)
		c.Keep()
		c.Sent(wire.Delivery{Status: 200})
	}
	close(b.release)
	for range maxLate {
		tr.late <- struct{}{} // all have returned
	}
	if n := len(rec.Ended()); n != maxLate {
		t.Errorf("%d spans", n)
	}
}

type blocking struct {
	sdk.SpanProcessor
	release chan struct{}
}

func (b *blocking) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (b *blocking) OnEnd(sdk.ReadOnlySpan)                     { <-b.release }

// Observe gets what is recorded.
func TestObserve(t *testing.T) {
	t.Parallel()
	tp, rec := recorder()
	var got []string
	h := New(&Options{TracerProvider: tp, Observe: func(pattern string, d time.Duration, traceID [16]byte, spanID [8]byte) {
		got = append(got, fmt.Sprint(pattern, d > 0, trace.TraceID(traceID), trace.SpanID(spanID)))
	}})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /a", func(http.ResponseWriter, *http.Request) {})
	h(mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/a", nil))
	sc := rec.Ended()[0].SpanContext()
	if want := fmt.Sprint("GET /a", true, sc.TraceID(), sc.SpanID()); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What clients choose is bounded and valid.
func TestText(t *testing.T) {
	t.Parallel()
	if s := cut(strings.Repeat("\u20ac", 1000)); len(s) > maxText+2 || !strings.HasSuffix(s, "\u20ac\ufffd") {
		t.Errorf("%d bytes, %q", len(s), s[len(s)-6:])
	}
	for addr, want := range map[string]string{
		"a": "a|", "a:1": "a|1", "[::1]:80": "::1|80", "[::1]": "::1|", "::1": "::1|", "": "|", "1.2.3.4:5": "1.2.3.4|5", ":80": "|80",
	} {
		if host, port := splitPort(addr); host+"|"+port != want {
			t.Errorf("%q: %q, %q", addr, host, port)
		}
	}
}

// Versions of HTTP are those of the conventions.
func TestVersions(t *testing.T) {
	t.Parallel()
	for proto, want := range map[string]string{"HTTP/1.0": "1.0", "HTTP/1.1": "1.1", "HTTP/2.0": "2", "HTTP/3.0": "3"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Proto = proto
		if all := plainAttributes(r, false); !slices.Contains(all, attribute.String("network.protocol.version", want)) {
			t.Errorf("%s: %v", proto, all)
		}
	}
}
