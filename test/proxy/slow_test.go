package proxy

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestStormSlow: what toxiproxy does to a connection, at random, between the clients and the proxy and between it and the
// server: latency and pieces on both sides and in both directions, and towards the server an end or a reset after some bytes.
// Bodies are whole and right, or visibly not.
func TestStormSlow(t *testing.T) {
	t.Run("loops", func(t *testing.T) { stormSlow(t, chert.EngineLoops) })
	t.Run("goroutines", func(t *testing.T) { stormSlow(t, chert.EngineGoroutines) })
}

func stormSlow(t *testing.T, e chert.Engine) {
	text := strings.Repeat("0123456789abcdef", 4096)
	sized := func(path string) string { return text[:len(path)*1000%len(text)] }
	server := startPeers(t, func(nc net.Conn) { serveSized(nc, sized) })
	network := startPeers(t, func(nc net.Conn) { relay(nc, server, true) })
	s := &setup{}
	s.up.Health.Off = true
	ts := s.start(t, e, network)
	front := startPeers(t, func(nc net.Conn) { relay(nc, ts.ListenAddr, false) })

	n := *storm / 10 / 32 * 32
	sum := storms(front, 32, n, func(c *stormClient, k, i int) {
		path, method, body := "/"+strings.Repeat("x", (k*31+i)%60), "GET", ""
		if (k+i)%3 == 0 {
			method, body = "POST", sized(path)
		}
		if status, got := c.do(method, path, body); status == 200 && got != sized(path) {
			t.Errorf("%s %s: a response of %d bytes looks whole and is not", method, path, len(got))
		}
	})
	if sum[400] > 0 {
		t.Errorf("%d requests looked whole and were not", sum[400])
	}
	if sum[200] == 0 || sum[200]+sum[0]+sum[502] != n {
		t.Errorf("of %d, by status: %v", n, sum)
	}
	t.Logf("by status, 0 is cut off: %v", sum)
}

// serveSized answers each request with what its path says, and a POST with another body with 400.
func serveSized(nc net.Conn, sized func(path string) string) {
	c := &conn{Conn: nc, r: bufio.NewReader(nc)}
	for {
		r, body, ok := c.request()
		if !ok {
			return
		}
		want := sized(r.URL.Path)
		switch {
		case r.Method == "POST" && body != want:
			c.put("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		case len(r.URL.Path)%2 == 0:
			c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(want), want))
		default:
			c.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			if want != "" {
				c.put(fmt.Sprintf("%x\r\n%s\r\n", len(want), want))
			}
			c.put("0\r\n\r\n")
		}
	}
}

// startPeers serves each connection to the address by f, which ends when the connection is closed.
func startPeers(t *testing.T, f func(nc net.Conn)) (addr string) {
	l := servertest.ListenTCP(t)
	open, mu, wait := map[net.Conn]bool{}, sync.Mutex{}, sync.WaitGroup{}
	wait.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[nc] = true
			mu.Unlock()
			wait.Go(func() {
				f(nc)
				nc.Close()
				mu.Lock()
				defer mu.Unlock()
				delete(open, nc)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for nc := range open {
			nc.Close()
		}
		mu.Unlock()
		wait.Wait()
	})
	return l.Addr().String()
}

// relay passes on what comes from nc and what comes for it, slowly and in pieces, until one of both ends; cut: some of what
// comes for nc is its last, without what follows or with a reset.
func relay(nc net.Conn, addr string, cut bool) {
	to, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	defer to.Close()
	wait.Go(func() {
		pump(to, nc, -1)
		to.Close()
		nc.Close()
	})
	left := -1
	if cut {
		left = rand.IntN(2_000_000)
	}
	if pump(nc, to, left) && rand.IntN(2) == 0 {
		nc.(*net.TCPConn).SetLinger(0)
	}
	nc.Close()
}

// pump reports whether it has ended after left bytes, of which there is no end if they are negative.
func pump(to io.Writer, from io.Reader, left int) bool {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b[:1+rand.IntN(len(b))])
		if left >= 0 && n >= left {
			to.Write(b[:left])
			return true
		}
		if left >= 0 {
			left -= n
		}
		if rand.IntN(8) == 0 {
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond) // a slow network
		}
		if _, e := to.Write(b[:n]); e != nil || err != nil {
			return false
		}
	}
}
