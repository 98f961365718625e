package behave

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// memoryPhases opens a connection in each of its phases.
type memoryPhases struct {
	fresh, partial, late, idle, active *servertest.Client
	release                            chan struct{}
}

func newMemoryPhases(t *testing.T, e chert.Engine) (*engines.Server, *memoryPhases) {
	p := &memoryPhases{release: make(chan struct{})}
	running := make(chan struct{})
	ts, m := engines.StartMemory(t, &chert.Server{Engine: e, ReadHeaderTimeout: -1, IdleTimeout: -1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			running <- struct{}{}
			select {
			case <-p.release:
			case <-r.Context().Done():
			}
		}
		put(w, "answer")
	})})
	p.idle, p.active = m.Patient(t), m.Patient(t)
	p.idle.Get("/")
	p.active.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
	<-running
	p.fresh, p.partial, p.late = m.Patient(t), m.Patient(t), m.Patient(t)
	p.partial.Send("GET / HTTP/1.1\r\n")
	p.late.Send("G")
	synctest.Wait()
	return ts, p
}

// within fails unless d is in the given bounds: net/http checks every half
// second which connections can be closed, and counts in whole seconds.
func within(t *testing.T, what string, d, from, to time.Duration) {
	t.Helper()
	if d < from || d > to {
		t.Errorf("%s after %v, want between %v and %v", what, d, from, to)
	}
}

func TestBubbleShutdown(t *testing.T) {
	t.Parallel()
	const atOnce, netHTTPs = 10 * time.Millisecond, 7 * time.Second
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, p := newMemoryPhases(t, e)
		ended := make(chan time.Duration)
		go func() {
			ended <- servertest.Took(func() {
				if err := ts.Control.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}()
		within(t, "the idle one is closed", servertest.Took(p.idle.Ended), 0, 0)
		time.Sleep(4 * time.Second)
		if e == engines.NetHTTP {
			p.partial.Close()
			p.late.Close()
		} else {
			// Its request may be on the way.
			p.partial.Send("Host: h\r\n\r\n")
			if res, body := p.partial.Response("GET"); body != "answer" || !res.Close {
				t.Errorf("got %v %q", res, body)
			}
			p.partial.Ended()
			within(t, "the late one is refused", servertest.Took(func() {
				if res, _ := p.late.Response("GET"); res.StatusCode != 408 {
					t.Errorf("got %v", res)
				}
			}), time.Second-atOnce, time.Second+atOnce)
			p.late.Ended()
		}
		p.fresh.Ended()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("Shutdown did not wait")
		default:
		}
		time.Sleep(24 * time.Hour)
		close(p.release)
		if res, body := p.active.Response("GET"); body != "answer" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		within(t, "the active one is closed", servertest.Took(p.active.Ended), 0, atOnce)
		within(t, "Shutdown ends", <-ended, 24*time.Hour, 24*time.Hour+netHTTPs)
	})
}

// Two connections that have sent nothing are closed five seconds after
// Shutdown, and with them it ends. net/http counts from the accept.
func TestBubbleShutdownNewConns(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: memoryEcho(t)})
		one, other, served := m.Patient(t), m.Patient(t), m.Patient(t)
		synctest.Wait()
		ended := make(chan time.Duration)
		go func() {
			ended <- servertest.Took(func() {
				if err := ts.Control.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}()
		time.Sleep(4 * time.Second)
		if e == engines.NetHTTP {
			served.Close() // it does not respond any more
		} else {
			// A request that arrives in time is served, and is the last.
			if res, _ := served.Get("/"); res.StatusCode != 200 || !res.Close {
				t.Errorf("got %v", res)
			}
			served.Ended()
		}
		one.Ended()
		other.Ended()
		d := <-ended
		within(t, "Shutdown ends", d, 5*time.Second, 7*time.Second)
		if e != engines.NetHTTP && d != 5*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
	})
}

func TestBubbleShutdownContext(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, p := newMemoryPhases(t, e)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		d := servertest.Took(func() {
			if err := ts.Control.Shutdown(ctx); err != context.DeadlineExceeded {
				t.Errorf("Shutdown returned %v", err)
			}
		})
		if d != 3*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
		// The handler continues; a second Shutdown may wait for it.
		ended := make(chan error)
		go func() { ended <- ts.Control.Shutdown(context.Background()) }()
		time.Sleep(time.Hour)
		close(p.release)
		if _, body := p.active.Response("GET"); body != "answer" {
			t.Errorf("got %q", body)
		}
		p.partial.Close()
		p.late.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestBubbleClose(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, p := newMemoryPhases(t, e)
		d := servertest.Took(func() {
			if err := ts.Control.Close(); err != nil {
				t.Error(err)
			}
			for _, c := range []*servertest.Client{p.fresh, p.partial, p.idle, p.active} {
				c.Ended()
			}
			if err := <-ts.Served; err != http.ErrServerClosed {
				t.Errorf("Serve returned %v", err)
			}
			ts.Served <- http.ErrServerClosed // for start's cleanup
		})
		if d != 0 {
			t.Errorf("Close took %v", d)
		}
	})
}
