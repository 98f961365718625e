package behave

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestDrain: while a server drains, clients that are busy lose no request: the next one of each
// connection is served and is its last, also if its response was begun before.
func TestDrain(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts, running, release := waiter(t, e)
		idle, active, silent := ts.Dial(), ts.Dial(), ts.Dial()
		idle.Get("/")
		silent.Get("/")
		active.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, running, "the handler")
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() { ended <- ts.Server.Drain(ctx, time.Hour) }()
		ts.Refuses()
		if res, body := idle.Get("/"); body != "answer" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		idle.Ended()
		close(release)
		if res, body := active.Response("GET"); body != "answer" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		active.Ended()
		select {
		case err := <-ended:
			t.Fatalf("Drain did not wait: %v", err)
		default:
		}
		cancel()
		if err := servertest.Await(t, ended, "Drain"); err != context.Canceled {
			t.Errorf("got %v", err)
		}
		silent.Ended()
		if l, err := ts.Server.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Error(err)
		} else if err := ts.Server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// TestDrainSpread: connections that are idle end one after another, and Drain ends with the last.
func TestDrainSpread(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts, _, _ := waiter(t, e)
		var all []*servertest.Client
		for range 40 {
			c := ts.Dial()
			c.Get("/")
			all = append(all, c)
		}
		stopping := ts.Inside().Stopping()
		early := make(chan bool, len(all))
		for _, c := range all {
			go func() {
				c.Rest()
				select {
				case <-stopping:
					early <- false
				default:
					early <- true
				}
			}()
		}
		if err := ts.Server.Drain(context.Background(), 2*time.Second); err != nil {
			t.Error(err)
		}
		n := 0
		for range all {
			if servertest.Await(t, early, "the end of a connection") {
				n++
			}
		}
		if n == 0 {
			t.Error("all connections ended at the end")
		}
	})
}

// TestDrainAtOnce: without a time it is Shutdown.
func TestDrainAtOnce(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts, _, _ := waiter(t, e)
		idle := ts.Dial()
		idle.Get("/")
		if err := ts.Server.Drain(context.Background(), 0); err != nil {
			t.Error(err)
		}
		idle.Ended()
	})
}
