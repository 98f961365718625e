package http3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Answers as handlers make them, as quic-go's client has them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", hello)
	mux.HandleFunc("/empty", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })
	mux.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(304)
	})
	mux.HandleFunc("/trailers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "A")
		io.WriteString(w, "hello")
		w.Header().Set("A", "1")
		w.Header().Set(http.TrailerPrefix+"B", "2")
		for _, name := range []string{"Connection", "Transfer-Encoding", "Upgrade", "Keep-Alive", "Proxy-Connection"} {
			w.Header().Set(http.TrailerPrefix+name, "x")
		}
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(103)
		w.Header().Del("Link")
		io.WriteString(w, "hello")
	})
	mux.HandleFunc("/101", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(101) })
	mux.HandleFunc("/flushed", func(w http.ResponseWriter, r *http.Request) {
		for range 10 {
			io.WriteString(w, "hello")
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) { w.Write(bytes.Repeat([]byte("x"), 1<<20)) })
	mux.HandleFunc("/fields", func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Connection", "Transfer-Encoding", "Upgrade", "Keep-Alive", "Proxy-Connection", "Bad Name"} {
			w.Header().Set(name, "x")
		}
		w.Header().Set("X-Bad", "a\nb")
		w.Header().Set("X-Good", " a ")
		w.Header()["Set-Cookie"] = []string{"a", "b"}
	})
	s := serve(t, &chert.Server{Handler: mux})
	c := s.client()
	for _, tt := range []struct {
		method, path, status, body, trailer string
		length                              int64
	}{
		{"GET", "/hello", "200 OK", "hello", "", 5},
		{"HEAD", "/hello", "200 OK", "", "", 5},
		{"GET", "/empty", "200 OK", "", "", 0},
		{"GET", "/204", "204 No Content", "", "", 0},
		{"GET", "/304", "304 Not Modified", "", "", 0},
		{"GET", "/trailers", "200 OK", "hello", "map[A:[1] B:[2]]", -1},
		{"GET", "/hints", "200 OK", "hello", "", 5},
		{"GET", "/101", "500 Internal Server Error", "", "", 0},
		{"GET", "/flushed", "200 OK", strings.Repeat("hello", 10), "", -1},
		{"HEAD", "/flushed", "200 OK", "", "", -1},
		{"GET", "/large", "200 OK", strings.Repeat("x", 1<<20), "", -1},
		{"GET", "/fields", "200 OK", "", "", 0},
		{"GET", "/none", "404 Not Found", "404 page not found\n", "", 19},
	} {
		req, _ := http.NewRequest(tt.method, s.url(tt.path), nil)
		res, err := c.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", tt.path, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || res.Status != tt.status || string(body) != tt.body || res.ContentLength != tt.length && tt.length > 0 {
			t.Errorf("%s %s: %v %d %.50q, %v", tt.method, tt.path, res.Status, res.ContentLength, body, err)
		}
		if tt.path == "/trailers" && (res.Trailer.Get("A") != "1" || res.Trailer.Get("B") != "2") {
			t.Errorf("trailers %v", res.Trailer)
		}
		if h := res.Header; tt.path == "/fields" && (len(h) != 4 || h.Get("X-Good") != "a" || len(h["Set-Cookie"]) != 2) {
			t.Errorf("fields %q", h)
		}
	}
	if a := s.raw().get("/hints"); len(a.interim) != 2 || a.interim[0] != ":status: 103" || a.interim[1] != "link: </a>" {
		t.Errorf("%+v", a)
	}
	// RFC 9114 section 4.3.2 and 4.2: and nothing else is there.
	head := func(p string) answer {
		return s.raw().do(headers(append([]string{":method: HEAD"}, path(get, p)[1:]...)...))
	}
	if a := head("/hello"); a.body != "" || a.field("content-length") != "5" || a.err != nil {
		t.Errorf("%+v", a)
	}
	if a := s.raw().get("/trailers"); len(a.trailer) != 2 {
		t.Errorf("%+v", a)
	}
	if a := head("/trailers"); a.ending() != "200" || a.field("trailer") != "A" || a.trailer != nil {
		t.Errorf("%+v", a)
	}
}

// 100 (Continue) is sent when the handler reads, and not when it does not.
func TestContinue(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/held":
			w.WriteHeader(http.StatusOK)
			fallthrough
		case "/read":
			io.Copy(w, r.Body)
		}
	})})
	c := s.raw()
	for _, p := range []string{"/read", "/held"} {
		e := c.open(false, headers(with(path(post, p), "expect: 100-continue")...))
		if h, p, err := e.next(); err != nil || h.Type != codec.FrameHeaders || decode(t, p)[0] != ":status: 100" {
			t.Fatal(h, p, err)
		}
		e.Write(data("hello"))
		e.Close()
		if a := e.read(); a.body != "hello" || a.ending() != "200" {
			t.Errorf("%+v", a)
		}
	}
	e := c.open(false, headers(with(path(post, "/"), "expect: 100-continue")...))
	if a := e.read(); a.ending() != "200" || a.interim != nil {
		t.Errorf("%+v", a)
	}
}

// What the handler has of a request.
func TestBodies(t *testing.T) {
	t.Parallel()
	type got struct {
		length  int64
		body    string
		trailer http.Header
		err     error
	}
	all := make(chan got, 1)
	s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		all <- got{r.ContentLength, string(body), r.Trailer, err}
	})})
	c := s.raw()
	for name, tt := range map[string]struct {
		p    []byte
		want got
	}{
		"none":         {headers(get...), got{length: 0}},
		"length":       {join(headers(with(post, "content-length: 5")...), data("he"), data("llo")), got{length: 5, body: "hello"}},
		"no length":    {join(headers(post...), data("he"), data("llo")), got{length: -1, body: "hello"}},
		"trailers":     {join(headers(with(post, "trailer: a")...), data("hello"), headers("a: 1", "b: 2")), got{length: -1, body: "hello", trailer: http.Header{"A": {"1"}}}},
		"no trailers":  {join(headers(with(post, "trailer: a")...), data("hello")), got{length: -1, body: "hello", trailer: http.Header{"A": nil}}},
		"a large body": {join(headers(post...), data(strings.Repeat("x", 100_000)), data("y")), got{length: -1, body: strings.Repeat("x", 100_000) + "y"}},
	} {
		for _, send := range []func() *exchange{
			func() *exchange { return c.open(true, tt.p) },
			func() *exchange { return slowly(c, true, tt.p) },
		} {
			e := send()
			g := servertest.Await(t, all, "the handler")
			if a := e.read(); a.ending() != "200" {
				t.Fatalf("%s: %+v", name, a)
			}
			if g.length == -1 && tt.want.length == 0 {
				g.length = 0 // its end came later
			}
			if g.length != tt.want.length || g.body != tt.want.body || g.err != nil || len(g.trailer) != len(tt.want.trailer) || g.trailer.Get("A") != tt.want.trailer.Get("A") {
				t.Errorf("%s: %.200v, want %.200v", name, g, tt.want)
			}
		}
	}
}

// A handler that returns before the body has come has its answer sent, and the client is asked to
// send no more (RFC 9114 section 4.1).
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello)})
	c := s.raw()
	e := c.open(false, headers(post...), data("x"))
	if a := e.read(); a.ending() != "200" || a.body != "hello" {
		t.Fatalf("%+v", a)
	}
	<-e.Context().Done()
	if _, err := e.Write(data("x")); ending(err) != "RESET H3_NO_ERROR" {
		t.Errorf("%v", err)
	}
	// A client that does not read the answer before it has sent everything.
	res, err := s.client().Post(s.url("/"), "", io.LimitReader(zeros{}, 10<<20))
	if err != nil || res.StatusCode != 200 {
		t.Errorf("%v, %v", res, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Handlers that do not end as they should, and how their streams do.
func TestFailures(t *testing.T) {
	t.Parallel()
	const internal = "RESET H3_INTERNAL_ERROR"
	for name, tt := range map[string]struct {
		h    hf
		want string
	}{
		"panic":            {func(http.ResponseWriter, *http.Request) { panic("oops") }, internal},
		"ErrAbortHandler":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, internal},
		"Goexit":           {func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, internal},
		"panic in a body":  {func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 10000)); panic("oops") }, internal},
		"Goexit in a body": {func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 10000)); runtime.Goexit() }, internal},
		"too little": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, "1234")
		}, internal},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			if _, err := io.WriteString(w, "123456"); err != http.ErrContentLength {
				panic(err)
			}
		}, internal},
		"write deadline": {func(w http.ResponseWriter, _ *http.Request) {
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second))
			w.Write(make([]byte, 1<<20))
		}, internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					tt.h(w, r)
				}
			})})
			c := s.raw()
			for range 3 {
				if a := c.get("/"); a.ending() != tt.want {
					t.Errorf("%s, want %s", a.ending(), tt.want)
				}
			}
			if a := c.get("/other"); a.ending() != "200" {
				t.Errorf("another: %s", a.ending())
			}
			if logged := strings.Contains(s.log.String(), "oops"); logged != strings.Contains(name, "panic") {
				t.Errorf("logged %q", s.log)
			}
		})
	}
}

// A handler's deadlines, and the server's.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		s    *chert.Server
		h    hf
		want string
	}{
		"SetReadDeadline": {&chert.Server{}, func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			if _, err := io.ReadAll(r.Body); !servertest.IsTimeout(err) {
				t.Errorf("%v", err)
			}
		}, "200"},
		"SetReadDeadline during a read": {&chert.Server{}, func(w http.ResponseWriter, r *http.Request) {
			go http.NewResponseController(w).SetReadDeadline(time.Now())
			if _, err := io.ReadAll(r.Body); !servertest.IsTimeout(err) {
				t.Errorf("%v", err)
			}
		}, "200"},
		"ReadTimeout":      {&chert.Server{ReadTimeout: time.Second}, reads, "RESET H3_INTERNAL_ERROR"},
		"ReadStallTimeout": {&chert.Server{ReadStallTimeout: 50 * time.Millisecond}, reads, "RESET H3_INTERNAL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.s.Handler = tt.h
			s := serve(t, tt.s)
			e := s.raw().open(false, headers(post...), data("hello"))
			if a := e.read(); a.ending() != tt.want {
				t.Errorf("%+v", a)
			}
		})
	}
}

// Limits of a client that reads nothing.
func TestWriteLimits(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*chert.Server{
		"WriteTimeout":      {WriteTimeout: 200 * time.Millisecond},
		"WriteStallTimeout": {WriteStallTimeout: 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := make(chan error, 1)
			s.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
				for {
					if _, err := w.Write(make([]byte, 32<<10)); err != nil {
						failed <- err
						return
					}
				}
			})
			c := serve(t, s).bare(&quic.Config{InitialStreamReceiveWindow: 100_000, MaxStreamReceiveWindow: 100_000})
			c.open(true, headers(get...))
			if err := servertest.Await(t, failed, "an error"); !servertest.IsTimeout(err) {
				t.Error(err)
			}
		})
	}
}

// What a handler sends after its deadline fails, however little it is, and the answer is reset.
func TestWriteDeadlines(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(w http.ResponseWriter) error{
		"Write and Flush": func(w http.ResponseWriter) error {
			io.WriteString(w, "late")
			return http.NewResponseController(w).Flush()
		},
		"Flush": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"a second Flush": func(w http.ResponseWriter) error {
			rc := http.NewResponseController(w)
			rc.SetWriteDeadline(time.Time{})
			rc.Flush()
			rc.SetWriteDeadline(time.Now())
			return rc.Flush()
		},
		"much": func(w http.ResponseWriter) error {
			_, err := w.Write(make([]byte, 100<<10))
			return err
		},
		"an interim response": func(w http.ResponseWriter) error {
			w.WriteHeader(http.StatusEarlyHints)
			_, err := io.WriteString(w, "late")
			return err
		},
		"Write": func(w http.ResponseWriter) error {
			io.WriteString(w, "late") // sent when the handler returns
			return os.ErrDeadlineExceeded
		},
		"nothing": func(w http.ResponseWriter) error { return os.ErrDeadlineExceeded },
		"nothing more": func(w http.ResponseWriter) error {
			rc := http.NewResponseController(w)
			rc.SetWriteDeadline(time.Time{})
			rc.Flush()
			rc.SetWriteDeadline(time.Now())
			return os.ErrDeadlineExceeded
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := make(chan error, 1)
			s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second))
				failed <- send(w)
			})})
			got := s.raw().get("/").ending()
			err := servertest.Await(t, failed, "an error")
			if !errors.Is(err, os.ErrDeadlineExceeded) || got != "RESET H3_INTERNAL_ERROR" {
				t.Errorf("%v, the answer: %s", err, got)
			}
			if n := s.Stats().Timeouts; len(n) != 1 || n[0].Name != "write" || n[0].N != 1 {
				t.Errorf("limits of time: %+v", n)
			}
		})
	}
}

// The client's going ends the handler's context, whatever it has sent.
func TestContext(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(c *raw, e *exchange){
		"reset": func(_ *raw, e *exchange) {
			e.CancelWrite(quic.StreamErrorCode(codec.RequestCancelled))
			e.CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
		},
		"STOP_SENDING":         func(_ *raw, e *exchange) { e.CancelRead(quic.StreamErrorCode(codec.RequestCancelled)) },
		"the connection's end": func(c *raw, _ *exchange) { c.CloseWithError(0x100, "") },
		"an error":             func(c *raw, e *exchange) { c.open(true, data("x")) },
	} {
		for what, body := range map[string]bool{"a body": true, "none": false} {
			for how, read := range map[string]bool{"reading": true, "waiting": false} {
				t.Run(name+" "+what+" "+how, func(t *testing.T) {
					t.Parallel()
					begun, ended := make(chan bool, 1), make(chan error, 1)
					s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
						done := r.Context().Done()
						begun <- true
						if read && body && name != "STOP_SENDING" { // which does not concern what is read
							if _, err := io.ReadAll(r.Body); err == nil {
								t.Error("the body ends")
							}
						}
						<-done
						ended <- r.Context().Err()
					})})
					c := s.raw()
					e := c.open(!body, headers(get...))
					servertest.Await(t, begun, "the handler")
					leave(c, e)
					if err := servertest.Await(t, ended, "the context's end"); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
			}
		}
	}
}
