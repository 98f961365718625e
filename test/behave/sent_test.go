package behave

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// This file tests what watchers of a response are notified of.

// deliveries are the calls of watchers, in order.
type deliveries struct {
	t   *testing.T
	mu  sync.Mutex
	all []delivery
}

type delivery struct {
	path string
	wire.Delivery
}

// watcher watches one response.
type watcher struct {
	d    *deliveries
	path string
	mu   sync.Mutex
	kept bool
	told bool
}

func (w *watcher) Keep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept || w.told {
		w.d.t.Errorf("%s: Keep is called late or twice", w.path)
	}
	w.kept = true
}

func (w *watcher) Sent(d wire.Delivery) {
	w.mu.Lock()
	if w.told {
		w.d.t.Errorf("%s: Sent is called twice", w.path)
	}
	w.told = true
	w.mu.Unlock()
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.d.all = append(w.d.all, delivery{w.path, d})
}

// await waits for n deliveries.
func (d *deliveries) await(n int) []delivery {
	d.t.Helper()
	servertest.Eventually(d.t, fmt.Sprint(n, " deliveries"), func() bool { return d.count() >= n })
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) != n {
		d.t.Fatalf("%d deliveries, want %d: %+v", len(d.all), n, d.all)
	}
	return d.all
}

func (d *deliveries) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// watching returns h with all its responses watched.
func (d *deliveries) watching(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !wire.Watch(w, &watcher{d: d, path: strings.Clone(r.URL.Path)}) {
			d.t.Error("cannot be watched")
		}
		h(w, r)
	}
}

// watchingDirect is a direct handler with all its responses watched.
type watchingDirect struct {
	d *deliveries
	direct.HandlerFunc
}

func (h watchingDirect) ServeDirect(x *direct.Exchange) bool {
	defer x.Wire().Watch(&watcher{d: h.d, path: string(x.Path())})
	return h.HandlerFunc.ServeDirect(x)
}

// ServeHTTP is for requests that the server serves on the ordinary path.
func (h watchingDirect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	direct.ServeHTTP(w, r, func(x *direct.Exchange) { h.ServeDirect(x) })
}

// sparse is a file of n zeros that takes no space on disk.
func sparse(t *testing.T, n int64) *os.File {
	t.Helper()
	f := servertest.File(t, nil)
	if err := f.Truncate(n); err != nil {
		t.Fatal(err)
	}
	return f
}

const hugeSize = 300 << 20

// hugeAnswers are ways to send 300 MiB.
func hugeAnswers(t *testing.T, d *deliveries) map[string]http.Handler {
	f := sparse(t, hugeSize)
	block := make([]byte, 1<<20)
	length := fmt.Sprint(int64(hugeSize))
	return map[string]http.Handler{
		"file": d.watching(func(w http.ResponseWriter, r *http.Request) {
			own, err := os.Open(f.Name())
			if err != nil {
				t.Error(err)
				return
			}
			defer own.Close()
			w.Header().Set("Content-Type", "x/y")
			http.ServeContent(w, r, "", time.Time{}, own)
		}),
		"SendFile": d.watching(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", length)
			w.(wire.FileSender).SendFile(direct.File{File: f, Len: hugeSize})
		}),
		"direct file": watchingDirect{d, func(x *direct.Exchange) { x.SendFile(direct.File{File: f, Len: hugeSize}) }},
		"writes": d.watching(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", length)
			for range hugeSize / len(block) {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}),
		"chunks": d.watching(func(w http.ResponseWriter, r *http.Request) {
			for range hugeSize / len(block) {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}),
		"one write": d.watching(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", length)
			w.Write(make([]byte, hugeSize))
		}),
	}
}

// A client that leaves in the middle is distinguished from one that has read
// everything.
func TestSentCut(t *testing.T) {
	if testing.Short() {
		t.Skip("300 MiB six times")
	}
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		d := &deliveries{t: t}
		for name, h := range hugeAnswers(t, d) {
			d.mu.Lock()
			d.all = nil
			d.mu.Unlock()
			s := engines.Start(t, &chert.Server{Handler: h, Engine: e})
			c := s.Dial()
			c.Send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n")
			if _, err := io.CopyN(io.Discard, c.R, 29<<20); err != nil {
				t.Fatal(err)
			}
			if n := d.count(); n != 0 {
				t.Errorf("%s: reported before the end", name)
			}
			c.Close()
			got := d.await(1)[0]
			// Bytes that were handed over and not read are in the socket's
			// buffers.
			if got.Complete || got.Status != 200 || got.Body < 28<<20 || got.Body > 60<<20 {
				t.Errorf("%s: %+v", name, got)
			}
			c = s.Dial()
			c.Send("GET /all HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if n, err := io.Copy(io.Discard, c.R); n < hugeSize || err != nil {
				t.Fatalf("%s: %d bytes, %v", name, n, err)
			}
			got = d.await(2)[1]
			if want := (wire.Delivery{Status: 200, Body: hugeSize, Complete: true}); got.Delivery != want {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
}

// Responses of all kinds, and their deliveries.
func TestSentDeliveries(t *testing.T) {
	for _, tt := range []struct {
		name, request string
		h             http.HandlerFunc
		want          wire.Delivery
	}{
		{"nothing written", "GET /", func(w http.ResponseWriter, r *http.Request) {}, wire.Delivery{Status: 200, Complete: true}},
		{"a body", "GET /", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "12345") }, wire.Delivery{Status: 200, Body: 5, Complete: true}},
		{"HEAD", "HEAD /", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "12345") }, wire.Delivery{Status: 200, Complete: true}},
		{"304", "GET /", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(304) }, wire.Delivery{Status: 304, Complete: true}},
		{"404", "GET /", http.NotFound, wire.Delivery{Status: 404, Body: 19, Complete: true}},
		{"interim", "GET /", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(103); io.WriteString(w, "1") }, wire.Delivery{Status: 200, Body: 1, Complete: true}},
		{"chunks", "GET /", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "12345")
			w.(http.Flusher).Flush()
			io.WriteString(w, "678")
		}, wire.Delivery{Status: 200, Body: 8, Complete: true}},
		{"less than announced", "GET /", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			io.WriteString(w, "12345")
		}, wire.Delivery{Status: 200, Body: 5}},
		{"more than announced", "GET /", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "12")
			if _, err := io.WriteString(w, "345"); err != http.ErrContentLength {
				t.Error(err)
			}
		}, wire.Delivery{Status: 200, Body: 2}},
		{"panic before", "GET /", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201); panic(http.ErrAbortHandler) }, wire.Delivery{}},
		{"panic after", "GET /", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "12345")
			w.(http.Flusher).Flush()
			io.WriteString(w, "678")
			panic(http.ErrAbortHandler)
		}, wire.Delivery{Status: 200, Body: 5}},
		{"Goexit", "GET /", func(w http.ResponseWriter, r *http.Request) { runtime.Goexit() }, wire.Delivery{}},
		{"hijacked", "GET /", func(w http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		}, wire.Delivery{}},
		{"panic, recovered", "GET /recover", func(w http.ResponseWriter, r *http.Request) { panic("x") }, wire.Delivery{Status: 500, Body: 3, Complete: true}},
		{"unread body", "POST /", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "12345") }, wire.Delivery{Status: 200, Body: 5, Complete: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				d := &deliveries{t: t}
				h := d.watching(tt.h)
				s := engines.Start(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() {
						if r.URL.Path == "/recover" {
							recover()
							w.WriteHeader(500)
							io.WriteString(w, "bad")
						}
					}()
					h(w, r)
				})})
				c := s.Dial()
				length := ""
				if strings.HasPrefix(tt.request, "POST") {
					length = "Content-Length: 100\r\n" // the bytes do not follow
				}
				c.Send(tt.request + " HTTP/1.1\r\nHost: a\r\n" + length + "\r\n")
				if got := d.await(1)[0]; got.Delivery != tt.want {
					t.Errorf("got %+v", got)
				}
				c.Close()
			})
		})
	}
}

// The deliveries of direct responses, also of single ones of a batch, are
// reported in order, and bytes that the socket has not accepted from a stopped
// client are not counted.
func TestSentPipelined(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, way := range []string{"direct", "plain"} {
			d := &deliveries{t: t}
			var h http.Handler = watchingDirect{d, func(x *direct.Exchange) { x.Write(x.Path()) }}
			if way == "plain" {
				h = d.watching(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
			}
			s := engines.Start(t, &chert.Server{Handler: h, Engine: e})
			c := s.Dial()
			var all strings.Builder
			const n = 200
			for i := range n {
				fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
			}
			c.Send(all.String())
			for i, got := range d.await(n) {
				path := fmt.Sprint("/", i)
				if want := (delivery{path, wire.Delivery{Status: 200, Body: int64(len(path)), Complete: true}}); got != want {
					t.Fatalf("%s: %d: %+v", way, i, got)
				}
			}
			for range n {
				c.Response("GET")
			}
		}
	})
}

// The sum of the deliveries is what a client receives that reads nothing for
// long and then everything.
func TestSentSlowly(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, way := range []string{"direct", "plain"} {
			const size, n = 1 << 20, 12
			body := make([]byte, size)
			d := &deliveries{t: t}
			var h http.Handler = watchingDirect{d, func(x *direct.Exchange) { x.Write(body) }}
			if way == "plain" {
				h = d.watching(func(w http.ResponseWriter, r *http.Request) { w.Write(body) })
			}
			s := engines.Start(t, &chert.Server{Handler: h, Engine: e})
			c := s.Dial()
			c.Send(strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", n))
			for range n {
				if _, got := c.Response("GET"); len(got) != size {
					t.Fatal(len(got))
				}
			}
			for i, got := range d.await(n) {
				if !got.Complete || got.Body != size {
					t.Errorf("%s: %d: %+v", way, i, got)
				}
			}
		}
	})
}

// When Shutdown returns, all deliveries have been reported; Close reports those
// of the responses that it cuts off.
func TestSentBeforeShutdown(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, cut := range []bool{false, true} {
			f := sparse(t, 64<<20)
			d := &deliveries{t: t}
			s := engines.Start(t, &chert.Server{Engine: e, Handler: watchingDirect{d, func(x *direct.Exchange) { x.SendFile(direct.File{File: f, Len: 64 << 20}) }}})
			const n = 4
			var clients []*servertest.Client
			for range n {
				c := s.Dial()
				c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				if _, err := io.CopyN(io.Discard, c.R, 1<<20); err != nil {
					t.Fatal(err)
				}
				clients = append(clients, c)
			}
			var wg sync.WaitGroup
			for _, c := range clients {
				if !cut {
					wg.Go(func() { io.Copy(io.Discard, c.R) })
				}
			}
			if cut {
				s.Close()
			}
			ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Fatal(err)
			}
			if got := d.count(); got != n {
				t.Errorf("%d of %d were reported when Shutdown returned", got, n)
			}
			for _, got := range d.await(n) {
				if got.Complete == cut || got.Body < 1<<20-512 || !cut && got.Body != 64<<20 {
					t.Errorf("%+v", got)
				}
			}
			wg.Wait()
		}
	})
}

// A watcher that panics does not end the server.
func TestSentPanics(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		h := direct.HandlerFunc(func(x *direct.Exchange) {
			x.Wire().Watch(panicking{early: string(x.Path()) == "/early"})
			x.WriteString("1")
		})
		s := engines.Start(t, &chert.Server{Engine: e, Handler: h})
		c := s.Dial()
		for range 3 {
			c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			c.Response("GET")
		}
		c.Send("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n") // the ordinary path
		c.Response("GET")
		// Of a batch, Keep is called for the watchers of all but the last,
		// where responses are held back.
		c.Send(strings.Repeat("GET /early HTTP/1.1\r\nHost: a\r\n\r\n", 3))
		for range 3 {
			c.Response("GET")
		}
		servertest.Eventually(t, "the log has the panics", func() bool { return strings.Count(s.Log.String(), "on purpose") == 7 })
	})
}

type panicking struct{ early bool }

func (p panicking) Keep() {
	if p.early {
		panic("on purpose, early")
	}
}

func (panicking) Sent(wire.Delivery) { panic("on purpose") }
