package proxy

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestQueue: a server gets no more requests than its limit; others wait, or are refused.
func TestQueue(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		release := make(chan bool, 5)
		var mu sync.Mutex
		now, most := 0, 0
		o := start(t, func(c *conn) {
			for {
				if _, _, ok := c.request(); !ok {
					return
				}
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				c.wait(release)
				mu.Lock()
				now--
				mu.Unlock()
				c.put(ok)
			}
		})
		s := &setup{}
		s.up.MaxRequests, s.up.Queue, s.up.QueueTimeout = 2, 3, servertest.Patience
		ts := s.start(t, e, o.addr())
		var clients []*servertest.Client
		for range 5 {
			c := ts.Dial()
			c.Send(get)
			clients = append(clients, c)
		}
		servertest.Eventually(t, "three in the queue", func() bool { return s.pool.Status()[0].Queue == 3 })
		c := ts.Dial()
		if _, res := ask(c, "/"); res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" ||
			res.Header.Get("Proxy-Status") != "chert; error=connection_limit_reached" {
			t.Errorf("%s %v", res.Status, res.Header)
		}
		servertest.Eventually(t, "two at the server", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return now == 2
		})
		for range 5 {
			release <- true
		}
		for _, c := range clients {
			c.Status(200)
		}
		if most != 2 {
			t.Errorf("%d at a time", most)
		}
	})
}

// TestQueueEnds: what ends the wait in a queue, beside a server that has room.
func TestQueueEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *setup, waiting *servertest.Client)
		want string // in the log
	}{
		{"too long", func(*setup, *servertest.Client) {}, "queued too long"},
		{"closed", func(s *setup, _ *servertest.Client) { s.o.Upstream.Close() }, "no server available"},
		{"client gone", func(_ *setup, waiting *servertest.Client) { waiting.Reset() }, "status=499"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				release := make(chan bool)
				o := start(t, func(c *conn) { c.request(); c.wait(release); c.put(ok) })
				s := &setup{}
				s.up.MaxRequests, s.up.Queue, s.up.QueueTimeout = 1, 2, servertest.Patience
				if c.name == "too long" {
					s.up.QueueTimeout = 20 * time.Millisecond
				}
				ts := s.start(t, e, o.addr())
				first := ts.Dial()
				first.Send(get)
				servertest.Eventually(t, "one in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 1 })
				all := []*servertest.Client{ts.Dial(), ts.Dial()}
				for i, client := range all {
					client.Send(get)
					if c.name != "too long" {
						servertest.Eventually(t, "one more in the queue", func() bool { return s.pool.Status()[0].Queue == i+1 })
					}
				}
				c.end(s, all[0])
				servertest.Eventually(t, "the log", func() bool { return strings.Contains(s.log.String(), c.want) })
				if c.name == "client gone" {
					servertest.Eventually(t, "one in the queue", func() bool { return s.pool.Status()[0].Queue == 1 })
					close(release)
					all[1].Status(200)
				} else {
					all[0].Status(503)
					all[1].Status(503)
					close(release)
				}
				first.Status(200)
			})
		})
	}
}

// TestStormQueue: clients of both versions come and leave, wait too long or not, and servers die. All are
// answered that stay, and nothing is left in the queue.
func TestStormQueue(t *testing.T) {
	o := start(t, func(c *conn) {
		for {
			if _, _, ok := c.request(); !ok || rand.IntN(20) == 0 {
				return
			}
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond) // what a request costs the server
			c.put(ok200)
		}
	})
	s := &setup{}
	s.up.MaxRequests, s.up.Queue, s.up.QueueTimeout, s.up.Health.Off = 2, 12, 4*time.Millisecond, true
	ts := http2Server(t, chert.EngineAuto, s.handler(t, o.addr()))
	client := h2c(t)
	sum := storms(ts.ListenAddr, 24, *storm, func(c *stormClient, k, i int) {
		switch {
		case rand.IntN(10) == 0:
			if c.close(); k%2 == 0 {
				nc, err := net.Dial("tcp", ts.ListenAddr)
				if err == nil {
					io.WriteString(nc, get)
					nc.Close()
				}
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(4000))*time.Microsecond)
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, "GET", "http://"+ts.ListenAddr+"/", nil)
			if res, err := client.Do(r); err == nil {
				res.Body.Close()
			}
		case k%2 == 0:
			c.do("GET", "/", "")
		default:
			res, err := client.Get("http://" + ts.ListenAddr + "/")
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	if sum[200] == 0 || sum[503] == 0 || sum[0] > 0 {
		t.Errorf("by status: %v", sum)
	}
	t.Logf("by status, of clients of HTTP/1: %v", sum)
	servertest.Eventually(t, "nothing is left", func() bool {
		st := s.pool.Status()[0]
		return st.Queue == 0 && st.Servers[0].InFlight == 0
	})
}
