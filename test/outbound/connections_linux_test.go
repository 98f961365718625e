package outbound

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
)

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// Requests follow each other on one connection to the server, on which the client of the
// second is another one.
func TestReuse(t *testing.T) {
	t.Parallel()
	u := start(t, answers(func(n int, head string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", n)
	}))
	g := gatewayTo(t, terms(), u.addr())
	s := g.serve(t)
	for range 3 {
		c := s.Dial()
		for range 3 {
			c.Send(get)
			c.Status(200)
		}
		c.Close()
	}
	// Each loop has connections of its own.
	if d, r := g.servers[0].Dials.Load(), g.servers[0].Reused.Load(); d > uint64(runtime.GOMAXPROCS(0)) || d+r != 9 {
		t.Errorf("%d connections, %d reused", d, r)
	}
}

// What a server must not do to have its connection kept.
func TestNotKept(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"close":      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"1.0":        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"more bytes": ok + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := start(t, answers(func(n int, head string) string {
				if n == 0 {
					return answer
				}
				return ok
			}))
			g := gatewayTo(t, terms(), u.addr())
			c := g.serve(t).Dial()
			for range 3 {
				c.Send(get)
				if got := c.Status(200); got != "ok" {
					t.Errorf("got %q", got)
				}
			}
			if d := g.servers[0].Dials.Load(); d != 2 {
				t.Errorf("%d connections", d)
			}
		})
	}
}

// A server closes a connection when the request is on its way.
func TestClosedWhileReused(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint("again=", again), func(t *testing.T) {
			t.Parallel()
			u := start(t, answers(func(n int, head string) string {
				if strings.Contains(head, "GET /close") && n == 0 {
					return ""
				}
				return ok
			}))
			g := gatewayTo(t, terms(), u.addr())
			g.again = again
			c := g.serve(t).Dial()
			c.Send(get)
			c.Status(200)
			c.Send("GET /close HTTP/1.1\r\nHost: h\r\n\r\n")
			if again {
				c.Status(200)
			} else {
				c.Status(502)
			}
			g.ended(2)
			if len(g.attempts) != 1 || !g.attempts[0].Reused || g.attempts[0].Progress != retry.Sent {
				t.Errorf("attempts %+v", g.attempts)
			}
			c.Send(get) // the client's connection can be used after either
			c.Status(200)
		})
	}
}

func TestNextServer(t *testing.T) {
	t.Parallel()
	u := start(t, answers(func(int, string) string { return ok }))
	g := gatewayTo(t, terms(), freeport.Addr(t), u.addr())
	g.again = false // nothing was sent, so any request may be tried again
	c := g.serve(t).Dial()
	c.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
	// The server of this test reads no bodies: it takes the next head to begin there.
	c.Status(200)
	if done := g.ended(1); done[0] != reason.None || g.attempts[0].Reason != reason.Refused {
		t.Errorf("%v, %+v", done, g.attempts)
	}
}

func TestBody(t *testing.T) {
	t.Parallel()
	u := start(t, func(c *servertest.Client, n int) {
		for {
			r, err := http.ReadRequest(c.R)
			if err != nil {
				return
			}
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(c.Conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
		}
	})
	g := gatewayTo(t, terms(), u.addr())
	c := g.serve(t).Dial()
	for _, n := range []int{1, 100, 4000, 30000, 1, 60000} {
		body := strings.Repeat("b", n)
		c.Send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", n))
		c.Send(body)
		if res, got := c.Response("POST"); res.StatusCode != 501 && got != body {
			// 501 is the handler's on the ordinary path, for a body that had not arrived.
			t.Errorf("%v, %d bytes", res.Status, len(got))
		}
	}
}

func TestPipelined(t *testing.T) {
	t.Parallel()
	u := start(t, answers(func(n int, head string) string {
		path := strings.Fields(head)[1]
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(path), path)
	}))
	g := gatewayTo(t, terms(), u.addr())
	c := g.serve(t).Dial()
	const n = 3000 // more than is read ahead
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i)
	}
	go io.WriteString(c.Conn, all.String())
	for i := range n {
		if got, want := c.Status(200), fmt.Sprint("/", i); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// Times that end a request.
func TestTimes(t *testing.T) {
	t.Parallel()
	const short = int64(50 * time.Millisecond)
	for _, tt := range []struct {
		name   string
		terms  *outbound.Terms
		answer string
		why    reason.Code
		want   string
	}{
		{"response", &outbound.Terms{Response: short}, "HTTP/1.1 200", reason.ResponseTimeout, "HTTP/1.1 502 "},
		{"stall", &outbound.Terms{Stall: short}, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", reason.StallTimeout, "HTTP/1.1 200 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := start(t, func(c *servertest.Client, n int) {
				if _, ok := headOf(c); ok {
					c.Conn.Write([]byte(tt.answer))
					c.R.ReadByte()
				}
			})
			g := gatewayTo(t, tt.terms, u.addr())
			c := g.serve(t).Dial()
			c.Send(get + "BAD\r\n\r\n")
			if got := c.UpToEnd(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q", got)
			}
			if done := g.ended(1); done[0] != tt.why {
				t.Errorf("ended by %v", done)
			}
		})
	}
}

// A client that leaves ends the connection to the server.
func TestClientGone(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"close", "reset", "half"} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s begun=%v", how, begun), func(t *testing.T) {
				t.Parallel()
				asked, left := make(chan struct{}), make(chan struct{})
				u := start(t, func(c *servertest.Client, n int) {
					headOf(c)
					if begun {
						c.Conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"))
					}
					close(asked)
					c.R.ReadByte()
					close(left)
				})
				g := gatewayTo(t, terms(), u.addr())
				c := g.serve(t).Dial()
				c.Send(get)
				servertest.Await(t, asked, "the request")
				if begun {
					c.Head()
				}
				switch how {
				case "close":
					c.Close()
				case "reset":
					c.Reset()
				default:
					c.CloseWrite()
				}
				servertest.Await(t, left, "the server to be left")
				if done := g.ended(1); done[0] != reason.ClientGone {
					t.Errorf("ended by %v", done)
				}
			})
		}
	}
}

// A client that does not read stops the server, by the room in its socket, and gets all bytes
// when it does.
func TestStalledClient(t *testing.T) {
	t.Parallel()
	for _, chunked := range []bool{false, true} {
		t.Run(fmt.Sprint("chunked=", chunked), func(t *testing.T) {
			t.Parallel()
			const size = 48 << 20
			var sent atomic.Int64
			sum := make(chan [32]byte, 1)
			u := start(t, func(c *servertest.Client, n int) {
				if _, ok := headOf(c); !ok {
					return
				}
				if chunked {
					io.WriteString(c.Conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				} else {
					fmt.Fprintf(c.Conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
				}
				h, random := sha256.New(), rand.NewChaCha8([32]byte{1})
				b := make([]byte, 37<<10)
				for left := size; left > 0; {
					p := b[:min(left, 1+rand.IntN(len(b)))]
					random.Read(p)
					h.Write(p)
					if chunked {
						fmt.Fprintf(c.Conn, "%x\r\n", len(p))
					}
					if _, err := c.Conn.Write(p); err != nil {
						return
					}
					if chunked {
						io.WriteString(c.Conn, "\r\n")
					}
					left -= len(p)
					sent.Add(int64(len(p)))
				}
				if chunked {
					io.WriteString(c.Conn, "0\r\n\r\n")
				}
				sum <- [32]byte(h.Sum(nil))
			})
			g := gatewayTo(t, terms(), u.addr())
			c := g.serve(t).DialSmall(64 << 10)
			c.Send(get)
			c.R.ReadByte()
			c.R.UnreadByte()
			// It stands still for as long as it does not read.
			servertest.Eventually(t, "the server stands still", func() bool {
				before := sent.Load()
				time.Sleep(50 * time.Millisecond)
				return sent.Load() == before
			})
			if n := sent.Load(); n > size/2 {
				t.Errorf("%d of %d bytes were read ahead", n, size)
			}
			res, err := http.ReadResponse(c.R, nil)
			if err != nil {
				t.Fatal(err)
			}
			h := sha256.New()
			if n, err := io.Copy(h, res.Body); n != size || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			if want := servertest.Await(t, sum, "the sum"); want != [32]byte(h.Sum(nil)) {
				t.Error("other bytes")
			}
			c.Send(get)
			c.Reset()
		})
	}
}

// Many clients, and servers that do all of the above at random: each response is whole and
// the right one, or cut off.
func TestStorm(t *testing.T) {
	t.Parallel()
	serve := func(c *servertest.Client, n int) {
		for {
			head, ok := headOf(c)
			if !ok {
				return
			}
			id := strings.Fields(head)[1]
			body := strings.Repeat(id+" ", 1+rand.IntN(4000))
			switch rand.IntN(12) {
			case 0:
				return
			case 1:
				c.Reset()
				return
			case 2:
				fmt.Fprintf(c.Conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body)+1, body)
				return
			case 3:
				fmt.Fprintf(c.Conn, "HTTP/1.1 200 OK\r\n\r\n%s", body)
				return
			case 4, 5, 6:
				io.WriteString(c.Conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				for len(body) > 0 {
					n := 1 + rand.IntN(len(body))
					fmt.Fprintf(c.Conn, "%x\r\n%s\r\n", n, body[:n])
					body = body[n:]
				}
				io.WriteString(c.Conn, "0\r\n\r\n")
			default:
				fmt.Fprintf(c.Conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			}
		}
	}
	a, b := start(t, serve), start(t, serve)
	g := gatewayTo(t, terms(), freeport.Addr(t), a.addr(), b.addr())
	s := g.serve(t)
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	var whole, cut, refused atomic.Int64
	var wg sync.WaitGroup
	for k := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var c *servertest.Client
			for i := range rounds {
				if c == nil {
					c = s.Dial()
				}
				id := fmt.Sprintf("/%d-%d", k, i)
				c.Send("GET " + id + " HTTP/1.1\r\nHost: h\r\n\r\n")
				if rand.IntN(20) == 0 {
					c.Reset()
					c = nil
					continue
				}
				res, err := http.ReadResponse(c.R, nil)
				if err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				body, err := io.ReadAll(res.Body)
				switch {
				case res.StatusCode == 502:
					refused.Add(1)
				case strings.Trim(string(body), " ") != strings.Trim(strings.Repeat(id+" ", len(body)/len(id)+1)[:len(body)], " "):
					t.Errorf("%s: another response: %s %.80q", id, res.Status, body)
				case err != nil:
					cut.Add(1)
				default:
					whole.Add(1)
				}
				if err != nil {
					c.Close()
					c = nil
				}
			}
			if c != nil {
				c.Close()
			}
		}()
	}
	wg.Wait()
	t.Logf("%d whole, %d cut, %d refused", whole.Load(), cut.Load(), refused.Load())
	if whole.Load() == 0 || cut.Load() == 0 {
		t.Error("one of them does not come up")
	}
}

// A server that shuts down ends idle connections to others, and a request that is under way
// first.
func TestShutdown(t *testing.T) {
	t.Parallel()
	asked, goOn := make(chan struct{}), make(chan struct{})
	u := start(t, answers(func(n int, head string) string {
		if strings.Contains(head, "/slow") {
			close(asked)
			<-goOn
		}
		return ok
	}))
	g := gatewayTo(t, terms(), u.addr())
	s := g.serve(t)
	idle := s.Dial()
	idle.Send(get)
	idle.Status(200)
	busy := s.Dial()
	busy.Send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
	servertest.Await(t, asked, "the request")
	down := make(chan error, 1)
	go func() { down <- s.Control.Shutdown(t.Context()) }()
	idle.Ended()
	close(goOn)
	if got := busy.Rest(); !strings.Contains(got, "Connection: close") || !strings.HasSuffix(got, "ok") {
		t.Errorf("got %q", got)
	}
	if err := servertest.Await(t, down, "Shutdown"); err != nil {
		t.Error(err)
	}
}

// An idle connection costs no goroutine, and ends when the server closes it.
func TestIdleClosed(t *testing.T) {
	t.Parallel()
	closeAll := make(chan struct{})
	u := start(t, func(c *servertest.Client, n int) {
		headOf(c)
		io.WriteString(c.Conn, ok)
		<-closeAll
	})
	g := gatewayTo(t, terms(), u.addr())
	c := g.serve(t).Dial()
	c.Send(get)
	c.Status(200)
	kept := &g.servers[0].Kept
	servertest.Eventually(t, "it is kept", func() bool { return kept.Load() == 1 })
	close(closeAll)
	servertest.Eventually(t, "it is not", func() bool { return kept.Load() == 0 })
}
