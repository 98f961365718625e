package proxy

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// summaryHTTP2 is all that a client of HTTP/2 sees of a response.
func summaryHTTP2(res *http.Response, err error) string {
	if err != nil {
		return "no response"
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d", res.StatusCode, res.ContentLength)
	for _, h := range []http.Header{res.Header, res.Trailer} {
		for _, name := range slices.Sorted(maps.Keys(h)) {
			if name != "Date" {
				fmt.Fprintf(&b, " %s=%s", name, h[name])
			}
		}
		b.WriteString(" |")
	}
	fmt.Fprintf(&b, " %q %v", body, err != nil)
	return b.String()
}

// TestFormsAlikeHTTP2 compares what clients of HTTP/2 receive of the same responses by both forms:
// on goroutines, and on loops where there are any.
func TestFormsAlikeHTTP2(t *testing.T) {
	t.Parallel()
	for _, c := range responses {
		if strings.Contains(c.in, "HTTP/1.0") || strings.Contains(c.in, "Upgrade") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			overEach(t, func(t *testing.T, secure bool) {
				var seen []string
				for _, e := range []chert.Engine{chert.EngineGoroutines, chert.EngineAuto} {
					o := startOver(t, secure, func(conn *conn) {
						if conn.head() != "" {
							conn.put(c.out)
						}
					})
					s := &setup{}
					s.over(t, secure)
					s.up.Retry.Off = true
					path := "/"
					if c.name == "201" {
						s.o.StripPrefix, path = "/api", "/api/"
					}
					ts := http2Server(t, e, s.handler(t, o.addr()))
					method, _, _ := strings.Cut(c.in, " ")
					r, err := http.NewRequest(method, "http://"+ts.ListenAddr+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Te", "trailers")
					seen = append(seen, summaryHTTP2(h2c(t).Do(r)))
				}
				if seen[0] != seen[1] {
					t.Errorf("on goroutines\n%s\non loops\n%s", seen[0], seen[1])
				}
			})
		})
	}
}

// TestStormHTTP2: many streams with clients that leave, and servers that break off. Each response is
// whole and the right one, or not whole for the client.
func TestStormHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, func(c *conn) {
		for {
			head := c.head()
			if head == "" {
				return
			}
			id := strings.Fields(head)[1]
			body := strings.Repeat(id+" ", 1+rand.IntN(8000))
			switch rand.IntN(10) {
			case 0:
				return
			case 1:
				c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body)+1, body))
				return
			case 2, 3:
				c.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				for len(body) > 0 {
					n := 1 + rand.IntN(len(body))
					c.put(fmt.Sprintf("%x\r\n%s\r\n", n, body[:n]))
					body = body[n:]
				}
				c.put("0\r\nX: y\r\n\r\n")
			case 4:
				c.put("HTTP/1.1 200 OK\r\n\r\n" + body)
				return
			default:
				c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
			}
		}
	})
	s := &setup{}
	s.up.Health.Off = true
	ts := http2Server(t, chert.EngineAuto, s.handler(t, o.addr()))
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	var whole, cut atomic.Int64
	var wg sync.WaitGroup
	client := h2c(t)
	for k := range 24 {
		wg.Go(func() {
			for i := range rounds {
				id := fmt.Sprintf("/%d-%d", k, i)
				res, err := client.Get("http://" + ts.ListenAddr + id)
				if err != nil {
					cut.Add(1) // a stream that was reset before its head was read
					continue
				}
				if rand.IntN(8) == 0 {
					res.Body.Close()
					continue
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				switch {
				case res.StatusCode == 502:
				case string(body) != strings.Repeat(id+" ", len(body)/len(id)+1)[:len(body)]:
					t.Errorf("%s: another response", id)
				case err != nil:
					cut.Add(1)
				case len(body)%(len(id)+1) != 0:
					t.Errorf("%s: %d bytes, as if they were whole", id, len(body))
				default:
					whole.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if whole.Load() == 0 || cut.Load() == 0 {
		t.Errorf("%d whole, %d cut", whole.Load(), cut.Load())
	}
	servertest.Eventually(t, "no request is in flight", func() bool {
		return s.o.Upstream.Status().Servers[0].InFlight == 0
	})
}

// TestStalledHTTP2: a stream that its client does not read holds a bounded part of the response, and
// others go on.
func TestStalledHTTP2(t *testing.T) {
	t.Parallel()
	const size = 32 << 20
	var sent atomic.Int64
	o := start(t, func(c *conn) {
		for {
			head := c.head()
			if head == "" {
				return
			}
			if strings.HasPrefix(head, "GET /small ") {
				c.put(ok)
				continue
			}
			c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size))
			b := make([]byte, 64<<10)
			for n := 0; n < size; n += len(b) {
				if _, err := c.Write(b); err != nil {
					return
				}
				sent.Add(int64(len(b)))
			}
		}
	})
	s := &setup{}
	ts := http2Server(t, chert.EngineAuto, s.handler(t, o.addr()))
	client := h2c(t)
	res, err := client.Get("http://" + ts.ListenAddr + "/large")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		small, err := client.Get("http://" + ts.ListenAddr + "/small")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(small.Body); string(b) != "ok" || err != nil {
			t.Fatalf("%q, %v", b, err)
		}
		small.Body.Close()
	}
	if n := sent.Load(); n > size*3/4 {
		t.Errorf("%d of %d bytes were read ahead", n, size)
	}
	if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	res.Body.Close()
}

// TestWriteTimeoutHTTP2: a response whose time is over when it comes ends its stream, and the
// connection goes on.
func TestWriteTimeoutHTTP2(t *testing.T) {
	t.Parallel()
	const limit = 50 * time.Millisecond
	o := start(t, func(c *conn) {
		for {
			head := c.head()
			if head == "" {
				return
			}
			if strings.HasPrefix(head, "GET /late ") {
				time.Sleep(3 * limit) // a late server is what is tested
			}
			c.put(ok)
		}
	})
	s := &setup{}
	server := &chert.Server{Handler: s.handler(t, o.addr()), WriteTimeout: limit, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	ts := engines.Start(t, server)
	client := h2c(t)
	if res, err := client.Get("http://" + ts.ListenAddr + "/late"); err == nil {
		t.Errorf("%s", summaryHTTP2(res, err))
	}
	servertest.Eventually(t, "another stream is served", func() bool {
		res, err := client.Get("http://" + ts.ListenAddr + "/")
		if err != nil {
			return false // on a slow machine it may be late too
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		return err == nil && string(body) == "ok"
	})
}

// TestEndlessWriteTimeoutHTTP2: a WriteTimeout with which the time of its end overflows is none.
func TestEndlessWriteTimeoutHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, each(ok))
	s := &setup{}
	server := &chert.Server{
		Handler: s.handler(t, o.addr()), WriteTimeout: math.MaxInt64, Protocols: new(http.Protocols),
	}
	server.Protocols.SetUnencryptedHTTP2(true)
	ts := engines.Start(t, server)
	res, err := h2c(t).Get("http://" + ts.ListenAddr + "/")
	if got := summaryHTTP2(res, err); err != nil || res.StatusCode != http.StatusOK {
		t.Error(err, got)
	}
}
