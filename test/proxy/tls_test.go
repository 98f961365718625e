package proxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// raw returns the connection below TLS.
func (c *conn) raw() net.Conn { return c.Conn.(*tls.Conn).NetConn() }

// TestTLSResumed: a second connection resumes the session of the first.
func TestTLSResumed(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := startOver(t, true, func(c *conn) {
					for c.head() != "" {
						resumed := fmt.Sprint(c.Conn.(*tls.Conn).ConnectionState().DidResume)
						c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(resumed), resumed))
					}
				})
				s := &setup{}
				s.over(t, true)
				s.up.TLS.MaxVersion, s.up.MaxIdle = version, -1
				client := s.start(t, e, o.addr()).Dial()
				for i, want := range []string{"false", "true", "true"} {
					client.Send(get)
					if got := client.Status(200); got != want {
						t.Errorf("connection %d: resumed: %s", i, got)
					}
				}
			})
		})
	}
}

// TestTLSCut: only close_notify ends a body that ends with its connection (RFC 9112 section 9.8).
func TestTLSCut(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := startOver(t, true, func(c *conn) {
			c.head()
			c.put("HTTP/1.1 200 OK\r\n\r\nok")
			c.raw().Close()
		})
		s := &setup{}
		s.over(t, true)
		client := s.start(t, e, o.addr()).Dial()
		client.Send(get)
		if got := summary(client, "GET"); got != "200 chunked: ok cut" {
			t.Errorf("got %q, log %s", got, s.log)
		}
	})
}

// TestTLSGarbage: a server that sends what is no record, before or within a response.
func TestTLSGarbage(t *testing.T) {
	for _, c := range []struct{ name, out, want string }{
		{"before", "", "502 connection_terminated"},
		{"in the head", "HTTP/1.1 200 OK\r\n", "502 connection_terminated"},
		{"in the body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", "200 Content-Length=5: ok cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := startOver(t, true, func(conn *conn) {
					conn.head()
					conn.put(c.out)
					conn.raw().Write(bytes.Repeat([]byte("SSH-2.0-x\r\n"), 100))
					io.Copy(io.Discard, conn.raw())
				})
				s := &setup{}
				s.over(t, true)
				s.up.Retry.Off = true
				client := s.start(t, e, o.addr()).Dial()
				client.Send(get)
				if got := summary(client, "GET"); got != c.want {
					t.Errorf("got %q, log %s", got, s.log)
				}
			})
		})
	}
}

// TestTLSSilent: a server that accepts connections and says nothing is left when the time to connect is
// over. Nothing was sent to it.
func TestTLSSilent(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) { io.Copy(io.Discard, c) })
		s := &setup{}
		s.over(t, true)
		s.up.ConnectTimeout = 300 * time.Millisecond // not to be over before the handshake begins
		client := s.start(t, e, o.addr()).Dial()
		client.Send(post("x"))
		client.Status(504)
		for _, want := range []string{": TLS handshake timed out (", "; POST, nothing sent, not retried: no other server"} {
			if got := s.log.String(); !strings.Contains(got, want) {
				t.Errorf("log %s", got)
			}
		}
	})
}

// TestTLSClientGone: a client that leaves in the handshake ends it.
func TestTLSClientGone(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		begun, ended := make(chan bool, 1), make(chan bool, 1)
		o := start(t, func(c *conn) {
			c.r.ReadByte()
			begun <- true
			io.Copy(io.Discard, c.r)
			ended <- true
		})
		s := &setup{}
		s.over(t, true)
		s.up.ConnectTimeout = -1
		client := s.start(t, e, o.addr()).Dial()
		client.Send(get)
		servertest.Await(t, begun, "the handshake")
		client.Reset()
		servertest.Await(t, ended, "its end")
		servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
		if st := s.pool.Status()[0].Servers[0]; st.Failures != 0 {
			t.Errorf("the server is blamed: %+v", st)
		}
	})
}

// TestTLSPanic: a panic in a function of the tls.Config fails the try, and the server goes on.
func TestTLSPanic(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("there are no loops")
	}
	o := startOver(t, true, each(ok))
	s := &setup{}
	s.over(t, true)
	var once sync.Once
	s.up.TLS.VerifyConnection = func(tls.ConnectionState) error {
		once.Do(func() { panic("in the test") })
		return nil
	}
	client := s.start(t, chert.EngineLoops, o.addr()).Dial()
	client.Send(get)
	if client.Status(502); !strings.Contains(s.log.String(), "in the test") {
		t.Errorf("log %s", s.log)
	}
	client.Send(get)
	client.Status(200)
}

// TestTLSLarge: large bodies pass both ways, to clients that read slowly too.
func TestTLSLarge(t *testing.T) {
	const size = 8 << 20
	pattern := string(servertest.Pattern(size))
	alike(t, func(t *testing.T, e chert.Engine) {
		o := startOver(t, true, func(c *conn) {
			for {
				_, body, ok := c.request()
				if !ok {
					return
				}
				c.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				c.put(fmt.Sprintf("%x\r\n%s\r\n", size, pattern))
				c.put(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body))
			}
		})
		s := &setup{}
		s.over(t, true)
		client := s.start(t, e, o.addr()).Dial()
		for _, n := range []int{1, 60_000, 300_000} {
			client.SendAside(post(pattern[:n]))
			if _, got := client.Response("POST"); got != pattern+pattern[:n] {
				t.Errorf("%d bytes: %d came back", n, len(got))
			}
		}
	})
}
