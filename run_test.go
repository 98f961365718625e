package chert

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// running is a call of run, whose signals the test sends.
type running struct {
	*testServer
	signals chan os.Signal
	stop    context.CancelFunc // ends Run's context
	ended   chan error
	entered chan struct{} // the handler at /wait has begun
	release chan struct{} // and ends when this is closed, or its client leaves
}

// runServer runs s with a handler that waits at /wait.
func runServer(t *testing.T, s *Server, grace time.Duration) *running {
	t.Helper()
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{
		testServer: &testServer{Server: s, t: t, addr: l.Addr().String(), log: new(logBuffer)},
		signals:    make(chan os.Signal, 2), stop: stop,
		ended: make(chan error, 1), entered: make(chan struct{}, 16), release: make(chan struct{}),
	}
	s.ErrorLog = newLog(r.log)
	s.Handler = hf(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/wait" {
			r.entered <- struct{}{}
			select {
			case <-r.release:
			case <-req.Context().Done():
			}
		}
		put(w, "answer")
	})
	go func() { r.ended <- run(ctx, s, grace, []func() error{func() error { return s.Serve(l) }}, r.signals) }()
	t.Cleanup(func() {
		stop()
		s.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("something did not end after Close: %v", err)
		}
	})
	return r
}

// waiting sends a request whose handler waits.
func (r *running) waiting() *rawConn {
	r.t.Helper()
	c := r.dial()
	c.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
	await(r.t, r.entered, "the handler")
	return c
}

// unended fails if Run has returned.
func (r *running) unended() {
	r.t.Helper()
	select {
	case err := <-r.ended:
		r.t.Fatalf("Run did not wait: %v", err)
	default:
	}
}

// What ends Run lets a request under way finish, and that is no error.
func TestRunWaits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		grace time.Duration
		end   func(r *running)
	}{
		{"signal", 0, func(r *running) { r.signals <- os.Interrupt }},
		{"context", 0, func(r *running) { r.stop() }},
		{"no limit", -1, func(r *running) { r.stop() }},
		// signal.NotifyContext hears the same signal.
		{"signal and context", patience, func(r *running) { r.stop(); r.signals <- os.Interrupt }},
		{"shutdown elsewhere", patience, func(r *running) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			r.Shutdown(ctx)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, e Engine) {
				r := runServer(t, &Server{Engine: e}, tt.grace)
				var hooks atomic.Int32
				hooked := make(chan struct{}, 2)
				r.RegisterOnShutdown(func() { hooks.Add(1); hooked <- struct{}{} })
				c := r.waiting()
				tt.end(r)
				await(t, hooked, "the hook")
				r.refused()
				r.unended()
				close(r.release)
				if res, body := c.response("GET"); body != "answer" || !res.Close {
					t.Errorf("got %v %q", res, body)
				}
				if err := await(t, r.ended, "Run"); err != nil {
					t.Errorf("Run returned %v", err)
				}
				if n := hooks.Load(); n != 1 {
					t.Errorf("the hook was called %d times", n)
				}
				if err := Run(context.Background(), r.Server, 0); err != ErrServerClosed {
					t.Errorf("once more it returned %v", err)
				}
			})
		})
	}
}

func TestRunGraceEnds(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		r := runServer(t, &Server{Engine: e}, time.Millisecond)
		c := r.waiting()
		r.stop()
		err := await(t, r.ended, "Run")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cut off after 1ms") {
			t.Errorf("Run returned %v", err)
		}
		c.cut()
	})
}

// cut reads until the server has closed the connection, by a reset or not.
func (c *rawConn) cut() {
	c.t.Helper()
	b, err := io.ReadAll(c)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		c.t.Errorf("the connection is open after %q", b)
	}
}

func TestRunSecondSignal(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		r := runServer(t, &Server{Engine: e}, -1)
		c := r.waiting()
		r.signals <- os.Interrupt
		r.refused()
		r.unended()
		r.signals <- os.Interrupt
		if err := await(t, r.ended, "Run"); err == nil || !strings.Contains(err.Error(), "second signal (interrupt)") {
			t.Errorf("Run returned %v", err)
		}
		c.cut()
	})
}

// Several listeners of all kinds are served, and all are closed.
func TestRunSeveral(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		certFile, keyFile, roots := certFiles(t)
		dir, err := os.MkdirTemp("", "run")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.TLS != nil) })}
		tcp, err := s.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		unix, err := s.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		tl := listenTCP(t)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		var returned atomic.Int32
		serve := func(f func() error) func() error {
			return func() error {
				defer returned.Add(1)
				return f()
			}
		}
		serveTLS := func() error { return s.ServeTLS(tl, certFile, keyFile) }
		if e == EngineLoops { // TLS is not for loops
			serveTLS = func() error { <-ctx.Done(); return tl.Close() }
		}
		go func() {
			ended <- Run(ctx, s, -1,
				serve(func() error { return s.Serve(tcp) }), serve(func() error { return s.Serve(unix) }), serve(serveTLS))
		}()
		for _, l := range []net.Listener{tcp, unix, tl} {
			if l == tl && e == EngineLoops {
				continue
			}
			nc, err := net.Dial(l.Addr().Network(), l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			nc.SetDeadline(time.Now().Add(patience))
			if l == tl {
				nc = tls.Client(nc, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
			}
			fmt.Fprint(nc, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			if b, err := io.ReadAll(nc); err != nil || !bytes.HasSuffix(b, fmt.Append(nil, l == tl)) {
				t.Errorf("%v: got %q, %v", l.Addr(), b, err)
			}
		}
		stop()
		if err := await(t, ended, "Run"); err != nil {
			t.Errorf("Run returned %v", err)
		}
		if n := returned.Load(); n != 3 {
			t.Errorf("Run has awaited %d of the 3 calls", n)
		}
		for _, l := range []net.Listener{tcp, unix, tl} {
			if nc, err := net.Dial(l.Addr().Network(), l.Addr().String()); err == nil {
				nc.Close()
				t.Errorf("%v is open", l.Addr())
			}
		}
	})
}

// What cannot be served is an error at once, and nothing else stays open.
func TestRunFails(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		taken := listenTCP(t)
		defer taken.Close()
		s := &Server{Engine: e, Addr: taken.Addr().String()}
		other, err := s.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		err = Run(context.Background(), s, -1, func() error { return s.Serve(other) }, s.ListenAndServe)
		if oe, ok := errors.AsType[*net.OpError](err); !ok || oe.Op != "listen" {
			t.Errorf("Run returned %v", err)
		}
		eventually(t, "the other listener is closed", func() bool {
			nc, err := net.Dial("tcp", other.Addr().String())
			if err == nil {
				nc.Close()
			}
			return err != nil
		})
		// Without any call Addr is listened on.
		again := &Server{Engine: e, Addr: taken.Addr().String()}
		if err := Run(context.Background(), again, 0); err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// A call that fails while the server stops, or that does not end, is told of.
func TestRunCallsThatDoNotStop(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	ctx, stop := context.WithCancel(context.Background())
	stop()
	s := new(Server)
	if err := Run(ctx, s, -1, func() error { <-s.stopped(); return odd }); err != odd {
		t.Errorf("Run returned %v", err)
	}
	ever := make(chan struct{})
	defer close(ever)
	err := Run(ctx, new(Server), 3*time.Second, func() error { <-ever; return nil })
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "cut off") {
		t.Errorf("Run returned %v", err)
	}
}

// stopped is what Stopping gives.
func (s *Server) stopped() <-chan struct{} {
	s.lock()
	defer s.mu.Unlock()
	return s.told
}

// Whatever context a handler derives, it learns that Shutdown has begun, and
// the context itself does not end.
func TestStopping(t *testing.T) {
	t.Parallel()
	type key struct{}
	wraps := map[string]func(http.Handler) http.Handler{
		"plain": func(h http.Handler) http.Handler { return h },
		"derived": func(h http.Handler) http.Handler {
			return hf(func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), key{}, 1), time.Hour)
				defer cancel()
				h.ServeHTTP(w, r.Clone(ctx))
			})
		},
		"TimeoutHandler": func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Hour, "") },
	}
	for name, wrap := range wraps {
		for _, reuse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s reuse=%v", name, reuse), func(t *testing.T) {
				t.Parallel()
				engines(t, func(t *testing.T, e Engine) {
					in, hooked := make(chan struct{}), make(chan struct{}, 2) // start calls Shutdown too
					ts := start(t, &Server{Engine: e, ReuseRequests: reuse, Handler: wrap(hf(func(w http.ResponseWriter, r *http.Request) {
						stopping := Stopping(r.Context())
						select {
						case <-stopping:
							put(w, "too early")
							return
						default:
						}
						in <- struct{}{}
						await(t, stopping, "Stopping")
						await(t, Stopping(r.Context()), "a late Stopping")
						fmt.Fprint(w, r.Context().Err())
					}))})
					ts.RegisterOnShutdown(func() {
						await(t, ts.stopped(), "Stopping in a hook")
						hooked <- struct{}{}
					})
					c := ts.dial()
					c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
					await(t, in, "the handler")
					if err := ts.Shutdown(context.Background()); err != nil {
						t.Error(err)
					}
					if _, body := c.response("GET"); body != "<nil>" {
						t.Errorf("got %q", body)
					}
					await(t, hooked, "the hook")
				})
			})
		}
	}
}

// A hijacked connection outlives Close; its handler learns of it.
func TestStoppingHijackedAndClosed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		ended := make(chan struct{})
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			nc, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			put(nc, "mine")
			await(t, Stopping(r.Context()), "Stopping")
			put(nc, " still")
		})})
		c := ts.dial()
		c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		var mine [4]byte
		if _, err := io.ReadFull(c, mine[:]); err != nil {
			t.Fatal(err)
		}
		ts.Close()
		ts.Close() // twice is no panic
		await(t, ended, "the handler")
		if rest, err := io.ReadAll(c); string(rest) != " still" || err != nil {
			t.Errorf("got %q, %v", rest, err)
		}
	})
}

func TestStoppingOfOthers(t *testing.T) {
	t.Parallel()
	if c := Stopping(context.Background()); c != nil {
		t.Error("a context of nobody has a channel")
	}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), http.ServerContextKey, new(http.Server)))
	defer cancel()
	if c := Stopping(ctx); c != nil {
		t.Error("a context of net/http has a channel")
	}
}

// Many ask while Shutdown and Close begin.
func TestStoppingRaces(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		const n = 8
		in := make(chan struct{}, n)
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			in <- struct{}{}
			await(t, Stopping(r.Context()), "Stopping")
		})})
		for range n {
			ts.dial().send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		}
		for range n {
			await(t, in, "a handler")
		}
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() { ts.Shutdown(context.Background()) })
			wait.Go(func() { ts.Close() })
		}
		wait.Wait()
	})
}

func TestStoppingAllocatesNothing(t *testing.T) {
	ts := start(t, &Server{ReuseRequests: true, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		var c <-chan struct{}
		n := testing.AllocsPerRun(100, func() { c = Stopping(r.Context()) })
		fmt.Fprint(w, n, c != nil)
	})})
	if _, body := ts.dial().get("/"); body != "0 true" {
		t.Errorf("got %q", body)
	}
}
