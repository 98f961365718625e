package eventstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// site is a server that Go's client uses.
type site struct {
	*engines.Server
	url    string
	client *http.Client
}

// eachProtocol runs f with TLS and HTTP/2, on both engines and on net/http's server.
func eachProtocol(t *testing.T, f func(t *testing.T, start func(h http.Handler) *site)) {
	t.Parallel()
	all := map[string]chert.Engine{"goroutines": chert.EngineGoroutines, "nethttp": engines.NetHTTP}
	if sys.HavePoller {
		all["loops"] = chert.EngineLoops
	}
	for name, e := range all {
		for _, proto := range []string{"https", "h2", "h2c"} {
			t.Run(name+" "+proto, func(t *testing.T) {
				t.Parallel()
				f(t, func(h http.Handler) *site { return startSite(t, e, proto, h) })
			})
		}
	}
}

func startSite(t *testing.T, e chert.Engine, proto string, h http.Handler) *site {
	s := &chert.Server{Engine: e, Handler: h, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(proto == "https")
	s.Protocols.SetHTTP2(proto == "h2")
	s.Protocols.SetUnencryptedHTTP2(proto == "h2c")
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: s.Protocols}
	x := &site{client: &http.Client{Transport: tr}}
	t.Cleanup(tr.CloseIdleConnections)
	l := servertest.ListenSmall(t, 16<<10) // writes are partial
	if proto == "h2c" {
		x.Server = engines.StartOn(t, s, l)
		x.url = "http://" + x.ListenAddr
	} else {
		cert, _ := servertest.Certificate(t)
		x.Server = engines.StartTLS(t, s, l, cert)
		x.url = "https://" + x.ListenAddr
	}
	return x
}

// open opens a stream, which leave leaves.
func (x *site) open(last string) (e *events, leave func()) {
	x.T.Helper()
	ctx, leave := context.WithCancel(context.Background())
	x.T.Cleanup(leave)
	r, _ := http.NewRequestWithContext(ctx, "GET", x.url, nil)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := x.client.Do(r)
	if err != nil {
		x.T.Fatal(err)
	}
	x.T.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 {
		x.T.Fatal(res)
	}
	return &events{t: x.T, r: bufio.NewReader(res.Body), head: res}, leave
}

// TestProtocols: events, large ones, history, ends, and clients that leave.
func TestProtocols(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		feed := topic(t, nil)
		streams, closed := make(chan *eventstream.Stream, 10), make(chan *eventstream.Stream, 10)
		h := handler(t, &eventstream.Options{
			OnOpen:  func(s *eventstream.Stream, _ *http.Request) { feed.Join(s); streams <- s },
			OnClose: func(s *eventstream.Stream) { closed <- s }, MaxUnsent: 4 << 20,
		})
		x := start(h)
		e, _ := x.open("")
		s := servertest.Await(t, streams, "the stream")
		long := strings.Repeat("x", 1<<20)
		publish(t, feed, "a", "b")
		e.wants("a", "b")
		s.Send(eventstream.Event{Data: long})
		s.Send(eventstream.Event{Data: "after"})
		e.wants(long, "after")
		last := publish(t, feed, "c")
		e.wants("c")
		publish(t, feed, numbered(0, 100)...)
		e.wants(numbered(0, 100)...)
		again, leave := x.open(last)
		other := servertest.Await(t, streams, "the stream")
		again.wants(numbered(0, 100)...)
		leave()
		if got := servertest.Await(t, closed, "OnClose"); got != other {
			t.Error("another has ended")
		}
		s.Send(eventstream.Event{Data: "end"})
		s.Close()
		e.wants("end")
		e.ends()
		servertest.Await(t, closed, "OnClose")
		servertest.Eventually(t, "all have ended", func() bool { return h.Len() == 0 && feed.Len() == 0 })
	})
}

// TestProtocolsShutdown: streams get a last event, and Shutdown waits for their ends.
func TestProtocolsShutdown(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		h := handler(t, nil)
		x := start(h)
		if x.Engine == engines.NetHTTP {
			x.Control.RegisterOnShutdown(h.Close)
		}
		var all []*events
		for range 10 {
			e, _ := x.open("")
			all = append(all, e)
		}
		servertest.Eventually(t, "all are open", func() bool { return h.Len() == len(all) })
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- x.Control.Shutdown(ctx) }()
		for _, e := range all {
			if got := e.event(); got != "event: shutdown|data: " {
				t.Errorf("got %q", got)
			}
			e.ends()
		}
		x.client.CloseIdleConnections()
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

// TestProtocolsSlow: of two streams, which may share a connection, one does not read.
func TestProtocolsSlow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 100})
		closed := make(chan bool, 10)
		x := start(handler(t, &eventstream.Options{OnOpen: joins(feed), OnClose: func(*eventstream.Stream) { closed <- true }, MaxUnsent: 16 << 10}))
		x.open("")
		quick, _ := x.open("")
		servertest.Eventually(t, "both have joined", func() bool { return feed.Len() == 2 })
		pad := strings.Repeat("x", 1000)
		for i := range 6000 {
			want := fmt.Sprint(i, pad)
			publish(t, feed, want)
			quick.wants(want)
		}
		servertest.Await(t, closed, "the end of the slow client")
		publish(t, feed, "unharmed")
		quick.wants("unharmed")
	})
}

// TestProtocolsChaos: publishers, clients that come and go, and Shutdown at the same time.
func TestProtocolsChaos(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 50})
		streams := make(chan *eventstream.Stream, 10_000)
		h := handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			feed.Join(s)
			streams <- s
		}, Heartbeat: soon, MaxAge: 5 * soon, MaxUnsent: 1000})
		x := start(h)
		x.Control.RegisterOnShutdown(h.Close)
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
		loop(func(i int) { feed.Publish(eventstream.Event{Data: strings.Repeat("x", i%20_000)}) })
		loop(func(i int) {
			select {
			case s := <-streams:
				if s.Send(eventstream.Event{Data: "y"}); i%3 == 0 {
					s.Close()
				}
			case <-stop:
			}
		})
		for range 4 {
			loop(func(i int) {
				ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
				defer cancel()
				r, _ := http.NewRequestWithContext(ctx, "GET", x.url, nil)
				res, err := x.client.Do(r)
				if err != nil {
					return
				}
				defer res.Body.Close()
				b := make([]byte, 2000)
				for range i % 50 {
					if _, err := res.Body.Read(b); err != nil {
						return
					}
				}
			})
		}
		servertest.Eventually(t, "there has been chaos", func() bool { return len(streams) == 0 && h.Len() > 2 })
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		go func() {
			servertest.Eventually(t, "all have been told", func() bool { return h.Len() == 0 })
			x.client.CloseIdleConnections()
		}()
		if err := x.Control.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		close(stop)
		wait.Wait()
		servertest.Eventually(t, "all have ended", func() bool { return h.Len() == 0 && feed.Len() == 0 })
	})
}

// TestNoGoroutinesHTTP2: a stream of HTTP/2 on a loop has none either.
func TestNoGoroutinesHTTP2(t *testing.T) {
	if !sys.HavePoller {
		t.Skip("no loops here")
	}
	for _, proto := range []string{"h2", "h2c"} {
		feed := topic(t, nil)
		x := startSite(t, chert.EngineLoops, proto, handler(t, &eventstream.Options{OnOpen: joins(feed)}))
		const count = 200
		var all []*events
		for range count {
			e, _ := x.open("")
			all = append(all, e)
		}
		servertest.Eventually(t, "all have joined", func() bool { return feed.Len() == count })
		servertest.Eventually(t, "no handler's goroutine is left", func() bool {
			stacks := make([]byte, 4<<20)
			return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "bridge") == 0
		})
		publish(t, feed, "a")
		for _, e := range all {
			e.wants("a")
		}
	}
}

// TestLate: streams and polls that are opened while the server shuts down end, too.
func TestLate(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		feed, poll := handler(t, nil), polls(t, nil)
		begun, release := make(chan bool), make(chan bool)
		x := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun <- true
			<-release
			if r.URL.Path == "/poll" {
				poll.ServeHTTP(w, r)
			} else {
				feed.ServeHTTP(w, r)
			}
		}))
		if x.Engine == engines.NetHTTP {
			x.Control.RegisterOnShutdown(feed.Close)
			x.Control.RegisterOnShutdown(poll.Close)
		}
		var wait sync.WaitGroup
		last := "event: shutdown\ndata: \n\n"
		if x.Engine == engines.NetHTTP {
			last = "\n\n" // it has been closed
		}
		for path, want := range map[string]string{"/": last, "/poll": ""} {
			wait.Go(func() {
				res, err := x.client.Get(x.url + path)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				if b, err := io.ReadAll(res.Body); err != nil || !strings.HasSuffix(string(b), want) {
					t.Errorf("%q %v", b, err)
				}
				x.client.CloseIdleConnections()
			})
		}
		servertest.Await(t, begun, "a handler")
		servertest.Await(t, begun, "a handler")
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- x.Control.Shutdown(ctx) }()
		x.Refuses()
		close(release)
		wait.Wait()
		if x.Engine == engines.NetHTTP {
			// It waits for a connection that the client made beside another and has not
			// used, if its handshake ended after Shutdown began.
			servertest.Eventually(t, "Shutdown has ended", func() bool {
				x.client.CloseIdleConnections()
				return len(done) > 0
			})
		}
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}
