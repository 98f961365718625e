package middleware

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert/direct"
)

// held is a handler that does not return until it is released.
type held struct{ entered, leave chan struct{} }

func newHeld() held { return held{make(chan struct{}), make(chan struct{})} }

func (h held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.entered <- struct{}{}
	<-h.leave
	hello.ServeHTTP(w, r)
}

func (h held) ServeDirect(x *direct.Exchange) bool { return hello.ServeDirect(x) }

func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := newHeld()
		h := InFlight(&InFlightOptions{Max: 2, RetryAfter: 1500 * time.Millisecond})(inside)
		answers := make(chan answer)
		for range 2 {
			go func() { answers <- plain(h, request("GET", "/", "")) }()
			<-inside.entered
		}
		if a := plain(h, request("GET", "/", "")); a.Status != 503 || a.Header.Get("Retry-After") != "2" {
			t.Errorf("got %v", a)
		}
		if a, ok := directly(t, h, request("GET", "/", "")); !ok || a.Status != 503 {
			t.Errorf("got %v", a)
		}
		close(inside.leave)
		<-answers
		<-answers
		for range 5 {
			if a, ok := directly(t, h, request("GET", "/", "")); !ok || a.Status != 200 {
				t.Errorf("got %v", a)
			}
		}
		// A panic gives its slot back.
		h = InFlight(&InFlightOptions{Max: 1})(direct.HandlerFunc(func(*direct.Exchange) { panic(1) }))
		for range 3 {
			if !panics(func() { plain(h, request("GET", "/", "")) }) || !panics(func() { directly(t, h, request("GET", "/", "")) }) {
				t.Error("refused")
			}
		}
	})
	for _, tt := range []struct {
		o      *InFlightOptions
		status int // of a request inside of another
		after  string
	}{
		{nil, 200, ""}, {&InFlightOptions{Max: -1}, 200, ""},
		{&InFlightOptions{Max: 1}, 503, "1"}, {&InFlightOptions{Max: 1, Queue: -1, RetryAfter: -1}, 503, ""},
	} {
		mw := InFlight(tt.o)
		var inner answer
		plain(mw(hf(func(http.ResponseWriter, *http.Request) { inner = plain(mw(hello), request("GET", "/", "")) })), request("GET", "/", ""))
		if got := inner.Header.Get("Retry-After"); inner.Status != tt.status || got != tt.after {
			t.Errorf("%+v: got %d, Retry-After %q, want %d, %q", tt.o, inner.Status, got, tt.status, tt.after)
		}
	}
}

func TestInFlightQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := newHeld()
		h := InFlight(&InFlightOptions{Max: 1, Queue: 2, QueueTimeout: time.Minute})(inside)
		answers := make(chan answer, 9)
		ask := func(r *http.Request) { go func() { answers <- plain(h, r) }(); synctest.Wait() }
		go func() { answers <- plain(h, request("GET", "/", "")) }()
		<-inside.entered
		ask(request("GET", "/waits", ""))
		ctx, cancel := context.WithCancel(t.Context())
		ask(request("GET", "/leaves", "").WithContext(ctx))
		if a := plain(h, request("GET", "/", "")); a.Status != 503 {
			t.Errorf("three wait: %v", a)
		}
		if _, ok := directly(t, h, request("GET", "/", "")); ok {
			t.Error("the fast path waited or refused")
		}
		cancel()
		if a := <-answers; a.Status != 503 {
			t.Errorf("the client that left: %v", a)
		}
		ask(request("GET", "/late", "")) // waits a minute
		inside.leave <- struct{}{}
		<-inside.entered // the first of the queue
		if a := <-answers; a.Status != 200 {
			t.Errorf("got %v", a)
		}
		if a := <-answers; a.Status != 503 { // fake time advances when all else waits
			t.Errorf("the client that waited too long: %v", a)
		}
		inside.leave <- struct{}{}
		if a := <-answers; a.Status != 200 {
			t.Errorf("got %v", a)
		}
	})
}
