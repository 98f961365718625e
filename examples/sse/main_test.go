package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/examples/internal/engines"
)

func TestMain(m *testing.M) { engines.Main(m) }

func (b *broker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subs)
}

// subscriber is the client's side of a stream.
type subscriber struct {
	t     *testing.T
	res   *http.Response
	r     *bufio.Reader
	leave context.CancelFunc
}

func subscribe(t *testing.T, s *engines.Server) *subscriber {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), engines.Patience)
	t.Cleanup(cancel)
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL+"/events", nil)
	res, err := s.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	return &subscriber{t, res, bufio.NewReader(res.Body), cancel}
}

func (s *subscriber) expect(lines ...string) {
	s.t.Helper()
	for _, want := range append(lines, "") {
		if got, err := s.r.ReadString('\n'); got != want+"\n" {
			s.t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
}

// Each event is seen before the next is published.
func TestEventByEvent(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		b := newBroker()
		s := e.Start(t, b.handler())
		one := subscribe(t, s)
		for i := range 20 {
			s.Expect(t, "POST", "/publish", fmt.Sprint("event ", i), 200, "sent to 1\n")
			one.expect(fmt.Sprint("data: event ", i))
		}
		two := subscribe(t, s)
		s.Expect(t, "POST", "/publish", "two\nlines", 200, "sent to 2\n")
		one.expect("data: two", "data: lines")
		two.expect("data: two", "data: lines")
		s.Expect(t, "POST", "/publish", "a\rid: 7\r\nevent: b\r\r\n", 200, "sent to 2\n")
		one.expect("data: a", "data: id: 7", "data: event: b", "data: ", "data: ")
		two.expect("data: a", "data: id: 7", "data: event: b", "data: ", "data: ")
		big := strings.Repeat("x", 60000)
		s.Expect(t, "POST", "/publish", big, 200, "sent to 2\n")
		one.expect("data: " + big)
		two.expect("data: " + big)
		one.leave()
		engines.Eventually(t, "the first handler has ended", func() bool { return b.count() == 1 })
		s.Expect(t, "POST", "/publish", "last", 200, "sent to 1\n")
		two.expect("data: last")
		two.leave()
		engines.Eventually(t, "the second handler has ended", func() bool { return b.count() == 0 })
	})
}

// A client that only sends FIN has left too: net/http ends the context.
func TestHalfClose(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		b := newBroker()
		s := e.Start(t, b.handler())
		c := s.Dial(t)
		fmt.Fprint(c, "GET /events HTTP/1.1\r\nHost: h\r\n\r\n")
		engines.Eventually(t, "it has subscribed", func() bool { return b.count() == 1 })
		c.(interface{ CloseWrite() error }).CloseWrite()
		engines.Eventually(t, "the handler has ended", func() bool { return b.count() == 0 })
	})
}

// On chert, open streams do not delay a Shutdown.
func TestShutdown(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		if e == engines.NetHTTP {
			t.Skip("its handlers are not notified")
		}
		b := newBroker()
		s := e.Start(t, b.handler())
		one := subscribe(t, s)
		ctx, cancel := context.WithTimeout(context.Background(), engines.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if n := b.count(); n != 0 {
			t.Errorf("%d handlers have not ended", n)
		}
		if rest, err := io.ReadAll(one.r); err != nil || len(rest) > 0 {
			t.Errorf("the stream ended with %q, %v", rest, err)
		}
	})
}

func TestManySubscribers(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		b := newBroker()
		s := e.Start(t, b.handler())
		var all []*subscriber
		for range 100 {
			all = append(all, subscribe(t, s))
		}
		for i := range 5 {
			s.Expect(t, "POST", "/publish", fmt.Sprint(i), 200, "sent to 100\n")
			for _, one := range all {
				one.expect(fmt.Sprint("data: ", i))
			}
		}
		for _, one := range all {
			one.leave()
		}
		engines.Eventually(t, "all handlers have ended", func() bool { return b.count() == 0 })
	})
}

func TestSame(t *testing.T) {
	engines.Same(t, func() http.Handler { return newBroker().handler() }, nil,
		"GET / HTTP/1.1\nHost: h\n\n",
		"HEAD / HTTP/1.1\nHost: h\n\n",
		"POST /publish HTTP/1.1\nHost: h\nContent-Length: 5\n\nhello",
		"GET /publish HTTP/1.1\nHost: h\n\n",
	)
}
