package origin

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestFailures tests what a Failure says of an exchange.
func TestFailures(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	for _, c := range []struct {
		name   string
		server func(c *servertest.Client)
		want   string
	}{
		{"closed", func(c *servertest.Client) {}, "closed before the response, progress 1"},
		{"reset", func(c *servertest.Client) { c.Reset() }, "reset before the response, progress 1"},
		{"part of a head", func(c *servertest.Client) { c.Send("HTTP/1.1 200 OK\r\n") }, "closed before the response, progress 2"},
		{"late", func(c *servertest.Client) { c.R.ReadByte() }, "no response in time, progress 1"},
		{"malformed", func(c *servertest.Client) { c.Send("HTTP/1.1 2\r\n") }, "malformed response, progress 2"},
		{"framing", func(c *servertest.Client) {
			c.Send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n")
		}, "bad framing of the response, progress 2"},
		{"switch", func(c *servertest.Client) { c.Send("HTTP/1.1 101 X\r\n\r\n") }, "unrequested upgrade, progress 2"},
		{"large", func(c *servertest.Client) {
			c.SendAside("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 2000))
			c.R.ReadByte()
		},
			"response head too large, progress 2"},
		{"whole", func(c *servertest.Client) { c.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }, "ok, EOF"},
		{"cut off", func(c *servertest.Client) { c.Send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok") },
			"ok, response cut off, progress 2"},
		{"until a reset", func(c *servertest.Client) {
			c.Send("HTTP/1.1 200 OK\r\n\r\n")
			c.Reset()
		},
			", response cut off, progress 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := servertest.TCPConns(t)
			end := make(chan bool)
			go func() {
				defer close(end)
				defer b.Close()
				s := servertest.Wrap(t, b)
				s.Head()
				c.server(s)
			}()
			conn, limit := NewConn(a), servertest.Patience
			if c.name == "late" {
				limit = 50 * time.Millisecond
			}
			x, f := conn.Do(t.Context(), &Request{Head: []byte(get), ResponseTimeout: limit,
				Limits: http1.Limits{HeadBytes: 1000}}, (*Conn).Close)
			got := ""
			if x != nil {
				body, err := io.ReadAll(x)
				got = string(body) + ", EOF"
				if f, _ = err.(*Failure); f != nil {
					got = string(body) + ", "
				}
				x.Close()
			}
			if f != nil {
				got = strings.TrimSuffix(got, "EOF") + fmt.Sprintf("%s, progress %d", f.Reason, f.Progress)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			a.Close()
			<-end
		})
	}
}

// TestDialFailures tests the reasons of connections that are not made.
func TestDialFailures(t *testing.T) {
	addr := freeport.Addr(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		addr string
		want reason.Code
	}{
		{t.Context(), addr, reason.Refused},
		{t.Context(), "unix:" + t.TempDir() + "/none", reason.Refused},
		{gone, addr, reason.ClientGone},
	} {
		d := Dialer{Addr: c.addr, Timeout: servertest.Patience}
		if _, f := d.Dial(c.ctx); f == nil || f.Reason != c.want || f.Progress != retry.Unsent {
			t.Errorf("%s: %v, want %s", c.addr, f, c.want)
		}
	}
}

// TestIdle tests which connection is used, and which are closed.
func TestIdle(t *testing.T) {
	var p Idle
	var peers []net.Conn
	for i := range 4 {
		a, b := servertest.TCPConns(t)
		peers = append(peers, b)
		p.Put(NewConn(a), int64(i), 3) // the last one is one too many
	}
	var ages []int64
	gone := func(age int64) { ages = append(ages, age) }
	any := func(int64) bool { return true }
	if p.Len() != 3 {
		t.Fatalf("%d are idle", p.Len())
	}
	peers[2].Close()
	peers[1].Write([]byte("x"))
	quiet := func(i int) bool {
		return !func() bool { p.mu.Lock(); defer p.mu.Unlock(); q, _ := p.conns[i].quiet(); return q }()
	}
	servertest.Eventually(t, "both", func() bool { return quiet(1) && quiet(2) })
	if c, _ := p.Get(10, func(age int64) bool { return age < 5 }, gone); c != nil {
		t.Error("one that is too old")
	}
	c, age := p.Get(10, any, gone)
	if c == nil || age != 10 || len(ages) != 1 || ages[0] != 8 || p.Len() != 0 {
		t.Errorf("age %d, ends %v, %d left", age, ages, p.Len())
	}
	p.Put(c, 20, 3)
	if !p.Sweep(21, any, gone) || p.Sweep(21, func(int64) bool { return false }, gone) || p.Len() != 0 {
		t.Error("sweep")
	}
	p.Close()
	a, _ := servertest.TCPConns(t)
	p.Put(NewConn(a), 0, 3)
	if p.Len() != 0 {
		t.Error("one after Close")
	}
}

// joined is a connection on which nothing is sent before flush.
type joined struct {
	net.Conn
	held []byte
	join bool
}

func (j *joined) Write(p []byte) (int, error) {
	if !j.join {
		return j.Conn.Write(p)
	}
	j.held = append(j.held, p...)
	return len(p), nil
}

func (j *joined) flush() {
	j.SetWriteDeadline(time.Time{}) // after CloseWrite of TLS it is over
	j.Conn.Write(j.held)
	j.held, j.join = nil, false
}

// TestIdleTLS: no request follows on a connection of which TLS has read more than the response.
func TestIdleTLS(t *testing.T) {
	cert, roots := servertest.Certificate(t)
	for _, c := range []struct {
		name  string
		after func(s *tls.Conn) // what is sent with the response
		used  bool
		ends  int
	}{
		{"nothing", func(*tls.Conn) {}, true, 0},
		{"another response", func(s *tls.Conn) { io.WriteString(s, "HTTP/1.1 204 No Content\r\n\r\n") }, false, 0},
		{"close_notify", func(s *tls.Conn) { s.CloseWrite() }, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := servertest.TCPConns(t)
			go func() {
				j := &joined{Conn: b}
				s := tls.Server(j, &tls.Config{Certificates: []tls.Certificate{cert}})
				servertest.Wrap(t, s).Head()
				j.join = true
				io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				c.after(s)
				j.flush()
			}()
			conn := NewConn(tls.Client(a, &tls.Config{RootCAs: roots, ServerName: "example.com"}))
			var p Idle
			q := &Request{Head: []byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Limits: http1.Limits{HeadBytes: 1000}}
			x, f := conn.Do(t.Context(), q, func(c *Conn) { p.Put(c, 0, 1) })
			if f != nil {
				t.Fatal(f)
			}
			if body, err := io.ReadAll(x); string(body) != "ok" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
			ends := 0
			got, _ := p.Get(0, func(int64) bool { return true }, func(int64) { ends++ })
			if used := got != nil; used != c.used || ends != c.ends {
				t.Errorf("used: %v, want %v; %d ends, want %d", used, c.used, ends, c.ends)
			}
		})
	}
}
