package behave

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// leavings are the ways in which a client leaves.
var leavings = map[string]func(c *servertest.Client){
	"reset":      func(c *servertest.Client) { c.Reset() },
	"close":      func(c *servertest.Client) { c.Close() },
	"half-close": func(c *servertest.Client) { c.CloseWrite() },
}

// A context ends when its client leaves, whatever the handler does and in
// either order.
func TestContextClientGone(t *testing.T) {
	t.Parallel()
	for how, leave := range leavings {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			engines.Alike(t, func(t *testing.T, e chert.Engine) {
				running, gone, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					defer func() { over <- struct{}{} }()
					ctx := r.Context()
					switch r.URL.Path {
					case "/done": // waits before the client leaves
						done := ctx.Done()
						running <- struct{}{}
						servertest.Await(t, done, "Done")
					case "/late": // observes it only then
						running <- struct{}{}
						<-gone
						servertest.WaitDone(t, ctx, "the context is done")
					case "/err": // polls
						running <- struct{}{}
						for deadline := time.Now().Add(servertest.Patience); ctx.Err() == nil && time.Now().Before(deadline); {
							time.Sleep(time.Millisecond) // polling, not synchronising
						}
					case "/derived":
						ctx, cancel := context.WithCancel(ctx)
						defer cancel()
						running <- struct{}{}
						servertest.WaitDone(t, ctx, "the derived context is done")
					case "/after":
						after := make(chan struct{})
						context.AfterFunc(ctx, func() { close(after) })
						running <- struct{}{}
						servertest.Await(t, after, "AfterFunc")
					case "/body": // the client is watched only after the body
						io.Copy(io.Discard, r.Body)
						running <- struct{}{}
						servertest.WaitDone(t, ctx, "the context is done")
					}
					if ctx.Err() != context.Canceled || context.Cause(ctx) != context.Canceled {
						t.Errorf("%s: Err is %v, Cause is %v", r.URL.Path, ctx.Err(), context.Cause(ctx))
					}
					put(w, "nobody listens")
				})})
				for _, path := range []string{"/done", "/late", "/err", "/derived", "/after", "/body"} {
					if path == "/err" && e == engines.NetHTTP {
						continue
					}
					c := ts.Dial()
					if path == "/body" {
						c.Send("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
					} else {
						c.Send("POST " + path + " HTTP/1.1\r\nHost: h\r\n\r\n")
					}
					servertest.Await(t, running, "the handler")
					leave(c)
					if path == "/late" {
						gone <- struct{}{}
					}
					servertest.Await(t, over, "the handler's end")
					if how == "half-close" { // it can still receive
						if _, body := c.Response("POST"); body != "nobody listens" {
							t.Errorf("%s: got %q", path, body)
						}
					}
				}
			})
		})
	}
}

func TestContextClientGoneWhileReading(t *testing.T) {
	t.Parallel()
	for how, leave := range leavings {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			engines.Alike(t, func(t *testing.T, e chert.Engine) {
				running, over := make(chan struct{}), make(chan struct{})
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					defer close(over)
					done := r.Context().Done()
					io.ReadFull(r.Body, make([]byte, 5))
					close(running)
					if _, err := io.Copy(io.Discard, r.Body); err == nil {
						t.Error("no error")
					}
					servertest.Await(t, done, "Done")
				})})
				c := ts.Dial()
				c.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello")
				servertest.Await(t, running, "the handler")
				leave(c)
				servertest.Await(t, over, "the handler's end")
			})
		})
	}
}

func TestContextClientGoneWhileWriting(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		running, over := make(chan struct{}), make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			defer close(over)
			close(running)
			deadline := time.Now().Add(servertest.Patience)
			for {
				if _, err := w.Write(servertest.Pattern(1 << 20)); err != nil {
					break
				}
				if time.Now().After(deadline) {
					t.Error("writes never fail")
					break
				}
			}
			servertest.WaitDone(t, r.Context(), "the context is done")
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, running, "the handler")
		c.Line()
		c.Reset()
		servertest.Await(t, over, "the handler's end")
	})
}

// A further request is not the end of the client, nor is its first byte.
func TestContextPipelined(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		running, release := make(chan struct{}), make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/second" {
				return
			}
			done := r.Context().Done()
			//lint:ignore SA1019 frameworks still use it
			notify := w.(http.CloseNotifier).CloseNotify()
			running <- struct{}{}
			<-release
			for range 100 {
				runtime.Gosched()
			}
			select {
			case <-done:
				t.Error("the context is done")
			case <-notify:
				t.Error("CloseNotify was sent to")
			default:
			}
			if err := r.Context().Err(); err != nil {
				t.Error(err)
			}
		})})
		const first, second = "GET /first HTTP/1.1\r\nHost: h\r\n\r\n", "GET /second HTTP/1.1\r\nHost: h\r\n\r\n"
		for _, cut := range []int{len(first), len(first) + 1, len(first + second)} {
			for _, slowly := range []bool{false, true} {
				c := ts.Dial()
				s := first + second
				c.Send(s[:cut])
				servertest.Await(t, running, "the handler")
				if slowly {
					c.SendSlowly(s[cut:], 1)
				} else {
					c.Send(s[cut:])
				}
				release <- struct{}{}
				c.Response("GET")
				c.Response("GET")
				c.Close()
			}
		}
	})
}

// A client that sends all its requests and then FIN is gone for the first
// handler, and yet gets all its responses.
func TestContextPipelinedThenHalfClosed(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			servertest.WaitDone(t, r.Context(), "the context is done")
			put(w, r.URL.Path)
		})})
		c := ts.Dial()
		c.Send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n")
		c.CloseWrite()
		for _, want := range []string{"/1", "/2"} {
			if _, body := c.Response("GET"); body != want {
				t.Errorf("got %q, want %q", body, want)
			}
		}
		c.Ended()
	})
}

func TestContextAfterReturn(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		kept := make(chan context.Context, 4)
		after := make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			kept <- ctx
			child, cancel := context.WithCancel(ctx)
			t.Cleanup(cancel)
			kept <- child
			timed, cancel := context.WithTimeout(ctx, time.Hour)
			t.Cleanup(cancel)
			kept <- timed
			kept <- context.WithValue(ctx, r, 1)
			context.AfterFunc(ctx, func() { close(after) })
			if !context.AfterFunc(ctx, func() { t.Error("a stopped AfterFunc was called") })() {
				t.Error("AfterFunc could not be stopped")
			}
		})})
		c := ts.Dial()
		c.Get("/")
		for range 4 {
			ctx := servertest.Await(t, kept, "the handler")
			servertest.WaitDone(t, ctx, "the context is done")
			if ctx.Err() != context.Canceled {
				t.Errorf("%v: Err is %v", ctx, ctx.Err())
			}
			child, cancel := context.WithCancel(ctx)
			servertest.WaitDone(t, child, "a context made later is done")
			cancel()
		}
		servertest.Await(t, after, "AfterFunc")
	})
}

// Contexts derived from a request's cost no goroutine each.
func TestContextNoGoroutines(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			for range 5 {
				a, cancel := context.WithCancel(ctx)
				defer cancel()
				b, cancel := context.WithTimeout(context.WithValue(a, r, 1), time.Hour)
				defer cancel()
				context.AfterFunc(b, func() {})
				context.AfterFunc(ctx, func() {})
			}
			stacks := make([]byte, 4<<20)
			if s := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(s, "created by context.(*cancelCtx).propagateCancel") {
				t.Error("a derived context has a goroutine")
			}
		})})
		ts.Dial().Get("/")
	})
}

// A malformed body is not the end of its client, which may still receive the
// reason.
func TestContextBrokenBody(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			done := r.Context().Done()
			if _, err := io.Copy(io.Discard, r.Body); err == nil {
				t.Error("no error")
			}
			select {
			case <-done:
				t.Error("the context is done")
			default:
			}
			w.WriteHeader(400)
		})})
		for _, wire := range []string{"x\r\n", "5\r\nhello\r\n0\r\nno field\r\n\r\n"} {
			c := ts.Dial()
			c.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + wire)
			if res, _ := c.Response("POST"); res.StatusCode != 400 || !res.Close {
				t.Errorf("got %v", res)
			}
			c.CloseWrite()
			c.Ended()
		}
	})
}
