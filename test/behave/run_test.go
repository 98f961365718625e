package behave

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
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// running is a call of run, whose signals the test sends.
type running struct {
	*engines.Server
	signals chan os.Signal
	stop    context.CancelFunc // ends Run's context
	ended   chan error
	entered chan struct{} // the handler at /wait has begun
	release chan struct{} // and ends when this is closed, or its client leaves
}

// runServer runs s with a handler that waits at /wait.
func runServer(t *testing.T, s *chert.Server, grace time.Duration) *running {
	t.Helper()
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{
		Server:  &engines.Server{Server: s, T: t, ListenAddr: l.Addr().String(), Log: new(servertest.Log)},
		signals: make(chan os.Signal, 2), stop: stop,
		ended: make(chan error, 1), entered: make(chan struct{}, 16), release: make(chan struct{}),
	}
	s.ErrorLog = servertest.NewLogger(r.Log)
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
	go func() {
		r.ended <- testhook.Of(s).Run(ctx, grace, []func() error{func() error { return s.Serve(l) }}, r.signals)
	}()
	t.Cleanup(func() {
		stop()
		s.Close()
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("something did not end after Close: %v", err)
		}
	})
	return r
}

// waiting sends a request whose handler waits.
func (r *running) waiting() *servertest.Client {
	r.T.Helper()
	c := r.Dial()
	c.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
	servertest.Await(r.T, r.entered, "the handler")
	return c
}

// unended fails if Run has returned.
func (r *running) unended() {
	r.T.Helper()
	select {
	case err := <-r.ended:
		r.T.Fatalf("Run did not wait: %v", err)
	default:
	}
}

// When Run ends, it lets running requests finish, and that is no error.
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
		// signal.NotifyContext receives the same signal.
		{"signal and context", servertest.Patience, func(r *running) { r.stop(); r.signals <- os.Interrupt }},
		{"shutdown elsewhere", servertest.Patience, func(r *running) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			r.Shutdown(ctx)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				r := runServer(t, &chert.Server{Engine: e}, tt.grace)
				var hooks atomic.Int32
				hooked := make(chan struct{}, 2)
				r.RegisterOnShutdown(func() { hooks.Add(1); hooked <- struct{}{} })
				c := r.waiting()
				tt.end(r)
				servertest.Await(t, hooked, "the hook")
				r.Refuses()
				r.unended()
				close(r.release)
				if res, body := c.Response("GET"); body != "answer" || !res.Close {
					t.Errorf("got %v %q", res, body)
				}
				if err := servertest.Await(t, r.ended, "Run"); err != nil {
					t.Errorf("Run returned %v", err)
				}
				if n := hooks.Load(); n != 1 {
					t.Errorf("the hook was called %d times", n)
				}
				if err := chert.Run(context.Background(), r.Server.Server, 0); err != chert.ErrServerClosed {
					t.Errorf("once more it returned %v", err)
				}
			})
		})
	}
}

func TestRunGraceEnds(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		r := runServer(t, &chert.Server{Engine: e}, time.Millisecond)
		c := r.waiting()
		r.stop()
		err := servertest.Await(t, r.ended, "Run")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cut off after 1ms") {
			t.Errorf("Run returned %v", err)
		}
		c.Cut()
	})
}

func TestRunSecondSignal(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		r := runServer(t, &chert.Server{Engine: e}, -1)
		c := r.waiting()
		r.signals <- os.Interrupt
		r.Refuses()
		r.unended()
		r.signals <- os.Interrupt // a duplicate: the clock of the test stands still
		servertest.Eventually(t, "the duplicate is read", func() bool { return len(r.signals) == 0 })
		r.unended()
		r.signals <- syscall.SIGTERM
		if err := servertest.Await(t, r.ended, "Run"); err == nil || !strings.Contains(err.Error(), "second signal (terminated)") {
			t.Errorf("Run returned %v", err)
		}
		c.Cut()
	})
}

// Several listeners of all kinds are served, and all are closed.
func TestRunSeveral(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		certFile, keyFile, roots := servertest.CertFiles(t)
		dir, err := os.MkdirTemp("", "run")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.TLS != nil) })}
		tcp, err := s.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		unix, err := s.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		tl := servertest.ListenTCP(t)
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
		if e == chert.EngineLoops { // TLS does not run on loops
			serveTLS = func() error { <-ctx.Done(); return tl.Close() }
		}
		go func() {
			ended <- chert.Run(ctx, s, -1,
				serve(func() error { return s.Serve(tcp) }), serve(func() error { return s.Serve(unix) }), serve(serveTLS))
		}()
		for _, l := range []net.Listener{tcp, unix, tl} {
			if l == tl && e == chert.EngineLoops {
				continue
			}
			nc, err := net.Dial(l.Addr().Network(), l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			nc.SetDeadline(time.Now().Add(servertest.Patience))
			if l == tl {
				nc = tls.Client(nc, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
			}
			fmt.Fprint(nc, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			if b, err := io.ReadAll(nc); err != nil || !bytes.HasSuffix(b, fmt.Append(nil, l == tl)) {
				t.Errorf("%v: got %q, %v", l.Addr(), b, err)
			}
		}
		stop()
		if err := servertest.Await(t, ended, "Run"); err != nil {
			t.Errorf("Run returned %v", err)
		}
		if n := returned.Load(); n != 3 {
			t.Errorf("Run has awaited %d of the 3 calls", n)
		}
		for _, l := range []net.Listener{tcp, unix, tl} {
			// Not at once: a process that another test starts has the listeners, too, until it is another program.
			servertest.Eventually(t, l.Addr().String()+" is closed", func() bool {
				nc, err := net.Dial(l.Addr().Network(), l.Addr().String())
				if err == nil {
					nc.Close()
				}
				return err != nil
			})
		}
	})
}

// What cannot be served is an error at once, and nothing else stays open.
func TestRunFails(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		taken := servertest.ListenTCP(t)
		defer taken.Close()
		s := &chert.Server{Engine: e, Addr: taken.Addr().String()}
		other, err := s.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		err = chert.Run(context.Background(), s, -1, func() error { return s.Serve(other) }, s.ListenAndServe)
		if oe, ok := errors.AsType[*net.OpError](err); !ok || oe.Op != "listen" {
			t.Errorf("Run returned %v", err)
		}
		servertest.Eventually(t, "the other listener is closed", func() bool {
			nc, err := net.Dial("tcp", other.Addr().String())
			if err == nil {
				nc.Close()
			}
			return err != nil
		})
		// Without any call it listens on Addr.
		again := &chert.Server{Engine: e, Addr: taken.Addr().String()}
		if err := chert.Run(context.Background(), again, 0); err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// A call that fails while the server stops, or that does not end, is reported.
func TestRunCallsThatDoNotStop(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	ctx, stop := context.WithCancel(context.Background())
	stop()
	s := new(chert.Server)
	if err := chert.Run(ctx, s, -1, func() error { <-testhook.Of(s).Stopping(); return odd }); err != odd {
		t.Errorf("Run returned %v", err)
	}
	ever := make(chan struct{})
	defer close(ever)
	err := chert.Run(ctx, new(chert.Server), 3*time.Second, func() error { <-ever; return nil })
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "cut off") {
		t.Errorf("Run returned %v", err)
	}
}

// In any context that a handler derives, Stopping reports that Shutdown has
// begun, and the context itself does not end.
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				in, hooked := make(chan struct{}), make(chan struct{}, 2) // start calls Shutdown too
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: wrap(hf(func(w http.ResponseWriter, r *http.Request) {
					stopping := chert.Stopping(r.Context())
					select {
					case <-stopping:
						put(w, "too early")
						return
					default:
					}
					in <- struct{}{}
					servertest.Await(t, stopping, "Stopping")
					servertest.Await(t, chert.Stopping(r.Context()), "a late Stopping")
					fmt.Fprint(w, r.Context().Err())
				}))})
				ts.RegisterOnShutdown(func() {
					servertest.Await(t, ts.Inside().Stopping(), "Stopping in a hook")
					hooked <- struct{}{}
				})
				c := ts.Dial()
				c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				servertest.Await(t, in, "the handler")
				if err := ts.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				if _, body := c.Response("GET"); body != "<nil>" {
					t.Errorf("got %q", body)
				}
				servertest.Await(t, hooked, "the hook")
			})
		})
	}
}

// A hijacked connection outlives Close; Stopping notifies its handler.
func TestStoppingHijackedAndClosed(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			nc, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			put(nc, "mine")
			servertest.Await(t, chert.Stopping(r.Context()), "Stopping")
			put(nc, " still")
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		var mine [4]byte
		if _, err := io.ReadFull(c, mine[:]); err != nil {
			t.Fatal(err)
		}
		ts.Close()
		ts.Close() // twice is no panic
		servertest.Await(t, ended, "the handler")
		if rest, err := io.ReadAll(c); string(rest) != " still" || err != nil {
			t.Errorf("got %q, %v", rest, err)
		}
	})
}

func TestStoppingOfOthers(t *testing.T) {
	t.Parallel()
	if c := chert.Stopping(context.Background()); c != nil {
		t.Error("a context of no server has a channel")
	}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), http.ServerContextKey, new(http.Server)))
	defer cancel()
	if c := chert.Stopping(ctx); c != nil {
		t.Error("a context of net/http has a channel")
	}
}

// Concurrent calls while Shutdown and Close begin.
func TestStoppingRaces(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const n = 8
		in := make(chan struct{}, n)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			in <- struct{}{}
			servertest.Await(t, chert.Stopping(r.Context()), "Stopping")
		})})
		for range n {
			ts.Dial().Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		}
		for range n {
			servertest.Await(t, in, "a handler")
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
	ts := engines.Start(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		var c <-chan struct{}
		n := testing.AllocsPerRun(100, func() { c = chert.Stopping(r.Context()) })
		fmt.Fprint(w, n, c != nil)
	})})
	if _, body := ts.Dial().Get("/"); body != "0 true" {
		t.Errorf("got %q", body)
	}
}
