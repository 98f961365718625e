package eventstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestStream: the head, events of OnOpen, of others, and the end.
func TestStream(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		streams, closed := make(chan *eventstream.Stream, 1), make(chan *eventstream.Stream, 1)
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{
			OnOpen: func(s *eventstream.Stream, r *http.Request) {
				s.SetValue(r.URL.Path)
				s.Send(eventstream.Event{ID: "1", Type: "hello", Data: "first\nsecond\r\nthird\rfourth"})
				streams <- s
			},
			OnClose:   func(s *eventstream.Stream) { closed <- s },
			MaxUnsent: 1 << 20,
		})))
		e := open(ts)
		if got := e.event(); got != "id: 1|event: hello|data: first|data: second|data: third|data: fourth" {
			t.Errorf("got %q", got)
		}
		h := e.head.Header
		if h.Get("Cache-Control") != "no-cache, no-transform" || h.Get("X-Accel-Buffering") != "no" || e.head.ContentLength != -1 {
			t.Error(h)
		}
		s := servertest.Await(t, streams, "the stream")
		for _, bad := range []eventstream.Event{{ID: "a\nb"}, {ID: "a\x00"}, {Type: "a\rdata: x"}} {
			if err := s.Send(bad); !errors.Is(err, eventstream.ErrField) {
				t.Errorf("%q: %v", bad, err)
			}
		}
		s.Send(eventstream.Event{})
		if got := e.event(); got != "data: " {
			t.Errorf("got %q", got)
		}
		long := strings.Repeat("x", 300<<10)
		s.Send(eventstream.Event{Data: long})
		e.wants(long)
		s.Send(eventstream.Event{Data: "last"})
		s.Close()
		e.wants("last")
		e.ends()
		if err := s.Send(eventstream.Event{Data: "late"}); err != net.ErrClosed {
			t.Error(err)
		}
		if got := servertest.Await(t, closed, "OnClose"); got != s || s.Value() != "/" {
			t.Error(got, s.Value())
		}
	})
}

// TestRequests: other methods and versions, ranges, conditions and bodies.
func TestRequests(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			s.Send(eventstream.Event{Data: "a"})
			s.Close()
		}})))
		if s := ts.Exchange(servertest.RawHead("GET / HTTP/1.0"), false); !strings.Contains(s, "\n\ndata: a\n\n") || strings.Contains(s, "chunked") || !strings.HasSuffix(s, "data: a\n\n") {
			t.Errorf("HTTP/1.0: %q", s)
		}
		if s := ts.Exchange(servertest.RawHead("GET / HTTP/1.1", "Host: h", "Connection: close"), false); !strings.HasSuffix(s, "data: a\n\n\r\n0\r\n\r\n") {
			t.Errorf("HTTP/1.1: %q", s)
		}
		for _, fields := range [][]string{
			{"Range: bytes=0-1"}, {"If-None-Match: *", "If-Modified-Since: Mon, 23 Nov 2026 00:00:00 GMT"}, {"Accept-Encoding: gzip"},
			{"Content-Length: 3\r\n\r\nabc\r\nX: y"},
		} {
			e := open(ts, fields...)
			e.wants("a")
			e.ends()
		}
		c := ts.Dial()
		c.Send(servertest.RawHead("HEAD / HTTP/1.1", "Host: h"))
		if res, body := c.Response("HEAD"); res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || body != "" {
			t.Error(res, body)
		}
		c.Send(servertest.Post("/", "abc"))
		if res, _ := c.Response("POST"); res.StatusCode != 405 || res.Header.Get("Allow") != "GET, HEAD" {
			t.Error(res)
		}
	})
}

// TestGone: a client that disconnects is noticed without a write, and its topic forgets
// it.
func TestGone(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, nil)
		closed := make(chan bool, 10)
		h := handler(t, &eventstream.Options{OnOpen: joins(feed), OnClose: func(*eventstream.Stream) { closed <- true }, Heartbeat: -1})
		ts := engines.Start(t, fresh(h))
		for _, end := range []func(c *servertest.Client){
			func(c *servertest.Client) { c.Close() }, func(c *servertest.Client) { c.Reset() }, func(c *servertest.Client) { c.CloseWrite() },
		} {
			c := ts.Dial()
			opened(c)
			servertest.Eventually(t, "it has joined", func() bool { return feed.Len() == 1 })
			end(c)
			servertest.Await(t, closed, "OnClose")
			if feed.Len() != 0 || h.Len() != 0 {
				t.Error(feed.Len(), h.Len())
			}
		}
	})
}

// TestHeartbeat: comments where nothing else is sent.
func TestHeartbeat(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{Heartbeat: soon})))
		e := open(ts)
		for beats := 0; beats < 3; {
			line, err := e.r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == ":\n" {
				beats++
			}
		}
	})
}

// TestAge: streams end, between events.
func TestAge(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			s.Send(eventstream.Event{Data: "a"})
		}, MaxAge: 50 * soon, Heartbeat: -1})))
		e := open(ts)
		e.wants("a")
		e.ends()
	})
}

// TestFull: what is too much gets an empty stream, also where a router has set another status, and
// room is given back.
func TestFull(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		h := handler(t, &eventstream.Options{MaxStreams: 2, Retry: time.Second})
		ts := engines.Start(t, fresh(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h.Len() == 2 {
				w = &keeper{ResponseWriter: w, status: http.StatusNotFound}
			}
			h.ServeHTTP(w, r)
		})))
		c := ts.Dial()
		opened(c)
		open(ts)
		servertest.Eventually(t, "both are open", func() bool { return h.Len() == 2 })
		e := open(ts)
		line, _ := e.r.ReadString('\n')
		if !strings.HasPrefix(line, "retry: 1") && line != "retry: 2000\n" {
			t.Errorf("%q", line)
		}
		e.ends()
		c.Close()
		servertest.Eventually(t, "one has ended", func() bool { return h.Len() == 1 })
		open(ts)
	})
}

// TestShutdown: streams get a last event, and Shutdown waits for their ends.
func TestShutdown(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, nil)
		h := handler(t, &eventstream.Options{OnOpen: joins(feed), Last: &eventstream.Event{Type: "bye", Data: "soon back"}})
		ts := engines.Start(t, fresh(h))
		if ts.Engine == engines.NetHTTP {
			ts.Control.RegisterOnShutdown(h.Close)
		}
		var all []*events
		for range 20 {
			all = append(all, open(ts))
		}
		servertest.Eventually(t, "all have joined", func() bool { return feed.Len() == len(all) })
		publish(t, feed, "a")
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- ts.Control.Shutdown(ctx) }()
		for _, e := range all {
			e.wants("a")
			if got := e.event(); got != "event: bye|data: soon back" {
				t.Errorf("got %q", got)
			}
			e.ends()
		}
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

// TestPanic: a panic of OnOpen ends the stream.
func TestPanic(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		h := handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			s.Send(eventstream.Event{Data: "a"})
			panic(http.ErrAbortHandler)
		}})
		ts := engines.Start(t, fresh(h))
		c := ts.Dial()
		c.Send(servertest.RawHead("GET / HTTP/1.1", "Host: h"))
		c.UpToEnd()
		servertest.Eventually(t, "it has ended", func() bool { return h.Len() == 0 })
	})
}

// TestJunk: a client that sends instead of listening is not listened to for ever.
func TestJunk(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		s := fresh(nil)
		if s.Engine == engines.NetHTTP {
			t.Skip("net/http does not read")
		}
		h := handler(t, nil)
		s.Handler = h
		ts := engines.Start(t, s)
		c := ts.Dial()
		opened(c)
		go func() {
			for {
				if _, err := c.Conn.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}()
		servertest.Eventually(t, "it has ended", func() bool { return h.Len() == 0 })
	})
}

// TestNoGoroutines: an open stream on a loop has none.
func TestNoGoroutines(t *testing.T) {
	eachAlone(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		s := fresh(nil)
		if s.Engine != chert.EngineLoops {
			t.Skip("a goroutine each")
		}
		feed := topic(t, nil)
		s.Handler = handler(t, &eventstream.Options{OnOpen: joins(feed)})
		ts := engines.Start(t, s)
		const count = 500
		before := runtime.NumGoroutine()
		var all []*events
		for range count {
			all = append(all, open(ts))
		}
		servertest.Eventually(t, "all have joined", func() bool { return feed.Len() == count })
		servertest.Eventually(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() < before+count/10 })
		publish(t, feed, "a")
		for _, e := range all {
			e.wants("a")
		}
	})
}

// TestChaos: publishers, clients that come and go, Close and Shutdown at the same time.
func TestChaos(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 50})
		streams := make(chan *eventstream.Stream, 10_000)
		h := handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			feed.Join(s)
			streams <- s
		}, Heartbeat: soon, MaxAge: 5 * soon, MaxUnsent: 1000})
		ts := engines.Start(t, fresh(h))
		ts.Control.RegisterOnShutdown(h.Close)
		var wait sync.WaitGroup
		stop := make(chan struct{})
		loop := func(f func(i int)) {
			wait.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						f(i)
					}
				}
			})
		}
		for range 2 {
			loop(func(i int) { feed.Publish(eventstream.Event{Data: strings.Repeat("x", i%5000)}) })
		}
		loop(func(i int) {
			s := <-streams
			if s == nil {
				return
			}
			if s.Send(eventstream.Event{Data: "y"}); i%3 == 0 {
				s.Close()
			} else if i%3 == 1 {
				feed.Leave(s)
			}
		})
		for range 4 {
			loop(func(i int) {
				nc, err := net.Dial("tcp", ts.ListenAddr)
				if err != nil {
					return
				}
				defer nc.Close()
				nc.Write([]byte(servertest.RawHead("GET / HTTP/1.1", "Host: h")))
				nc.SetReadDeadline(time.Now().Add(servertest.Patience))
				b := make([]byte, 2000)
				for range i % 20 {
					if _, err := nc.Read(b); err != nil {
						return
					}
				}
			})
		}
		time.Sleep(20 * soon) // how much chaos there is
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		if err := ts.Control.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		close(stop)
		close(streams)
		wait.Wait()
		servertest.Eventually(t, "all have ended", func() bool { return h.Len() == 0 && feed.Len() == 0 })
	})
}

// TestCongested: a stream says when its client reads too slowly, before events are dropped, and when it has read.
func TestCongested(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		streams := make(chan *eventstream.Stream, 1)
		h := handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) { streams <- s }})
		ts := engines.StartOn(t, fresh(h), servertest.ListenSmall(t, 16<<10))
		e := open(ts)
		s := servertest.Await(t, streams, "the stream")
		if s.Congested() {
			t.Error("congested at the beginning")
		}
		want := strings.Repeat("x", 4000)
		sent := 0
		for ; !s.Congested(); sent++ {
			if err := s.Send(eventstream.Event{Data: want}); err != nil {
				t.Fatalf("after %d events: %v", sent, err)
			}
		}
		for range sent {
			e.wants(want)
		}
		servertest.Eventually(t, "no longer congested", func() bool { return !s.Congested() })
		if err := s.Send(eventstream.Event{Data: "more"}); err != nil {
			t.Error(err)
		}
		e.wants("more")
	})
}
