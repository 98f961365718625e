package faults

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestFaultsHandlerEndsBadly(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 100<<10)
	ends := []struct {
		name string
		f    func()
		log  string
	}{
		{"panic", func() { panic("a bug") }, "a bug"},
		{"panic nil", func() { panic(nil) }, "nil"},
		{"abort", func() { panic(http.ErrAbortHandler) }, ""},
		{"goexit", runtime.Goexit, ""},
	}
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, w http.ResponseWriter)
		want   string // the response begins with it; "" is none
	}{
		{"before anything", func(*testing.T, http.ResponseWriter) {}, ""},
		{"after WriteHeader", func(_ *testing.T, w http.ResponseWriter) { w.WriteHeader(204) }, ""},
		{"after Flush", func(_ *testing.T, w http.ResponseWriter) {
			io.WriteString(w, "some")
			w.(http.Flusher).Flush()
		}, "HTTP/1.1 200 OK"},
		{"after a large Write", func(_ *testing.T, w http.ResponseWriter) { io.WriteString(w, big) }, "HTTP/1.1 200 OK"},
		{"after Hijack", func(t *testing.T, w http.ResponseWriter) {
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(nc, "mine")
			nc.Close()
		}, "mine"},
	} {
		for _, end := range ends {
			t.Run(tt.name+"/"+end.name, func(t *testing.T) {
				t.Parallel()
				engines.Each(t, func(t *testing.T, e chert.Engine) {
					fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/alive" {
							return
						}
						tt.before(t, w)
						end.f()
					})})
					c := fs.Dial()
					// A second request must not be served.
					c.Send(servertest.GET + servertest.GET)
					got, err := io.ReadAll(c.R)
					if tt.want == "" && len(got) > 0 || !strings.HasPrefix(string(got), tt.want) {
						t.Errorf("got %.200q (%v), want %q", got, err, tt.want)
					}
					if strings.Contains(string(got), "\r\n0\r\n\r\n") || strings.Count(string(got), "HTTP/1.1") > 1 {
						t.Errorf("the response looks complete: %.200q", got)
					}
					c.Close()
					fs.Alive()
					fs.Settled(2)
					// A handler that has hijacked may end at any time.
					servertest.Eventually(t, "the end is logged", func() bool { return strings.Contains(fs.Log.String(), end.log) })
					if log := fs.Log.String(); end.log == "" && log != "" {
						t.Errorf("the log is %q, want nothing", log)
					}
				})
			})
		}
	}
}

// A handler that waits only for its context ends when the server closes.
func TestFaultsHandlerHangsUntilClose(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const n = 8
		entered, ended := make(chan bool, n), make(chan error, n)
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- true
			<-r.Context().Done()
			_, err := w.Write(make([]byte, 1<<20))
			ended <- err
		})})
		for range n {
			fs.Dial().Send(servertest.GET)
			servertest.Await(t, entered, "the handler")
		}
		fs.Close()
		for range n {
			if err := servertest.Await(t, ended, "the context's end"); err == nil {
				t.Error("Write worked after Close")
			}
		}
		fs.Settled(n)
	})
}

// Handlers that hang in a read, a write or a body of their own all end when the
// server closes, although they do not observe the context.
func TestFaultsBlockedHandlerEndsWithClose(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		h        func(w http.ResponseWriter, r *http.Request) error
	}{
		{"reading a length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc", func(w http.ResponseWriter, r *http.Request) error {
			_, err := io.Copy(io.Discard, r.Body)
			return err
		}},
		{"reading chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", func(w http.ResponseWriter, r *http.Request) error {
			_, err := io.Copy(io.Discard, r.Body)
			return err
		}},
		{"writing", servertest.GET, func(w http.ResponseWriter, r *http.Request) (err error) {
			for b := make([]byte, 1<<20); err == nil; {
				_, err = w.Write(b)
			}
			return err
		}},
		{"draining at the end", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc", func(w http.ResponseWriter, r *http.Request) error {
			return errors.New("not interested")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				entered, ended := make(chan bool, 1), make(chan error, 1)
				fs := engines.StartCounting(t, &chert.Server{
					Engine: e, ReadStallTimeout: -1, WriteStallTimeout: -1,
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						entered <- true
						ended <- tt.h(w, r)
					}),
				})
				fs.Dial().Send(tt.in)
				servertest.Await(t, entered, "the handler")
				fs.Close()
				if err := servertest.Await(t, ended, "the handler's end"); err == nil {
					t.Error("no error")
				}
				fs.Settled(1)
			})
		})
	}
}

// leaky responds with a body that contains the request's number and leaves
// goroutines running that use what is no longer theirs.
type leaky struct {
	leaked sync.WaitGroup
	stop   chan bool
	t      *testing.T
}

func (h *leaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.leaked.Go(func() {
		// At first this may still be within the handler's time.
		for {
			if _, err := io.WriteString(w, "LEAKED"); err != nil {
				break
			}
			select {
			case <-h.stop:
				h.t.Error("writes after the handler's return gave no error")
				return
			default:
				runtime.Gosched()
			}
		}
		if _, err := io.WriteString(w, "LEAKED"); err == nil {
			h.t.Error("a write after a failed one worked")
		}
		w.(http.Flusher).Flush()
		http.NewResponseController(w).Flush()
		http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
		w.Header().Set("X", "leaked")
		w.WriteHeader(500)
		r.Body.Read(make([]byte, 100))
		r.Body.Close()
	})
	io.CopyN(io.Discard, r.Body, 1)
}

// Goroutines that outlive their handler write and read at any moment; no other
// response on the same or another connection may show it.
func TestFaultsLeakedWriterAndBody(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		h := &leaky{stop: make(chan bool), t: t}
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/leak") {
				w.Header().Set("X-Leak", "1")
				h.ServeHTTP(w, r)
				return
			}
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Errorf("body: %v", err)
			}
			fmt.Fprintf(w, "%s %s", r.URL.Path, b)
		})})
		var clients sync.WaitGroup
		for i := range 8 {
			c := fs.Dial()
			clients.Go(func() {
				for j := range 50 {
					body := fmt.Sprintf("body-%d-%d", i, j)
					leak := fmt.Sprintf("POST /leak HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
					good := fmt.Sprintf("POST /%d/%d HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", i, j, len(body), body)
					if _, err := io.WriteString(c, leak+good); err != nil {
						t.Errorf("send: %v", err)
						return
					}
					for k := range 2 {
						res, err := http.ReadResponse(c.R, nil)
						if err != nil {
							t.Errorf("response: %v", err)
							return
						}
						got, err := io.ReadAll(res.Body)
						if err != nil {
							t.Errorf("body: %v", err)
							return
						}
						want := fmt.Sprintf("/%d/%d %s", i, j, body)
						if k == 0 {
							want = strings.Repeat("LEAKED", len(got)/6)
						}
						if string(got) != want || res.StatusCode != 200 || res.Header.Get("X") != "" {
							t.Errorf("got %v %v %q, want %q", res.Status, res.Header, got, want)
							return
						}
					}
				}
			})
		}
		clients.Wait()
		// Only a leak that can still write would be stopped by this.
		stop := time.AfterFunc(servertest.Patience, func() { close(h.stop) })
		defer stop.Stop()
		h.leaked.Wait()
	})
}

// A goroutine reads a body while its handler hijacks the connection: the
// hijacker gets the socket exclusively, and the reader an error.
func TestFaultsHijackWhileBodyIsRead(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		readErr := make(chan error, 3)
		reading := make(chan bool, 1)
		fs := engines.StartCounting(t, &chert.Server{Engine: e, ReadStallTimeout: -1, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				return
			}
			go func() {
				b := make([]byte, 4)
				r.Body.Read(b[:1])
				reading <- true
				_, err := r.Body.Read(b)
				readErr <- err
			}()
			<-reading
			nc, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Errorf("hijack: %v", err)
				return
			}
			defer nc.Close()
			_, err = r.Body.Read(make([]byte, 1))
			readErr <- err
			io.WriteString(nc, "go\n")
			b := make([]byte, 9)
			if _, err := io.ReadFull(rw, b); err != nil || string(b) != "hijacked!" {
				t.Errorf("the hijacker read %q, %v", b, err)
			}
			io.WriteString(nc, "end\n")
		})})
		for range 20 {
			c := fs.Dial()
			c.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nx")
			c.Want("go\n")
			c.Send("hijacked!")
			c.Want("end\n")
			c.Close()
			for range 2 {
				if err := servertest.Await(t, readErr, "the body's reader"); err == nil {
					t.Error("the body could be read after Hijack")
				}
			}
			fs.Alive()
		}
	})
}

// A handler hijacks while goroutines of its own are in Read of the body, and
// then returns or panics: the end of the request must not touch a connection
// that no longer belongs to it.
func TestFaultsHijackUnderBodyReaders(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			done := make(chan struct{})
			for range 2 {
				go func() {
					defer func() { done <- struct{}{} }()
					for range 300 {
						if _, err := r.Body.Read(make([]byte, 10)); !errors.Is(err, http.ErrBodyReadAfterClose) {
							t.Errorf("Read gives %v", err)
							return
						}
					}
				}()
			}
			go func() {
				<-done
				<-done
				io.WriteString(c, "x")
				c.Close()
			}()
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
		})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: h})
		for i := range 100 {
			c := ts.Dial()
			c.Send([]string{"POST /", "POST /panic"}[i%2] + " HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n")
			if got := c.Rest(); got != "x" {
				t.Fatalf("got %q, want what the hijacker wrote", got)
			}
			c.Close()
		}
		if s := ts.Log.Served(); s != "" {
			t.Errorf("logged: %s", s)
		}
	})
}
