package proxy

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// storm is the size of the tests of this file; the counts of docs/measurements are of 1000000.
var storm = flag.Int("proxy.storm", 3000, "requests of each test under faults")

// notRetried is the log's line of a POST that a server may have acted on.
var notRetried = regexp.MustCompile(`level=WARN msg="[^"]*; POST, sent, (retried 1, )?not retried: not idempotent"`)

// stormClient sends one request after the other, and counts how they end.
type stormClient struct {
	addr  string
	nc    net.Conn
	r     *bufio.Reader
	other map[int]int // responses by status; 0: cut off, or none
}

// do returns the body, and the status: 0 if the response is not whole.
func (c *stormClient) do(method, path, body string) (int, string) {
	status, got := c.once(method, path, body)
	if c.other == nil {
		c.other = map[int]int{}
	}
	c.other[status]++
	return status, got
}

func (c *stormClient) once(method, path, body string) (int, string) {
	if c.nc == nil {
		nc, err := net.Dial("tcp", c.addr)
		if err != nil {
			return 0, ""
		}
		c.nc, c.r = nc, bufio.NewReader(nc)
	}
	fmt.Fprintf(c.nc, "%s %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.close()
		return 0, ""
	}
	b, err := io.ReadAll(res.Body)
	if err != nil || res.Close {
		c.close()
	}
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, string(b)
}

func (c *stormClient) close() {
	if c.nc != nil {
		c.nc.Close()
		c.nc = nil
	}
}

// storms runs n requests by clients at the same time, and adds up how they ended.
func storms(addr string, clients, n int, f func(c *stormClient, client, i int)) map[int]int {
	var wait sync.WaitGroup
	sum, mu := map[int]int{}, sync.Mutex{}
	for k := range clients {
		wait.Go(func() {
			c := &stormClient{addr: addr}
			defer c.close()
			for i := range n / clients {
				f(c, k, i)
			}
			mu.Lock()
			defer mu.Unlock()
			for status, n := range c.other {
				sum[status] += n
			}
		})
	}
	wait.Wait()
	return sum
}

// TestStormDying: servers die and come back in turn. No GET fails; no POST is served twice, and
// those that fail are the ones that a server may have acted on.
func TestStormDying(t *testing.T) { overEach(t, stormDying) }

func stormDying(t *testing.T, secure bool) {
	var mu sync.Mutex
	served := map[string]int{}
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
			c.put(ok200)
		}
	}
	var origins [3]*origin
	var addrs []string
	for i := range origins {
		origins[i] = startAt(t, freeport.Addr(t), secure, serve)
		addrs = append(addrs, origins[i].addr())
	}
	s := &setup{}
	s.over(t, secure)
	ts := s.start(t, chert.EngineLoops, addrs...)
	var done atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for round := 0; done.Load() < int64(*storm)*9/10; round++ {
			from := done.Load()
			servertest.Eventually(t, "requests", func() bool { return done.Load() >= min(from+500, int64(*storm)*9/10) })
			o := origins[round%3]
			o.close()
			servertest.Eventually(t, "requests", func() bool { return done.Load() >= min(from+1000, int64(*storm)*9/10) })
			origins[round%3] = startAt(t, o.addr(), secure, serve)
		}
	}()
	var gets, posts atomic.Int64
	sum := storms(ts.ListenAddr, 32, *storm, func(c *stormClient, k, i int) {
		method, failed := "GET", &gets
		body := ""
		if (k+i)%2 == 1 {
			method, failed, body = "POST", &posts, fmt.Sprint(k, " ", i)
		}
		if status, _ := c.do(method, "/", body); status != 200 {
			failed.Add(1)
		}
		done.Add(1)
	})
	<-ended
	twice := 0
	mu.Lock()
	defer mu.Unlock()
	for _, n := range served {
		if n > 1 {
			twice++
		}
	}
	mayBe := len(notRetried.FindAllString(s.log.String(), -1))
	if gets.Load() > 0 || twice > 0 || posts.Load() != int64(mayBe) {
		t.Errorf("%d GETs failed, %d POSTs were served twice, %d failed, of which %d may have been served", gets.Load(), twice, posts.Load(), mayBe)
	}
	t.Logf("by status: %v; %d POSTs failed, of which a server may have acted on %d", sum, posts.Load(), mayBe)
}

const ok200 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestStormWaiters: requests wait in the queue of a server that dies. All are answered.
func TestStormWaiters(t *testing.T) {
	n := min(*storm/100, 10_000)
	o := start(t, func(c *conn) { c.head(); c.wait(nil) })
	s := &setup{}
	s.up.MaxRequests, s.up.Queue, s.up.QueueTimeout = 1, n, time.Minute
	ts := s.start(t, chert.EngineLoops, o.addr())
	dead := make(chan struct{})
	go func() {
		defer close(dead)
		// The server may be about to accept the connection of the one that does not wait.
		servertest.Eventually(t, "waiting requests", func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return len(o.conns) > 0 && s.pool.Status()[0].Queue >= n/2
		})
		o.l.Close()
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, c := range o.conns {
			c.Close()
		}
	}()
	begin := time.Now()
	sum := storms(ts.ListenAddr, n, n, func(c *stormClient, _, _ int) { c.do("GET", "/", "") })
	<-dead
	if sum[502]+sum[503] != n {
		t.Errorf("of %d requests by status: %v", n, sum)
	}
	t.Logf("of %d requests by status: %v, in %v", n, sum, time.Since(begin))
}

// TestStormReload: a new configuration again and again, while tunnels are used.
func TestStormReload(t *testing.T) {
	tunnels := min(*storm/100, 1000)
	o := start(t, func(c *conn) {
		c.head()
		c.put("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
		io.Copy(c, c.r)
	})
	s := &setup{}
	var current atomic.Pointer[http.Handler]
	first := s.handler(t, o.addr())
	current.Store(&first)
	ts := engines.Start(t, &chert.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*current.Load()).ServeHTTP(w, r) })})
	var all []net.Conn
	for range tunnels {
		nc, err := net.Dial("tcp", ts.ListenAddr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
		r := bufio.NewReader(nc)
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 101 {
			t.Fatal(res, err)
		}
		all = append(all, nc)
	}
	closed, reloads := 0, max(2, min(*storm/25_000, 30))
	old := s.o.Upstream
	for i := range reloads {
		u, err := s.pool.Upstream(&s.up)
		if err != nil {
			t.Fatal(err)
		}
		options := s.o
		options.Upstream = u
		h, err := proxy.New(&options)
		if err != nil {
			t.Fatal(err)
		}
		next := http.Handler(h)
		current.Store(&next)
		old.Close()
		old = u
		for _, nc := range all {
			text := fmt.Sprintf("%08d", i)
			io.WriteString(nc, text)
			b := make([]byte, len(text))
			if _, err := io.ReadFull(nc, b); err != nil || string(b) != text {
				closed++
			}
		}
	}
	if closed > 0 {
		t.Errorf("%d of %d tunnels were closed by %d reloads", closed, tunnels, reloads)
	}
	t.Logf("%d tunnels, %d reloads, %d closed", tunnels, reloads, closed)
}

// TestStormOverload: more requests than a server takes. Those that are not served are refused
// at once, and the server always has as many as it may.
func TestStormOverload(t *testing.T) {
	const most = 8
	total := int64(*storm / 50)
	// rate is over when the server has served total: what clients do when others have ended says nothing
	// of an overload.
	rate := func(clients int) (served, refused int, took time.Duration) {
		var now, peak atomic.Int64
		o := start(t, func(c *conn) {
			for {
				if _, _, ok := c.request(); !ok {
					return
				}
				peak.Store(max(peak.Load(), now.Add(1)))
				time.Sleep(5 * time.Millisecond) // what a request costs the server
				now.Add(-1)
				c.put(ok200)
			}
		})
		s := &setup{}
		s.up.MaxRequests, s.up.Queue, s.up.QueueTimeout = most, 2*most, time.Second
		ts := s.start(t, chert.EngineLoops, o.addr())
		begin := time.Now()
		var done atomic.Int64
		var last atomic.Int64
		sum := storms(ts.ListenAddr, clients, clients, func(c *stormClient, _, _ int) {
			for done.Load() < total {
				if status, _ := c.do("GET", "/", ""); status == 200 && done.Add(1) == total {
					last.Store(int64(time.Since(begin)))
				}
			}
		})
		for status, n := range sum {
			if status != 200 && status != 503 {
				t.Errorf("%d responses of status %d", n, status)
			}
		}
		if peak.Load() > most {
			t.Errorf("the server had %d at a time", peak.Load())
		}
		return int(total), sum[503], time.Duration(last.Load())
	}
	for _, clients := range []int{most, 2 * most, 6 * most} {
		served, refused, took := rate(clients)
		t.Logf("%d clients for %d places: %d served, %d refused, %.0f served a second", clients, most, served, refused, float64(served)/took.Seconds())
	}
}
