package behave

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestPanic(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/plain":
				panic("boom")
			case "/error":
				panic(io.ErrClosedPipe)
			case "/odd":
				panic([]int{1})
			case "/nil":
				panic(nil) //nolint:govet // intentional
			case "/abort":
				panic(http.ErrAbortHandler)
			case "/goexit":
				runtime.Goexit()
			case "/goexit-panic":
				defer panic("boom")
				runtime.Goexit()
			case "/held":
				put(w, "held back")
				panic("boom")
			case "/flushed":
				put(w, "a")
				flush(w)
				put(w, "b")
				panic("boom")
			case "/flushed-abort":
				put(w, "a")
				flush(w)
				panic(http.ErrAbortHandler)
			case "/flushed-goexit":
				put(w, "a")
				flush(w)
				runtime.Goexit()
			case "/length":
				w.Header().Set("Content-Length", "5")
				put(w, "a")
				flush(w)
				panic("boom")
			case "/hijacked-goexit":
				nc, rw, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				go func() {
					defer nc.Close()
					io.Copy(nc, rw)
				}()
				runtime.Goexit()
			}
			put(w, "fine")
		})})
		const chunked = ok + "Content-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
		for _, tt := range []struct{ path, want, line string }{
			{"/plain", "", "boom"},
			{"/error", "", "io: read/write on closed pipe"},
			{"/odd", "", "[1]"},
			{"/nil", "", "panic called with nil argument (use GODEBUG=panicnil=1 to disable)"},
			{"/abort", "", ""},
			{"/goexit", "", ""},
			{"/goexit-panic", "", "boom"},
			{"/held", "", "boom"},
			{"/flushed", chunked, "boom"},
			{"/flushed-abort", chunked, ""},
			{"/flushed-goexit", chunked, ""},
			{"/length", ok + "Content-Length: 5\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na", "boom"},
		} {
			before := len(ts.Log.String())
			c := ts.Dial()
			c.Send("GET " + tt.path + " HTTP/1.1\r\nHost: h\r\n\r\nGET /fine HTTP/1.1\r\nHost: h\r\n\r\n")
			if got := servertest.Undated(c.UpToEnd()); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.path, got, tt.want)
			}
			log := ts.Log.String()[before:]
			if tt.line == "" {
				if log != "" {
					t.Errorf("%s: logged %q", tt.path, log)
				}
				continue
			}
			line, stack, _ := strings.Cut(log, "\n")
			if line != "http: panic serving "+c.LocalAddr().String()+": "+tt.line && tt.path != "/nil" || !strings.HasPrefix(line, "http: panic serving "+c.LocalAddr().String()+": ") {
				t.Errorf("%s: logged %q", tt.path, line)
			}
			if !strings.HasPrefix(stack, "goroutine ") || !strings.Contains(stack, "behave/panic_test.go") {
				t.Errorf("%s: stack is %s", tt.path, servertest.Brief(stack))
			}
		}
		if _, body := ts.Dial().Get("/fine"); body != "fine" {
			t.Errorf("got %q", body)
		}
		if e == engines.NetHTTP {
			return // it may or may not close a connection that a handler has hijacked and left by Goexit
		}
		c := ts.Dial()
		c.Send("GET /hijacked-goexit HTTP/1.1\r\nHost: h\r\n\r\n")
		c.Send("echo")
		c.Want("echo")
		c.CloseWrite()
		c.Ended()
	})
}

// After a panic with an unread body the body must not be served as a request.
func TestPanicUnreadBody(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				t.Error("the body was served")
			}
			panic(http.ErrAbortHandler)
		})})
		const body = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
		if got := ts.Exchange("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 27\r\n\r\n"+body, false); got != "" {
			t.Errorf("got %q", got)
		}
	})
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		past := time.Unix(1, 0)
		timedOut := func(what string, err error) {
			var ne net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
				t.Errorf("%s gave %v", what, err)
			}
		}
		late := make(chan *http.ResponseController, 4)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			switch r.URL.Path {
			case "/read":
				if err := rc.SetReadDeadline(past); err != nil {
					t.Error(err)
				}
				_, err := io.ReadAll(r.Body)
				timedOut("Read", err)
				put(w, "done")
			case "/wake": // while the handler reads
				started := make(chan struct{})
				go func() {
					<-started
					if err := rc.SetReadDeadline(past); err != nil {
						t.Error(err)
					}
				}()
				io.ReadFull(r.Body, make([]byte, 1))
				close(started)
				_, err := io.ReadAll(r.Body)
				timedOut("Read", err)
				put(w, "done")
			case "/write":
				if err := rc.SetWriteDeadline(past); err != nil {
					t.Error(err)
				}
				put(w, "lost")
				timedOut("Flush", rc.Flush())
			case "/moved":
				rc.SetReadDeadline(past)
				rc.SetReadDeadline(time.Now().Add(time.Hour))
				rc.SetWriteDeadline(past)
				rc.SetWriteDeadline(time.Time{})
				b, err := io.ReadAll(r.Body)
				put(w, string(b))
				if err != nil {
					t.Error(err)
				}
				if err := rc.Flush(); err != nil {
					t.Error(err)
				}
				if err := rc.SetReadDeadline(past); err != nil { // ends with the request
					t.Error(err)
				}
				late <- rc
			}
		})})
		c := ts.Dial()
		c.Send("POST /read HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
		if res, body := c.Response("POST"); body != "done" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		c.CloseWrite()
		c.Ended()
		c = ts.Dial()
		c.Send("POST /wake HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n1")
		if res, body := c.Response("POST"); body != "done" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		c = ts.Dial()
		c.Send("GET /write HTTP/1.1\r\nHost: h\r\n\r\n")
		c.Ended()
		c = ts.Dial()
		for range 2 {
			c.Send("POST /moved HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
			c.SendSlowly("hello", 1)
			if _, body := c.Response("POST"); body != "hello" {
				t.Errorf("got %q", body)
			}
		}
		if e == engines.NetHTTP {
			return // with it a late call affects the next request
		}
		if err := (<-late).SetReadDeadline(past); err == nil {
			t.Error("a deadline was set after the handler's return")
		}
		c.Get("/")
	})
}

// The files of a form are removed, also after a panic, where net/http leaves them.
func TestFormFilesAfterAPanic(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		parsed := make(chan string, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			parsed <- servertest.ParsedFile(t, r)
			panic(http.ErrAbortHandler)
		})})
		c := ts.Dial()
		go c.Send(servertest.Upload("/"))
		name := servertest.Await(t, parsed, "the handler")
		io.Copy(io.Discard, c.R)
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	})
}

// A panic of ConnState is logged with the client's address, also where the connection is new, and on goroutines.
// net/http's ends the process there.
func TestConnStatePanicHasAddress(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, at := range []http.ConnState{http.StateNew, http.StateActive} {
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {}),
				ConnState: func(_ net.Conn, st http.ConnState) {
					if st == at {
						panic("boom")
					}
				}})
			c := ts.Dial()
			c.Send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			c.Status(200)
			c.Ended()
			if log := ts.Log.String(); !strings.HasPrefix(log, "http: panic serving "+c.LocalAddr().String()+": boom\n") {
				t.Errorf("%v: logged %q", at, log)
			}
		}
	})
}
