package middleware

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert/direct"
)

// held is a handler that stays until it is let go.
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
		h := InFlight(2, &InFlightOptions{RetryAfter: 1500 * time.Millisecond})(inside)
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
		// A panic releases its slot.
		h = InFlight(1, nil)(direct.HandlerFunc(func(*direct.Exchange) { panic(1) }))
		for range 3 {
			if !panics(func() { plain(h, request("GET", "/", "")) }) || !panics(func() { directly(t, h, request("GET", "/", "")) }) {
				t.Error("refused")
			}
		}
	})
	if !panics(func() { InFlight(0, nil) }) {
		t.Error("0 is taken")
	}
}

func TestInFlightQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := newHeld()
		h := InFlight(1, &InFlightOptions{Queue: 2, Wait: time.Minute})(inside)
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
			t.Error("the direct way waited or refused")
		}
		cancel()
		if a := <-answers; a.Status != 503 {
			t.Errorf("who left: %v", a)
		}
		ask(request("GET", "/late", "")) // waits a minute
		inside.leave <- struct{}{}
		<-inside.entered // the first of the queue
		if a := <-answers; a.Status != 200 {
			t.Errorf("got %v", a)
		}
		if a := <-answers; a.Status != 503 { // fake time advances when all else waits
			t.Errorf("who waited too long: %v", a)
		}
		inside.leave <- struct{}{}
		if a := <-answers; a.Status != 200 {
			t.Errorf("got %v", a)
		}
	})
}
