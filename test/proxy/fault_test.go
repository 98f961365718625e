package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestHTTP2Length: a body that does not have its content-length ends both sides: the server
// must not see a request that looks whole, and its connection is not used again.
func TestHTTP2Length(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		for _, body := range []string{"abc", "abcdefgh"} {
			var mu sync.Mutex
			whole := 0
			o := start(t, func(c *conn) {
				for {
					if _, _, ok := c.request(); !ok {
						return
					}
					mu.Lock()
					whole++
					mu.Unlock()
					c.put(ok)
				}
			})
			s := &setup{}
			ts := http2Server(t, e, s.handler(t, o.addr()))
			c := ts.Dial()
			c.Send(http2.ClientPreface)
			fr := http2.NewFramer(c, c.R)
			fr.WriteSettings()
			var block bytes.Buffer
			enc := hpack.NewEncoder(&block)
			for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/"}, {"content-length", "5"}} {
				enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
			}
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
			fr.WriteData(1, true, []byte(body))
			status := ""
			fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
			for status == "" {
				f, err := fr.ReadFrame()
				if err != nil {
					t.Fatal(err)
				}
				switch f := f.(type) {
				case *http2.RSTStreamFrame, *http2.GoAwayFrame:
					status = "reset"
				case *http2.MetaHeadersFrame:
					status = f.PseudoValue("status")
				}
			}
			if status == "200" {
				t.Errorf("%q became a whole request", body)
			}
			servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
			if st := s.pool.Status()[0].Servers[0]; st.Idle != 0 || st.Failures != 0 {
				t.Errorf("%+v", st)
			}
			mu.Lock()
			if whole != 0 {
				t.Errorf("server received %q", o.received())
			}
			mu.Unlock()
		}
	})
}

// TestAnnouncedIdle: a server says by Keep-Alive how long it keeps connections.
func TestAnnouncedIdle(t *testing.T) {
	o := start(t, each("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok"))
	s := &setup{}
	client := s.start(t, chert.EngineGoroutines, o.addr()).Dial()
	client.Send(get)
	client.Response("GET")
	if st := s.pool.Status()[0].Servers[0]; st.IdleLimit != 4*time.Second || st.Idle != 1 {
		t.Errorf("%+v", st)
	}
}

// TestSwept: an idle connection that the server closes is closed without a request.
func TestSwept(t *testing.T) {
	t.Parallel()
	o := start(t, once(ok))
	s := &setup{}
	client := s.start(t, chert.EngineGoroutines, o.addr()).Dial()
	client.Send(get)
	client.Response("GET")
	if st := s.pool.Status()[0].Servers[0]; st.Idle != 1 {
		t.Errorf("%+v", st)
	}
	o.close()
	servertest.Eventually(t, "the sweep", func() bool { return s.pool.Status()[0].Servers[0].Idle == 0 })
}

// TestWaitingServerDies: all requests that wait for a server that dies are answered 502.
func TestWaitingServerDies(t *testing.T) {
	const clients = 200
	alike(t, func(t *testing.T, e chert.Engine) {
		waiting := make(chan bool, clients)
		o := start(t, func(c *conn) {
			for c.head() != "" {
				waiting <- true
			}
		})
		s := &setup{}
		s.up.Health.Off = true
		ts := s.start(t, e, o.addr())
		var all []*servertest.Client
		for range clients {
			c := ts.Dial()
			c.Send(get)
			all = append(all, c)
		}
		for range clients {
			servertest.Await(t, waiting, "the requests")
		}
		o.close()
		for _, c := range all {
			c.Status(502)
		}
		if st := s.pool.Status()[0]; st.Servers[0].InFlight != 0 || st.Retries.Retries != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestReset resets the connection to the server in the middle of a body: also of one whose request's body it does
// not read, of which a write may meet the reset before a read does.
func TestReset(t *testing.T) {
	for name, c := range map[string]struct {
		head   string
		upload bool
	}{
		"length":             {"Content-Length: 9\r\n\r\nok", false},
		"chunked":            {"Transfer-Encoding: chunked\r\n\r\n9\r\nok", false},
		"close":              {"\r\nok", false},
		"length, uploading":  {"Content-Length: 9\r\n\r\nok", true},
		"chunked, uploading": {"Transfer-Encoding: chunked\r\n\r\n9\r\nok", true},
		"close, uploading":   {"\r\nok", true},
	} {
		t.Run(name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				read := make(chan bool)
				o := start(t, func(s *conn) {
					s.head()
					s.put("HTTP/1.1 200 OK\r\n" + c.head)
					s.wait(read)
					s.Conn.(interface{ SetLinger(int) error }).SetLinger(0)
				})
				s := &setup{}
				client := s.start(t, e, o.addr()).Dial()
				if c.upload {
					client.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n")
					fill(t, client.Conn)
				} else {
					client.Send(get)
				}
				client.Head()
				close(read)
				rest, _ := io.ReadAll(client.R)
				if strings.HasSuffix(string(rest), "0\r\n\r\n") || len(rest) > 20 {
					t.Errorf("client received %q", rest)
				}
				if !strings.Contains(s.log.String(), "response cut off") {
					t.Error(fmt.Sprint(s.log))
				}
			})
		})
	}
}

// fill writes until nothing more is accepted, all the way to a server that does not read.
func fill(t *testing.T, nc net.Conn) {
	t.Helper()
	for p := make([]byte, 64<<10); ; {
		nc.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		switch _, err := nc.Write(p); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
}

// TestKeepsServing: a tunnel, an upload and a download at once do not disturb other requests
// of the same server.
func TestKeepsServing(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			for {
				switch h := c.head(); {
				case h == "":
					return
				case strings.HasPrefix(h, "GET /slow "):
					c.put("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
					c.wait(nil)
					return
				case strings.HasPrefix(h, "GET /ws "):
					c.put(switching)
					c.wait(nil)
					return
				default:
					c.put(ok)
				}
			}
		})
		s := &setup{}
		ts := s.start(t, e, o.addr())
		for _, in := range []string{"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n", upgrade, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx"} {
			ts.Dial().Send(in)
		}
		servertest.Eventually(t, "both in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 2 })
		client := ts.Dial()
		for range 10 {
			client.Send(get)
			client.Status(200)
		}
		// Loops and goroutines each keep their own, all but those of /slow and /ws.
		servertest.Eventually(t, "connections are kept", func() bool {
			st := s.pool.Status()[0].Servers[0]
			return st.Idle > 0 && uint64(st.Idle) == st.Dials-2
		})
	})
}
