package faults

import (
	"io"
	"net/http"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// refusedPlace waits for the 503 of a connection that has not asked for
// anything yet.
func refusedPlace(c *servertest.Client) {
	c.T.Helper()
	res, body := c.Response("GET")
	if res.StatusCode != 503 || !res.Close || res.Header.Get("Retry-After") == "" {
		c.T.Fatalf("got %v %v %q, want a 503", res.Status, res.Header, body)
	}
	c.Ended()
	c.Close()
}

func TestFaultsMaxConns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		foreign bool // net.Listen's listener instead of the server's
	}{{"own listener", false}, {"foreign listener", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				fs := new(engines.Counting)
				h := newBlocking()
				s := &chert.Server{Engine: e, Handler: h, MaxConns: 2}
				fs.Count(s)
				if tt.foreign {
					fs.Server = engines.StartOn(t, s, servertest.ListenSmall(t, 64<<10))
				} else {
					fs.Server = engines.Start(t, s)
				}
				a, b := fs.Dial(), fs.Dial()
				for _, c := range []*servertest.Client{a, b} {
					c.Send(blockGet)
					servertest.Await(t, h.entered, "the handler")
				}
				// Full: those who wait are told so in the end, each of them.
				for range 3 {
					refusedPlace(fs.Dial())
				}
				// Those who have a place keep it.
				close(h.leave)
				a.Status(200)
				b.Status(200)
				a.Send(blockGet[:1])
				// A place becomes free: the next one gets it, however long the
				// server has been refusing.
				b.Close()
				servertest.Eventually(t, "the close is noticed", func() bool { return fs.Closed.Load() == 1 })
				c := fs.Dial()
				c.Send(servertest.GET)
				c.Status(200)
				if n := fs.Opened.Load(); n != 3 {
					t.Errorf("%d connections were opened, want 3", n)
				}
			})
		})
	}
}

// A connection that waits while the server is full is served, not refused,
// when a place becomes free in time. Whether it is in time cannot be forced,
// so this tries until it was.
func TestFaultsWaitingConnIsServed(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK, MaxConns: 1})
		servertest.Eventually(t, "a waiting connection was served", func() bool {
			holder := fs.Dial()
			holder.Send(servertest.GET)
			if res, _ := holder.Response("GET"); res.StatusCode != 200 {
				return false // the place of the last try is not free yet
			}
			waiter := fs.Dial()
			defer waiter.Close()
			if _, err := io.WriteString(waiter, servertest.GET); err != nil {
				return false
			}
			holder.Close()
			res, err := http.ReadResponse(waiter.R, nil)
			if err != nil {
				return false // a refusal, cut by a reset
			}
			res.Body.Close()
			if res.StatusCode != 200 && res.StatusCode != 503 {
				t.Errorf("got %v", res.Status)
			}
			return res.StatusCode == 200
		})
	})
}

// The limit is the server's: a listener where nothing happens takes nothing
// from the others.
func TestFaultsMaxConnsOverListeners(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		h := newBlocking()
		s := &chert.Server{Engine: e, Handler: h, MaxConns: 1}
		var all []*engines.Counting
		for range 3 {
			fs := new(engines.Counting)
			if len(all) == 0 {
				fs.Count(s)
			}
			fs.Server = engines.StartOn(t, s, servertest.ListenSmall(t, 64<<10))
			all = append(all, fs)
		}
		for i := range 6 {
			fs := all[i%len(all)]
			c := fs.Dial()
			c.Send(blockGet)
			servertest.Await(t, h.entered, "the handler")
			refusedPlace(all[(i+1)%len(all)].Dial())
			h.leave <- true
			c.Status(200)
			c.Close()
			servertest.Eventually(t, "the close is noticed", func() bool { return all[0].Closed.Load() == int64(i+1) })
			servertest.Eventually(t, "the place is free", func() bool { return testhook.Of(s).Conns() == 0 })
		}
	})
}

func TestFaultsMaxConnsPerAddr(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK, MaxConnsPerAddr: 2})
		a, b := fs.Dial(), fs.Dial()
		for _, c := range []*servertest.Client{a, b} {
			c.Send(servertest.GET)
			c.Status(200)
		}
		for range 3 {
			refusedPlace(fs.Dial())
		}
		a.Close()
		servertest.Eventually(t, "the close is noticed", func() bool { return fs.Closed.Load() == 1 })
		servertest.Eventually(t, "the address has a place again", func() bool {
			c := fs.Dial()
			c.Send(servertest.GET)
			res, _ := c.Response("GET")
			return res.StatusCode == 200
		})
		b.Send(servertest.GET)
		b.Status(200)
	})
}

// blocking is a handler that tells when it runs and ends when it may.
type blocking struct{ entered, leave chan bool }

func newBlocking() *blocking {
	return &blocking{make(chan bool, 100), make(chan bool)}
}

func (h *blocking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/block" {
		h.entered <- true
		<-h.leave
	}
	io.WriteString(w, "ok")
}

const blockGet = "GET /block HTTP/1.1\r\nHost: h\r\n\r\n"

func TestFaultsWorkersAndQueue(t *testing.T) {
	t.Parallel()
	h := newBlocking()
	fs := engines.StartCounting(t, &chert.Server{Engine: chert.EngineGoroutines, Handler: h, Workers: 2, QueueLength: 2})
	busy := []*servertest.Client{fs.Dial(), fs.Dial()}
	for _, c := range busy {
		c.Send(blockGet)
		servertest.Await(t, h.entered, "the handler")
	}
	var waiting []*servertest.Client
	for range 2 {
		c := fs.Dial()
		c.Send(blockGet)
		waiting = append(waiting, c)
	}
	// The connections are accepted in order, so the queue is full now.
	for range 3 {
		refusedPlace(fs.Dial())
	}
	select {
	case <-h.entered:
		t.Error("more handlers run than there are workers")
	default:
	}
	close(h.leave)
	// All are answered. Those for whose place others waited are not kept.
	for _, c := range busy {
		c.Status(200)
		c.Ended()
	}
	for _, c := range waiting {
		c.Status(200)
		c.Close()
	}
	fs.Alive()
}

// A worker that waits for the next request of a kept connection gives it up
// when somebody else wants to be served.
func TestFaultsWorkersKeptConnGivesWay(t *testing.T) {
	t.Parallel()
	fs := engines.StartCounting(t, &chert.Server{Engine: chert.EngineGoroutines, Handler: faultOK, Workers: 1, IdleTimeout: -1})
	var last *servertest.Client
	for range 5 {
		c := fs.Dial()
		c.Send(servertest.GET)
		c.Status(200)
		if last != nil {
			last.Ended()
		}
		last = c
	}
	// Nobody waits: it is kept.
	last.Send(servertest.GET)
	last.Status(200)
}

// A handler that ends its goroutine must not take a worker with it.
func TestFaultsWorkersGoexit(t *testing.T) {
	t.Parallel()
	fs := engines.StartCounting(t, &chert.Server{Engine: chert.EngineGoroutines, Workers: 1, Handler: goexits})
	for range 3 {
		c := fs.Dial()
		c.Send("GET /goexit HTTP/1.1\r\nHost: h\r\n\r\n")
		c.Ended()
		fs.Alive()
	}
}
