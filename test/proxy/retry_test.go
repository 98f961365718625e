package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// once answers one request of each connection, and closes it without a word for later ones.
func once(response string) func(c *conn) {
	return func(c *conn) {
		if _, _, ok := c.request(); ok {
			c.put(response)
			c.request()
		}
	}
}

func post(body string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// TestRetry tests the table of package retry, with a second server that always answers. The
// first server gets the first request since the policy takes them in turn.
func TestRetry(t *testing.T) {
	// Closed without a byte of a response, after the request was read.
	silent := func(c *conn) { c.request() }
	unavailable := each("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno")
	slow := func(c *conn) {
		for c.head() != "" {
		}
	}
	large := strings.Repeat("x", 100_000)
	table := []struct {
		name  string
		retry proxy.Retry
		in    string
		first func(c *conn) // nil: refuses connections
		want  string        // a part of the log line, if not "200"
	}{
		{"GET, refused", proxy.Retry{}, get, nil, "200"},
		{"POST, refused", proxy.Retry{}, post("x"), nil, "200"},
		{"large POST, refused", proxy.Retry{}, post(large), nil, "200"},
		{"GET, refused, off", proxy.Retry{Off: true}, get, nil, "connection refused"},
		{"GET, closed", proxy.Retry{}, get, silent, "200"},
		{"PUT, closed", proxy.Retry{}, strings.Replace(post("x"), "POST", "PUT", 1), silent, "200"},
		{"large PUT, closed", proxy.Retry{}, strings.Replace(post(large), "POST", "PUT", 1), silent, "not retried: body no longer held"},
		{"POST, closed", proxy.Retry{}, post("x"), silent, "POST, sent, not retried: not idempotent"},
		{"POST with a key, closed", proxy.Retry{Keys: true}, strings.Replace(post("x"), "Host", "Idempotency-Key: 1\r\nHost", 1), silent, "200"},
		{"POST with a key, not permitted", proxy.Retry{}, strings.Replace(post("x"), "Host", "Idempotency-Key: 1\r\nHost", 1), silent, "not idempotent"},
		{"GET, 503", proxy.Retry{}, get, unavailable, "503"},
		{"GET, 503, permitted", proxy.Retry{Statuses: true}, get, unavailable, "200"},
		{"POST, 503, permitted for others", proxy.Retry{Statuses: true}, post("x"), unavailable, "503"},
		{"GET, silent", proxy.Retry{}, get, slow, "no response in time"},
		{"GET, silent, permitted", proxy.Retry{Timeouts: true}, get, slow, "200"},
		{"GET, part of a head", proxy.Retry{}, get, func(c *conn) { c.head(); c.put("HTTP/1.1 2") }, "not retried: response begun"},
		{"GET, malformed", proxy.Retry{Statuses: true}, get, func(c *conn) { c.head(); c.put("HTTP/1.1 2\r\n") }, "not retried: response begun"},
	}
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			overEach(t, func(t *testing.T, secure bool) {
				alike(t, func(t *testing.T, e chert.Engine) {
					addr := freeport.Addr(t)
					if c.first != nil {
						addr = startOver(t, secure, c.first).addr()
					}
					second := startOver(t, secure, each(ok))
					s := &setup{}
					s.over(t, secure)
					s.up.Retry = c.retry
					s.up.Balance.Policy = proxy.PolicyRoundRobin
					if strings.Contains(c.name, "silent") {
						s.up.ResponseTimeout = 50 * time.Millisecond
					}
					if c.retry.Timeouts {
						s.up.ResponseTimeout = time.Second // which the second server has to answer, too
					}
					client := s.start(t, e, addr, second.addr()).Dial()
					client.SendAside(c.in)
					res, body := client.Response("GET")
					switch {
					case len(c.want) == 3:
						if got := res.Status; !strings.HasPrefix(got, c.want) {
							t.Errorf("%s, %q; log %s", got, body, s.log)
						}
					case res.StatusCode < 500:
						t.Errorf("%s", res.Status)
					case !strings.Contains(s.log.String(), c.want):
						t.Errorf("%s, log %s", res.Status, s.log)
					}
					if n := strings.Count(second.received(), " HTTP/1.1\r\n"); n != 1 && res.StatusCode == 200 || n != 0 && res.StatusCode != 200 {
						t.Errorf("the second server got %d requests", n)
					}
				})
			})
		})
	}
}

// TestReused tests what happens to a request on a connection that the server closes at that
// moment: it reads the second request, and closes.
func TestReused(t *testing.T) {
	for _, c := range []struct{ name, second, want string }{
		{"GET", get, "200 2"},
		{"PUT", strings.Replace(post("x"), "POST", "PUT", 1), "200 2"},
		{"POST", post("x"), "502 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := start(t, once(ok))
				s := &setup{}
				client := s.start(t, e, o.addr()).Dial()
				client.Send(get)
				client.Response("GET")
				client.Send(c.second)
				res, _ := client.Response("GET")
				if got := fmt.Sprintf("%d %d", res.StatusCode, o.dials()); got != c.want {
					t.Errorf("got %s, want %s; log %s", got, c.want, s.log)
				}
				if c.want[0] == '5' && !strings.Contains(s.log.String(), "; reused, idle ") {
					t.Errorf("log %s", s.log)
				}
				if st := s.pool.Status()[0].Servers[0]; st.State != "up" || st.Failures != 0 {
					t.Errorf("the server is blamed: %+v", st)
				}
			})
		})
	}
}

// TestLargeIdle: a request whose body is not held, so that it cannot be sent again, takes no connection that the server
// may be about to close, whatever its method.
func TestLargeIdle(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, in := range map[string]string{
		"length": strings.Replace(post(large), "POST", "PUT", 1),
		"chunks": strings.Replace(servertest.PostChunks("/", servertest.Chunks(large, 1<<18)), "POST", "PUT", 1),
	} {
		t.Run(name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := start(t, once(ok))
				s := &setup{}
				client := s.start(t, e, o.addr()).Dial()
				client.Send(get)
				client.Response("GET")
				time.Sleep(1100 * time.Millisecond) // what is tested
				client.SendAside(in)
				if res, _ := client.Response("PUT"); res.StatusCode != 200 {
					t.Error(res.Status, s.log)
				}
			})
		})
	}
}

// TestIdleClosed: a connection that the server has closed while it was idle is not used, and
// no request notices.
func TestIdleClosed(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		closed := make(chan bool, 9)
		o := start(t, func(c *conn) {
			c.request()
			c.put(ok)
			c.Close()
			closed <- true
		})
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		for range 5 {
			client.Send(post("x"))
			if res, _ := client.Response("POST"); res.StatusCode != 200 {
				t.Fatalf("%s; log %s", res.Status, s.log)
			}
			<-closed
		}
		if o.dials() != 5 {
			t.Errorf("%d connections", o.dials())
		}
	})
}

// TestIdleCrash: a request that ends its connection says nothing about how long the server keeps idle ones.
func TestIdleCrash(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, once(ok))
		s := &setup{placement: chert.PlacementInline}
		client := s.start(t, e, o.addr()).Dial()
		for range 4 {
			client.Send(get)
			client.Response("GET")
			time.Sleep(110 * time.Millisecond) // the age that might be learned
			client.Send(post(""))
			if res, _ := client.Response("POST"); res.StatusCode != 502 {
				t.Error(res.Status, s.log)
			}
		}
		if got := s.pool.Status()[0].Servers[0].IdleLimit; got != time.Minute {
			t.Error(got)
		}
	})
}

// TestKept tests which connections are used again.
func TestKept(t *testing.T) {
	table := []struct {
		name, response string
		dials          int
	}{
		{"length", ok, 1},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1},
		{"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 1},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", 1},
		{"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 3},
		{"more after it", ok + "H", 3},
		{"another response after it", ok + ok, 3},
		{"1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 3},
		{"1.0, keep-alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 1},
		{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", 3},
	}
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := start(t, each(c.response))
				s := &setup{placement: chert.PlacementInline}
				client := s.start(t, e, o.addr()).Dial()
				for range 3 {
					client.Send(get)
					if res, _ := client.Response("GET"); res.StatusCode >= 400 {
						t.Fatal(res.Status, s.log)
					}
				}
				if o.dials() != c.dials {
					t.Errorf("%d connections, want %d", o.dials(), c.dials)
				}
			})
		})
	}
}

// TestKills stops each of three servers in turn, and starts it again, under the load of 16
// clients. No GET fails; no POST is served twice, and none fails but those that a server had
// read when it was stopped.
func TestKills(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	served := map[string]int{}
	var cut atomic.Int64 // POSTs that were read and not answered
	serve := func(c *conn) {
		for {
			r, body, ok := c.request()
			if !ok {
				return
			}
			if r.Method == "POST" {
				mu.Lock()
				served[body]++
				mu.Unlock()
			}
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil && r.Method == "POST" {
				cut.Add(1)
			}
		}
	}
	var origins [3]*origin
	var addrs []string
	for i := range origins {
		origins[i] = startAt(t, freeport.Addr(t), false, serve)
		addrs = append(addrs, origins[i].addr())
	}
	s := &setup{}
	ts := s.start(t, chert.EngineGoroutines, addrs...)
	var failedGet, failedPost, all atomic.Int64
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			c := &http.Client{Transport: tr}
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				all.Add(1)
				get := (n+i)%2 == 0
				var res *http.Response
				var err error
				if get {
					res, err = c.Get("http://" + ts.ListenAddr + "/")
				} else {
					res, err = c.Post("http://"+ts.ListenAddr+"/", "text/plain", strings.NewReader(fmt.Sprint(i, " ", n)))
				}
				if err == nil {
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				if err != nil || res.StatusCode != 200 {
					if get {
						failedGet.Add(1)
					} else {
						failedPost.Add(1)
					}
				}
			}
		})
	}
	after := func(n int64) {
		from := all.Load()
		servertest.Eventually(t, "requests", func() bool { return all.Load() >= from+n })
	}
	after(200)
	for round := range 6 {
		o := origins[round%3]
		o.close()
		after(200)
		origins[round%3] = startAt(t, o.addr(), false, serve)
		after(200)
	}
	close(stop)
	clients.Wait()
	mu.Lock()
	defer mu.Unlock()
	twice := 0
	for _, n := range served {
		if n > 1 {
			twice++
		}
	}
	// A server that is closed may have read a POST, or be about to: those are not retried.
	if n := strings.Count(s.log.String(), "POST, sent, not retried: not idempotent"); failedPost.Load() != int64(n) {
		t.Errorf("%d POSTs failed, and %d may have been served", failedPost.Load(), n)
	}
	if failedGet.Load() != 0 || twice != 0 {
		t.Errorf("%d GETs failed, %d POSTs were served twice, of %d; log %s", failedGet.Load(), twice, all.Load(), s.log)
	}
	t.Logf("%d requests, %d POSTs cut", all.Load(), failedPost.Load())
}

// TestQuickIdle: a server that closes connections after 30 ms of idleness, or after some
// requests without a warning, fails no GET and no POST that could be saved.
func TestQuickIdle(t *testing.T) {
	t.Parallel()
	// Whether the client is idle after this request. Else it is not to be taken for idle: on a machine so busy
	// that each request takes 30 ms, each would be retried, which is more than the budget of retries allows.
	var idle atomic.Bool
	o := start(t, func(c *conn) {
		for range 5 {
			if _, _, ok := c.request(); !ok {
				return
			}
			c.SetReadDeadline(time.Time{})
			if idle.Load() {
				c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
			}
			c.put(ok)
		}
	})
	s := &setup{}
	ts := s.start(t, chert.EngineGoroutines, o.addr())
	client := ts.Dial()
	for i := range 2000 {
		idle.Store(i%250 == 0)
		client.Send(get)
		if res, _ := client.Response("GET"); res.StatusCode != 200 {
			t.Fatalf("request %d: %s; log %s", i, res.Status, s.log)
		}
		if idle.Load() {
			time.Sleep(time.Duration(25+i/50) * time.Millisecond) // what is tested
		}
	}
}

// TestRetryConnection: a request that is tried at another server gets a new connection there, not
// one that was idle and may be closed too: it has no third chance.
func TestRetryConnection(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		for _, method := range []string{"GET", "POST"} {
			o := start(t, func(c *conn) {
				if _, _, ok := c.request(); ok {
					c.put(ok200)
					c.request() // which ends the connection
				}
			})
			s := &setup{}
			s.up.Balance = proxy.Balance{Policy: proxy.PolicyRoundRobin}
			client := s.start(t, e, o.addr(), freeport.Addr(t)).Dial()
			for range 2 {
				client.Send(method + " / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
				if res, _ := client.Response(method); res.StatusCode != 200 {
					t.Errorf("%s: %s; log %s", method, res.Status, s.log)
				}
			}
		}
	})
}
