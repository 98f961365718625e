package http3_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Without keep-alives, and when the server drains, a request is the last of its connection, whose event
// streams go on.
func TestLastRequest(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, s *running){
		"SetKeepAlivesEnabled": func(_ context.Context, s *running) { s.SetKeepAlivesEnabled(false) },
		"Drain":                func(ctx context.Context, s *running) { go s.Drain(ctx, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, topic := events(t, &eventstream.Options{}, &chert.Server{})
			c := s.raw()
			e := c.open(true, headers(path(get, "/events")...))
			servertest.Eventually(t, "it is open", func() bool { return topic.Len() == 1 })
			away := c.goAways()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end(ctx, s)
			servertest.Eventually(t, "requests are rejected", func() bool {
				got := c.get("/").ending()
				if got != "200" && got != "RESET H3_REQUEST_REJECTED" {
					t.Fatal(got)
				}
				return got != "200"
			})
			publish(t, topic, "end")
			e.upTo("end\n\n")
			e.CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
			if got := c.ended(); got != "CLOSE H3_NO_ERROR" {
				t.Error(got)
			}
			if ids := <-away; len(ids) != 2 || ids[0] != 1<<62-4 || ids[1] < 8 {
				t.Errorf("GOAWAY %v", ids)
			}
		})
	}
}

// Shutdown gives heads that have come in part, or not at all, five seconds.
func TestShutdownOfHeads(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello), ReadHeaderTimeout: -1})
	c := s.raw()
	silent := c.open(false)
	part := c.open(false, headers(post...)[:5]) // which opens the one before it
	frames := c.open(false, frame(0x21, nil))
	if a := c.get("/"); a.body != "hello" {
		t.Fatalf("%+v", a)
	}
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	if got := part.read().ending(); got != "408" {
		t.Errorf("a part: %s", got)
	}
	for name, e := range map[string]*exchange{"nothing": silent, "no HEADERS": frames} {
		if got := e.read().ending(); got != "RESET H3_REQUEST_INCOMPLETE" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if err := servertest.Await(t, done, "Shutdown"); err != nil {
		t.Error(err)
	}
	if got := c.ended(); got != "CLOSE H3_NO_ERROR" {
		t.Error(got)
	}
}

// "Connection: close" in the answer to a request that the client has cancelled does not concern its others.
func TestConnectionCloseOfCancelled(t *testing.T) {
	t.Parallel()
	began, answered := make(chan bool), make(chan bool)
	c := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			began <- true
			<-r.Context().Done()
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusInternalServerError)
			defer close(answered)
		}
	})}).raw()
	away := c.goAways()
	e := c.open(true, headers(path(get, "/wait")...))
	servertest.Await(t, began, "the handler")
	e.CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
	servertest.Await(t, answered, "its answer")
	for range 20 {
		if got := c.get("/").ending(); got != "200" {
			t.Fatal(got)
		}
	}
	c.CloseWithError(0x100, "")
	if ids := <-away; len(ids) != 0 {
		t.Errorf("GOAWAY %v", ids)
	}
}
