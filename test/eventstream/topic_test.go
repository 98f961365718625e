package eventstream

import (
	"fmt"
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

// TestHistory: a client that connects again gets what it has missed, once and in order.
func TestHistory(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 10})
		complete := make(chan bool, 100)
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			complete <- feed.Join(s)
		}, LastIDParam: "last"})))
		comes := func(want bool, e *events) *events {
			t.Helper()
			if got := servertest.Await(t, complete, "Join"); got != want {
				t.Errorf("complete is %v", got)
			}
			return e
		}
		first := comes(true, open(ts))
		publish(t, feed, "before")
		first.wants("before")
		// A client that was cut off before the first event.
		e := comes(true, open(ts))
		if line := func() string { e.r.ReadString('\n'); e.r.ReadString('\n'); s, _ := e.r.ReadString('\n'); return s }(); line != "id: "+first.last+"\n" {
			t.Errorf("%q, want the ID %q", line, first.last)
		}
		publish(t, feed, "event 0")
		e.wants("event 0")
		publish(t, feed, numbered(1, 5)...)
		comes(true, open(ts, "Last-Event-ID: "+e.last)).wants(numbered(1, 5)...)
		c := ts.Dial()
		c.Send(servertest.RawHead("GET /?last="+e.last+" HTTP/1.1", "Host: h"))
		comes(true, response(c)).wants(numbered(1, 5)...)
		// The oldest that is there, and the one before it.
		publish(t, feed, numbered(5, 11)...)
		comes(true, open(ts, "Last-Event-ID: "+e.last)).wants(numbered(1, 11)...)
		publish(t, feed, numbered(11, 12)...)
		comes(false, open(ts, "Last-Event-ID: "+e.last)).wants(numbered(2, 12)...)
		comes(false, open(ts, "Last-Event-ID: of another process")).wants(numbered(2, 12)...)
		comes(false, open(ts, "Last-Event-ID: "+strings.TrimRight(e.last, "0123456789")+"12345678901234567890")).wants(numbered(2, 12)...)
		feed.Publish(eventstream.Event{ID: "own", Data: "own"})
		e = comes(true, open(ts, "Last-Event-ID: own"))
		publish(t, feed, "after")
		e.wants("after")
	})
}

// TestReconnect: clients that connect again and again while events are published get
// each event once and in order.
func TestReconnect(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 1 << 20, HistoryBytes: 1 << 30})
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{OnOpen: joins(feed)})))
		const count = 3000
		first := publish(t, feed, "first")
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Go(func() {
				last, next := first, 0
				for next < count {
					c := ts.Dial()
					e := opened(c, "Last-Event-ID: "+last)
					for n := 0; n < 200+i*50 && next < count; n++ {
						if got, want := e.data(), fmt.Sprintf("event %d", next); got != want {
							t.Errorf("got %q, want %q", got, want)
							return
						}
						next++
					}
					last = e.last
					c.Close()
				}
			})
		}
		publish(t, feed, numbered(0, count)...)
		wait.Wait()
	})
}

// TestPublishers: all clients get the events of several publishers in the same order.
func TestPublishers(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 1 << 20, HistoryBytes: 1 << 30})
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{OnOpen: joins(feed)})))
		const publishers, count, clients = 4, 300, 3
		var all []*events
		for range clients {
			all = append(all, open(ts))
		}
		servertest.Eventually(t, "all have joined", func() bool { return feed.Len() == clients })
		var wait sync.WaitGroup
		for i := range publishers {
			wait.Go(func() {
				for j := range count {
					publish(t, feed, fmt.Sprint(i, " ", j))
				}
			})
		}
		var order [clients][]string
		for i, e := range all {
			wait.Go(func() {
				for range publishers * count {
					order[i] = append(order[i], e.data())
				}
			})
		}
		wait.Wait()
		next := map[string]int{}
		for i, s := range order[0] {
			for _, other := range order[1:] {
				if other[i] != s {
					t.Fatalf("%q and %q", s, other[i])
				}
			}
			p, j, _ := strings.Cut(s, " ")
			if j != fmt.Sprint(next[p]) {
				t.Fatalf("%q, want %d", s, next[p])
			}
			next[p]++
		}
	})
}

// TestSlowReader: a client that does not read while 10,000 events are published costs
// bounded memory, and others nothing. It ends, or goes on with the oldest event that
// there is.
func TestSlowReader(t *testing.T) {
	for name, slow := range map[string]eventstream.Slow{"close": eventstream.SlowClose, "drop": eventstream.SlowDrop} {
		t.Run(name, func(t *testing.T) {
			eachAlone(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
				feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 100})
				closed := make(chan bool, 10)
				s := fresh(handler(t, &eventstream.Options{
					OnOpen: joins(feed), OnClose: func(*eventstream.Stream) { closed <- true }, Slow: slow, MaxUnsent: 32 << 10,
				}))
				ts := engines.StartOn(t, s, servertest.ListenSmall(t, 16<<10))
				lazy := open(ts)
				quick := open(ts)
				servertest.Eventually(t, "both have joined", func() bool { return feed.Len() == 2 })
				const count = 10_000
				pad := strings.Repeat("x", 1000)
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range count {
					want := fmt.Sprint(i, pad)
					publish(t, feed, want)
					quick.wants(want)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
					t.Errorf("%d KiB more", grown>>10)
				}
				if slow == eventstream.SlowClose {
					servertest.Await(t, closed, "the end of the slow client")
					publish(t, feed, "unharmed")
					quick.wants("unharmed")
					return
				}
				skipped, next := 0, 0
				for next < count {
					var i int
					if _, err := fmt.Sscanf(lazy.data(), "%dx", &i); err != nil || i < next {
						t.Fatal(i, next, err)
					}
					skipped += i - next
					next = i + 1
				}
				if skipped == 0 {
					t.Error("all of it was kept")
				}
			})
		})
	}
}

// TestBehind: a client that is behind gets all that the history still has.
func TestBehind(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 1 << 20, HistoryBytes: 1 << 30})
		s := fresh(handler(t, &eventstream.Options{OnOpen: joins(feed), MaxUnsent: 8 << 10}))
		ts := engines.StartOn(t, s, servertest.ListenSmall(t, 16<<10))
		lazy := open(ts)
		servertest.Eventually(t, "it has joined", func() bool { return feed.Len() == 1 })
		const count = 3000
		pad := strings.Repeat("x", 1000)
		for i := range count {
			publish(t, feed, fmt.Sprint(i, pad))
		}
		for i := range count {
			lazy.wants(fmt.Sprint(i, pad))
		}
		publish(t, feed, "live")
		lazy.wants("live")
	})
}

// TestBurst: a short history is no shorter for being written to quickly.
func TestBurst(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		for _, kept := range []int{1, 2, 10} {
			feed := topic(t, &eventstream.TopicOptions{HistoryEvents: kept})
			ts := engines.Start(t, fresh(handler(t, &eventstream.Options{OnOpen: joins(feed), MaxUnsent: -1})))
			var all []*events
			for range 3 {
				all = append(all, open(ts))
			}
			servertest.Eventually(t, "all have joined", func() bool { return feed.Len() == 3 })
			publish(t, feed, numbered(0, 1000)...)
			for _, e := range all {
				e.wants(numbered(0, 1000)...)
			}
		}
	})
}
