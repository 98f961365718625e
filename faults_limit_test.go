package chert

import (
	"io"
	"net/http"
	"testing"
)

// refusedPlace waits for the 503 of a connection that has not asked for
// anything yet.
func (c *faultConn) refusedPlace() {
	c.t.Helper()
	res, body := c.response("GET")
	if res.StatusCode != 503 || !res.Close || res.Header.Get("Retry-After") == "" {
		c.t.Fatalf("got %v %v %q, want a 503", res.Status, res.Header, body)
	}
	c.closed()
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
			engines(t, func(t *testing.T, e Engine) {
				fs := new(faultServer)
				h := newBlocking()
				s := &Server{Engine: e, Handler: h, MaxConns: 2}
				fs.count(s)
				if tt.foreign {
					fs.testServer = startOn(t, s, smallSockets(t, 64<<10))
				} else {
					fs.testServer = start(t, s)
				}
				a, b := fs.dial(), fs.dial()
				for _, c := range []*faultConn{a, b} {
					c.send(blockGet)
					await(t, h.entered, "the handler")
				}
				// Full: those who wait are told so in the end, each of them.
				for range 3 {
					fs.dial().refusedPlace()
				}
				// Those who have a place keep it.
				close(h.leave)
				a.status(200)
				b.status(200)
				a.send(blockGet[:1])
				// A place becomes free: the next one gets it, however long the
				// server has been refusing.
				b.Close()
				eventually(t, "the close is noticed", func() bool { return fs.ended.Load() == 1 })
				c := fs.dial()
				c.send(faultGet)
				c.status(200)
				if n := fs.opened.Load(); n != 3 {
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
	engines(t, func(t *testing.T, e Engine) {
		fs := faultStart(t, &Server{Engine: e, Handler: faultOK, MaxConns: 1})
		eventually(t, "a waiting connection was served", func() bool {
			holder := fs.dial()
			holder.send(faultGet)
			if res, _ := holder.response("GET"); res.StatusCode != 200 {
				return false // the place of the last try is not free yet
			}
			waiter := fs.dial()
			defer waiter.Close()
			if _, err := io.WriteString(waiter, faultGet); err != nil {
				return false
			}
			holder.Close()
			res, err := http.ReadResponse(waiter.r, nil)
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
	engines(t, func(t *testing.T, e Engine) {
		h := newBlocking()
		s := &Server{Engine: e, Handler: h, MaxConns: 1}
		var all []*faultServer
		for range 3 {
			fs := new(faultServer)
			if len(all) == 0 {
				fs.count(s)
			}
			fs.testServer = startOn(t, s, smallSockets(t, 64<<10))
			all = append(all, fs)
		}
		for i := range 6 {
			fs := all[i%len(all)]
			c := fs.dial()
			c.send(blockGet)
			await(t, h.entered, "the handler")
			all[(i+1)%len(all)].dial().refusedPlace()
			h.leave <- true
			c.status(200)
			c.Close()
			eventually(t, "the close is noticed", func() bool { return all[0].ended.Load() == int64(i+1) })
			eventually(t, "the place is free", func() bool { return s.gate.Open() == 0 })
		}
	})
}

func TestFaultsMaxConnsPerAddr(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		fs := faultStart(t, &Server{Engine: e, Handler: faultOK, MaxConnsPerAddr: 2})
		a, b := fs.dial(), fs.dial()
		for _, c := range []*faultConn{a, b} {
			c.send(faultGet)
			c.status(200)
		}
		for range 3 {
			fs.dial().refusedPlace()
		}
		a.Close()
		eventually(t, "the close is noticed", func() bool { return fs.ended.Load() == 1 })
		eventually(t, "the address has a place again", func() bool {
			c := fs.dial()
			c.send(faultGet)
			res, _ := c.response("GET")
			return res.StatusCode == 200
		})
		b.send(faultGet)
		b.status(200)
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
	fs := faultStart(t, &Server{Engine: EngineGoroutines, Handler: h, Workers: 2, QueueLength: 2})
	busy := []*faultConn{fs.dial(), fs.dial()}
	for _, c := range busy {
		c.send(blockGet)
		await(t, h.entered, "the handler")
	}
	var waiting []*faultConn
	for range 2 {
		c := fs.dial()
		c.send(blockGet)
		waiting = append(waiting, c)
	}
	// The connections are accepted in order, so the queue is full now.
	for range 3 {
		fs.dial().refusedPlace()
	}
	select {
	case <-h.entered:
		t.Error("more handlers run than there are workers")
	default:
	}
	close(h.leave)
	// All are answered. Those for whose place others waited are not kept.
	for _, c := range busy {
		c.status(200)
		c.closed()
	}
	for _, c := range waiting {
		c.status(200)
		c.Close()
	}
	fs.alive()
}

// A worker that waits for the next request of a kept connection gives it up
// when somebody else wants to be served.
func TestFaultsWorkersKeptConnGivesWay(t *testing.T) {
	t.Parallel()
	fs := faultStart(t, &Server{Engine: EngineGoroutines, Handler: faultOK, Workers: 1, IdleTimeout: -1})
	var last *faultConn
	for range 5 {
		c := fs.dial()
		c.send(faultGet)
		c.status(200)
		if last != nil {
			last.closed()
		}
		last = c
	}
	// Nobody waits: it is kept.
	last.send(faultGet)
	last.status(200)
}

// A handler that ends its goroutine must not take a worker with it.
func TestFaultsWorkersGoexit(t *testing.T) {
	t.Parallel()
	fs := faultStart(t, &Server{Engine: EngineGoroutines, Workers: 1, Handler: goexits})
	for range 3 {
		c := fs.dial()
		c.send("GET /goexit HTTP/1.1\r\nHost: h\r\n\r\n")
		c.closed()
		fs.alive()
	}
}
