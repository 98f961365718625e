package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
)

func TestMain(m *testing.M) { engines.Main(m) }

func TestRoutes(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, handler(engines.Patience))
		s.Expect(t, "GET", "/sleep?for=1ms", "", 200, "slept\n")
		s.Expect(t, "GET", "/sleep?for=x", "", 400, "time: invalid duration \"x\"\n")
		s.Expect(t, "POST", "/sleep", "", 405, "Method Not Allowed\n")
		s = e.Start(t, handler(time.Millisecond))
		for range 3 { // the connection is kept
			s.Expect(t, "GET", "/sleep?for=1h", "", 503, "too slow\n")
		}
		s.Expect(t, "GET", "/unbounded/sleep?for=10ms", "", 200, "slept\n")
	})
}

type hf = http.HandlerFunc

// What the handler does after its time affects no other request.
func TestLate(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		answered, late := make(chan struct{}), make(chan error, 1)
		s := e.Start(t, http.TimeoutHandler(hf(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "too early to be seen")
			<-r.Context().Done()
			<-answered
			w.Header().Set("X-Late", "yes")
			_, err := io.WriteString(w, "too late")
			late <- errors.Join(err, r.Context().Err())
		}), 5*time.Millisecond, "too slow"))
		s.Expect(t, "GET", "/", "", 503, "too slow")
		close(answered)
		err := engines.Await(t, late, "the handler")
		if !errors.Is(err, http.ErrHandlerTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("late: %v", err)
		}
	})
}

// A panic comes out of TimeoutHandler on the server's goroutine.
func TestPanic(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, http.TimeoutHandler(hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/panic" {
				panic("on purpose")
			}
		}), engines.Patience, ""))
		if res, err := s.Client.Get(s.URL + "/panic"); err == nil {
			t.Errorf("got %s", res.Status)
		}
		s.Expect(t, "GET", "/", "", 200, "")
	})
}

// When the client leaves, the handler's context is cancelled; it does not
// expire.
func TestLeaving(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		entered, cause := make(chan struct{}), make(chan error, 1)
		s := e.Start(t, http.TimeoutHandler(hf(func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
			cause <- r.Context().Err()
		}), engines.Patience, ""))
		c := s.Dial(t)
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		engines.Await(t, entered, "the handler")
		c.Close()
		if err := engines.Await(t, cause, "the context"); !errors.Is(err, context.Canceled) {
			t.Errorf("context: %v", err)
		}
	})
}

func TestSame(t *testing.T) {
	engines.Same(t, func() http.Handler { return handler(engines.Patience) }, nil,
		"GET /sleep?for=1us HTTP/1.1\nHost: h\n\n",
		"GET /sleep?for=1us HTTP/1.0\n\n",
		"HEAD /sleep?for=1us HTTP/1.1\nHost: h\n\n",
		"GET /sleep?for=x HTTP/1.1\nHost: h\nContent-Length: 3\n\nabc",
	)
	engines.Same(t, func() http.Handler { return handler(time.Millisecond) }, nil,
		"GET /sleep?for=1h HTTP/1.1\nHost: h\n\n",
		"GET /sleep?for=1h HTTP/1.1\nHost: h\nConnection: close\n\n",
	)
}
