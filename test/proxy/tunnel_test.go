package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

const upgrade = "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x-test\r\n\r\n"

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x-test\r\nX: y\r\n\r\n"

// TestTunnel tests an upgrade: bytes that either side sends with its head arrive after the
// other's, and the end of each direction is passed on by itself.
func TestTunnel(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan string, 1)
		o := start(t, func(c *conn) {
			c.head()
			c.put(switching + "hello")
			b, _ := io.ReadAll(c.r)
			c.put("after the end")
			ended <- string(b)
		})
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		client.Send(upgrade + "early")
		head := client.Head()
		if !strings.HasPrefix(head, "HTTP/1.1 101 ") || !strings.Contains(head, "Upgrade: x-test\r\n") || !strings.Contains(head, "X: y\r\n") {
			t.Errorf("%q", head)
		}
		client.Want("hello")
		client.Send(" more")
		client.CloseWrite()
		if got := servertest.Await(t, ended, "the end of the client's direction"); got != "early more" {
			t.Errorf("server received %q", got)
		}
		client.Want("after the end")
		client.Ended()
		servertest.Eventually(t, "the end of the request", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
	})
}

// TestNoTunnel: before a 101 nothing is sent and nothing believed (CVE-2026-2833): what
// follows the head is the client's next request.
func TestNoTunnel(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, each(ok))
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		client.Send(upgrade + "GET /next#x HTTP/1.1\r\nHost: h\r\n\r\n")
		if res, _ := client.Response("GET"); res.StatusCode != 200 {
			t.Error(res.Status)
		}
		if res, _ := client.Response("GET"); res.StatusCode != 400 {
			t.Error(res.Status)
		}
		if got := o.received(); strings.Contains(got, "/next") {
			t.Errorf("server received %q", got)
		}
	})
}

// TestWrongTunnel: a server must switch to what was asked for.
func TestWrongTunnel(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			c.head()
			c.put(strings.Replace(switching, "x-test", "other", 1))
			c.r.ReadByte()
		})
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		client.Send(upgrade)
		if res, _ := client.Response("GET"); res.StatusCode != 502 {
			t.Error(res.Status)
		}
	})
}

// TestTunnelOutlives: a tunnel stays when its Upstream and its Pool are closed, as after a
// reload.
func TestTunnelOutlives(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			c.head()
			c.put(switching)
			io.Copy(c, c.r)
		})
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		client.Send(upgrade)
		client.Head()
		s.pool.Close()
		client.Send("still there")
		client.Want("still there")
	})
}

// TestTunnelReset: when one side is reset the other ends.
func TestTunnelReset(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan bool, 1)
		o := start(t, func(c *conn) {
			c.head()
			c.put(switching)
			io.Copy(io.Discard, c.r)
			ended <- true
		})
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		client.Send(upgrade)
		client.Head()
		client.Reset()
		servertest.Await(t, ended, "the end of the tunnel")
	})
}

// TestTunnelContext: the context of the request ends a tunnel.
func TestTunnelContext(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan bool, 1)
		o := start(t, func(c *conn) {
			c.head()
			c.put(switching)
			io.Copy(io.Discard, c.r)
			ended <- true
		})
		s := &setup{}
		h := s.handler(t, o.addr())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r.WithContext(ctx))
		})})
		client := ts.Dial()
		client.Send(upgrade)
		client.Head()
		cancel()
		servertest.Await(t, ended, "the end of the tunnel")
		client.Rest()
	})
}
