package eventstream

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func polls(t testing.TB, o *eventstream.PollOptions) *eventstream.PollHandler {
	t.Helper()
	h, err := eventstream.NewPoll(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestPoll: answers, also empty and large ones, on one connection; pipelined requests;
// a client that leaves; HTTP/1.0.
func TestPoll(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		opened, closed := make(chan *eventstream.Poll, 100), make(chan *eventstream.Poll, 100)
		h := polls(t, &eventstream.PollOptions{
			OnOpen:  func(p *eventstream.Poll, r *http.Request) { p.SetValue(r.URL.Path); opened <- p },
			OnClose: func(p *eventstream.Poll) { closed <- p },
		})
		ts := engines.Start(t, fresh(h))
		c := ts.Dial()
		for _, want := range []string{`{"a":1}`, "", strings.Repeat("x", 1<<20), "after"} {
			c.Send(servertest.RawHead("GET /path HTTP/1.1", "Host: h"))
			p := servertest.Await(t, opened, "the poll")
			if !p.Answer([]byte(want)) || p.Answer([]byte("again")) || p.Value() != "/path" {
				t.Error("one answer")
			}
			res, body := c.Response("GET")
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" || body != want || res.Close {
				t.Errorf("%v %.100q", res, body)
			}
			if got := servertest.Await(t, closed, "OnClose"); got != p {
				t.Error("another has ended")
			}
		}
		const few = 10
		c.Send(strings.Repeat(servertest.RawHead("GET / HTTP/1.1", "Host: h"), few))
		for range few {
			servertest.Await(t, opened, "the poll").Answer([]byte("next"))
			if _, body := c.Response("GET"); body != "next" {
				t.Errorf("%q", body)
			}
			servertest.Await(t, closed, "OnClose")
		}
		c.Send(servertest.RawHead("GET / HTTP/1.1", "Host: h"))
		p := servertest.Await(t, opened, "the poll")
		c.Close()
		if servertest.Await(t, closed, "OnClose"); p.Answer(nil) || h.Len() != 0 {
			t.Error("it was still waiting")
		}
		for _, head := range []string{servertest.RawHead("GET / HTTP/1.0"), servertest.RawHead("GET / HTTP/1.1", "Host: h", "Connection: close")} {
			c := ts.Dial()
			c.Send(head)
			servertest.Await(t, opened, "the poll").Answer([]byte("last"))
			if s := c.UpToEnd(); !strings.Contains(s, "last") {
				t.Errorf("%q", s)
			}
		}
	})
}

// TestPollTimeout: an empty answer, by time and by the server's end.
func TestPollTimeout(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		quick, slow := polls(t, &eventstream.PollOptions{Timeout: soon}), polls(t, nil)
		mux := http.NewServeMux()
		mux.Handle("/quick", quick)
		mux.Handle("/slow", slow)
		ts := engines.Start(t, fresh(mux))
		ts.Control.RegisterOnShutdown(slow.Close)
		c, other := ts.Dial(), ts.Dial()
		for range 3 {
			if res, body := c.Get("/quick"); res.StatusCode != 200 || body != "" {
				t.Error(res, body)
			}
		}
		c.Send(servertest.RawHead("GET /slow HTTP/1.1", "Host: h"))
		other.Send(servertest.RawHead("GET /slow HTTP/1.1", "Host: h"))
		servertest.Eventually(t, "both wait", func() bool { return slow.Len() == 2 })
		if n := slow.AnswerAll([]byte("all")); n != 2 {
			t.Error(n)
		}
		for _, c := range []*servertest.Client{c, other} {
			if _, body := c.Response("GET"); body != "all" {
				t.Errorf("%q", body)
			}
		}
		// A poll ends a moment after its client has the answer.
		servertest.Eventually(t, "none waits", func() bool { return slow.Len() == 0 })
		c.Send(servertest.RawHead("GET /slow HTTP/1.1", "Host: h"))
		servertest.Eventually(t, "it waits", func() bool { return slow.Len() == 1 })
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- ts.Control.Shutdown(ctx) }()
		if _, body := c.Response("GET"); body != "" {
			t.Errorf("%q", body)
		}
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

// TestPollGoroutines: polls that wait on a loop have none.
func TestPollGoroutines(t *testing.T) {
	eachAlone(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		h := polls(t, nil)
		s := fresh(h)
		if s.Engine != chert.EngineLoops {
			t.Skip("a goroutine each")
		}
		ts := engines.Start(t, s)
		const count = 500
		before := runtime.NumGoroutine()
		var all []*servertest.Client
		for range count {
			c := ts.Dial()
			c.Send(servertest.RawHead("GET / HTTP/1.1", "Host: h"))
			all = append(all, c)
		}
		servertest.Eventually(t, "all wait", func() bool { return h.Len() == count })
		servertest.Eventually(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() < before+count/10 })
		var wait sync.WaitGroup
		for range 4 { // at the same time
			wait.Go(func() { h.AnswerAll([]byte("a")) })
		}
		wait.Wait()
		for _, c := range all {
			if _, body := c.Response("GET"); body != "a" {
				t.Fatalf("%q", body)
			}
		}
	})
}

// TestPollAtOnce: an answer by OnOpen itself.
func TestPollAtOnce(t *testing.T) {
	at := func() *eventstream.PollHandler {
		return polls(t, &eventstream.PollOptions{OnOpen: func(p *eventstream.Poll, _ *http.Request) { p.Answer([]byte("now")) }})
	}
	t.Run("http1", func(t *testing.T) {
		each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
			c := engines.Start(t, fresh(at())).Dial()
			for range 5 {
				if _, body := c.Get("/"); body != "now" {
					t.Errorf("%q", body)
				}
			}
		})
	})
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		x := start(at())
		for range 5 {
			e, _ := x.open("")
			if b, err := io.ReadAll(e.r); string(b) != "now" || err != nil {
				t.Errorf("%q %v", b, err)
			}
		}
	})
}

// TestPollProtocols is TestPoll with TLS and HTTP/2.
func TestPollProtocols(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		opened, closed := make(chan *eventstream.Poll, 100), make(chan bool, 100)
		x := start(polls(t, &eventstream.PollOptions{
			OnOpen:  func(p *eventstream.Poll, _ *http.Request) { opened <- p },
			OnClose: func(*eventstream.Poll) { closed <- true },
		}))
		for _, want := range []string{"a", "", strings.Repeat("x", 1<<20), "b"} {
			e, _ := x.open("")
			servertest.Await(t, opened, "the poll").Answer([]byte(want))
			got := new(strings.Builder)
			if _, err := e.r.WriteTo(got); err != nil || got.String() != want {
				t.Errorf("%.100q %v", got, err)
			}
			servertest.Await(t, closed, "OnClose")
		}
		_, leave := x.open("")
		servertest.Await(t, opened, "the poll")
		leave()
		servertest.Await(t, closed, "OnClose")
	})
}
