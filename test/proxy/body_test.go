package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// TestExpect: the body is not read before the server asks for it.
func TestExpect(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			h := c.head()
			if !strings.Contains(h, "\r\nExpect: 100-continue\r\n") {
				t.Errorf("server received %q", h)
			}
			c.put("HTTP/1.1 100 Continue\r\n\r\n")
			b := make([]byte, 3)
			io.ReadFull(c.r, b)
			c.put("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + string(b))
		})
		client := (&setup{}).start(t, e, o.addr()).Dial()
		client.Send(head)
		client.Want("HTTP/1.1 100 Continue\r\n\r\n")
		client.Send("abc")
		if res, body := client.Response("POST"); res.StatusCode != 200 || body != "abc" {
			t.Error(res.Status, body)
		}
	})
	t.Run("refused", func(t *testing.T) {
		alike(t, func(t *testing.T, e chert.Engine) {
			o := start(t, func(c *conn) {
				c.head()
				c.put("HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno")
				c.r.ReadByte()
			})
			client := (&setup{}).start(t, e, o.addr()).Dial()
			client.Send(head)
			if res, body := client.Response("POST"); res.StatusCode != 417 || body != "no" {
				t.Error(res.Status, body)
			}
			servertest.Eventually(t, "the connection to the server to end", func() bool { return !strings.HasSuffix(o.received(), "abc") })
		})
	})
	t.Run("answered at once", func(t *testing.T) { // the response is not interrupted by a 100
		alike(t, func(t *testing.T, e chert.Engine) {
			begun := make(chan bool, 1)
			o := start(t, func(c *conn) {
				c.head()
				c.put("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
				c.wait(begun)
				c.put("llo")
			})
			client := (&setup{}).start(t, e, o.addr()).Dial()
			client.Send(head)
			h := client.Head()
			if strings.HasPrefix(h, "HTTP/1.1 100 ") {
				h = client.Head()
			}
			if !strings.HasPrefix(h, "HTTP/1.1 200 ") {
				t.Errorf("%q", h)
			}
			client.Want("he")
			begun <- true
			client.Want("llo")
		})
	})
	t.Run("not known", func(t *testing.T) {
		alike(t, func(t *testing.T, e chert.Engine) {
			o := start(t, each(ok))
			client := (&setup{}).start(t, e, o.addr()).Dial()
			client.Send(head)
			client.Want("HTTP/1.1 100 Continue\r\n\r\n") // after a second
			client.Send("abc")
			if res, _ := client.Response("POST"); res.StatusCode != 200 {
				t.Error(res.Status)
			}
		})
	})
}

// TestEarlyResponse: a response that comes while the request is sent is forwarded, the rest of
// the request is not, and the connection is not used again.
func TestEarlyResponse(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan string, 1)
		o := start(t, func(c *conn) {
			c.head()
			b := make([]byte, 4)
			io.ReadFull(c.r, b)
			c.put("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
			rest, _ := io.ReadAll(c.r)
			ended <- string(rest)
		})
		client := (&setup{}).start(t, e, o.addr()).Dial()
		client.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
		res, body := client.Response("POST")
		if res.StatusCode != 413 || body != "no" {
			t.Error(res.Status, body)
		}
		if rest := servertest.Await(t, ended, "the connection to the server to end"); strings.Contains(rest, "0\r\n") {
			t.Errorf("the request was ended: %q", rest)
		}
	})
}

// TestBothWays: a server may begin a response of success and make it of the request, piece by
// piece.
func TestBothWays(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			r, err := http.ReadRequest(c.r)
			if err != nil {
				return
			}
			c.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			b := make([]byte, 10)
			for {
				n, err := r.Body.Read(b)
				if n > 0 {
					c.put(fmt.Sprintf("%x\r\n%s\r\n", n, b[:n]))
				}
				if err != nil {
					c.put("0\r\n\r\n")
					return
				}
			}
		})
		client := (&setup{}).start(t, e, o.addr()).Dial()
		client.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
		client.Head()
		for _, s := range []string{"a", "bb"} {
			client.Send(fmt.Sprintf("%x\r\n%s\r\n", len(s), s))
			client.Want(fmt.Sprintf("%x\r\n%s\r\n", len(s), s))
		}
		client.Send("0\r\n\r\n")
		client.Want("0\r\n\r\n")
	})
}

// TestLarge sends and receives more than buffers hold.
func TestLarge(t *testing.T) {
	big := string(servertest.Pattern(3 << 20))
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			for {
				_, body, ok := c.request()
				if !ok {
					return
				}
				c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
			}
		})
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		for _, in := range []string{post(big), servertest.PostChunks("/", servertest.Chunks(big, 10_000))} {
			client.SendAside(in)
			if res, body := client.Response("POST"); res.StatusCode != 200 || body != big {
				t.Errorf("%s, %d bytes", res.Status, len(body))
			}
		}
		// There are two if the first was idle for a second, which is too long for a POST.
		servertest.Eventually(t, "connections are kept", func() bool { return s.pool.Status()[0].Servers[0].Idle == int64(o.dials()) })
	})
}

// TestClientGone: the connection to the server ends, and the server is not blamed.
func TestClientGone(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"before the response", get, ""},
		{"in the response", get, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"},
		{"in the request", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 80_000), ""},
		{"in a chunked request", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				begun, ended := make(chan bool, 1), make(chan string, 1)
				o := start(t, func(conn *conn) {
					conn.head()
					begun <- true
					conn.put(c.out)
					rest, _ := io.ReadAll(conn.r)
					ended <- string(rest)
				})
				s := &setup{}
				client := s.start(t, e, o.addr()).Dial()
				client.Send(c.in)
				servertest.Await(t, begun, "the request")
				if c.out != "" {
					client.Head()
				}
				client.Reset()
				if rest := servertest.Await(t, ended, "the connection to the server to end"); strings.HasSuffix(rest, "0\r\n\r\n") {
					t.Errorf("the request ended as if it were whole: %q", rest)
				}
				servertest.Eventually(t, "499", func() bool { return strings.Contains(s.log.String(), "status=499") })
				st := s.pool.Status()[0].Servers[0]
				if st.Failures != 0 || st.State == "ejected" {
					t.Errorf("the server is blamed: %+v", st)
				}
				servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
			})
		})
	}
}

// TestTimes tests the limits of time for a server.
func TestTimes(t *testing.T) {
	t.Run("1 byte at a time", func(t *testing.T) {
		alike(t, func(t *testing.T, e chert.Engine) {
			o := start(t, func(c *conn) {
				c.head()
				for _, b := range []byte("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 100_000)) {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(5 * time.Millisecond) // a slow server is what is tested
				}
			})
			s := &setup{}
			s.up.ResponseTimeout = 100 * time.Millisecond
			client := s.start(t, e, o.addr()).Dial()
			client.Send(get)
			if res, _ := client.Response("GET"); res.StatusCode != 504 || res.Header.Get("Proxy-Status") != "chert; error=http_response_timeout" {
				t.Error(res.Status, res.Header)
			}
		})
	})
	t.Run("stalled body", func(t *testing.T) {
		alike(t, func(t *testing.T, e chert.Engine) {
			o := start(t, func(c *conn) {
				c.head()
				c.put("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
				c.r.ReadByte()
			})
			s := &setup{}
			s.up.StallTimeout = 100 * time.Millisecond
			client := s.start(t, e, o.addr()).Dial()
			client.Send(get)
			if got := summary(client, "GET"); got != "200 Content-Length=9: ok cut" {
				t.Error(got)
			}
			if !strings.Contains(s.log.String(), "response stalled") {
				t.Error(s.log)
			}
		})
	})
	t.Run("reads nothing", func(t *testing.T) {
		alike(t, func(t *testing.T, e chert.Engine) {
			o := start(t, func(c *conn) { c.wait(nil) })
			s := &setup{}
			s.up.StallTimeout = 100 * time.Millisecond
			client := s.start(t, e, o.addr()).Dial()
			client.SendAside(post(string(servertest.Pattern(8 << 20))))
			if res, _ := client.Response("POST"); res.StatusCode != 504 {
				t.Error(res.Status, s.log)
			}
		})
	})
}

// TestOld: a server of HTTP/1.0 gets no chunks, once it is known.
func TestOld(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, each("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"))
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		for _, c := range []struct{ in, want string }{
			{get, "200"},
			{servertest.PostChunks("/", servertest.Chunks("abc", 1)), "200"},
			{servertest.PostChunks("/", servertest.Chunks(strings.Repeat("x", 70_000), 1000)), "502"},
		} {
			client.SendAside(c.in)
			if res, _ := client.Response("POST"); res.Status[:3] != c.want {
				t.Errorf("%s, want %s; log %s", res.Status, c.want, s.log)
			}
		}
		if got := o.received(); !strings.Contains(got, "\r\nContent-Length: 3\r\n") || strings.Contains(got, "chunked") {
			t.Errorf("server received %q", got)
		}
	})
}

// TestModify tests the hooks of a program.
func TestModify(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, each("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nok"))
		s := &setup{o: proxy.Options{ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path == "/bad" {
				return fmt.Errorf("bad")
			}
			r.Header.Del("Content-Length")
			r.Header.Set("X", "z")
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(r.Body, strings.NewReader("!")), r.Body}
			return nil
		}, ErrorHandler: func(w http.ResponseWriter, r *http.Request, err *proxy.Error) {
			w.WriteHeader(err.Status)
			io.WriteString(w, err.Reason)
		}}}
		ts := s.start(t, e, o.addr())
		client := ts.Dial()
		client.Send(get)
		if res, body := client.Response("GET"); body != "ok!" || res.Header.Get("X") != "z" {
			t.Error(res, body)
		}
		client.Send("GET /bad HTTP/1.1\r\nHost: h\r\n\r\n")
		if res, body := client.Response("GET"); res.StatusCode != 502 || body != "response not accepted" {
			t.Error(res, body)
		}
	})
}

// TestKeptClient: after a body that was sent piece by piece the client's connection has
// another request.
func TestKeptClient(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, each(ok))
		client := (&setup{}).start(t, e, o.addr()).Dial()
		for range 200 {
			client.Send(servertest.PostChunks("/", servertest.Chunks("abcdef", 2)))
			client.Status(200)
		}
		client.Send(get)
		client.Status(200)
	})
}

// TestBadBody: what a client sends wrongly is its own fault, and no server sees a whole request.
func TestBadBody(t *testing.T) {
	for _, c := range []struct {
		name, in string
		status   int
	}{
		{"malformed chunk", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx\r\n", 400},
		{"too large", servertest.PostChunks("/", servertest.Chunks(strings.Repeat("x", 5000), 1000)), 413},
		{"too large, known length", post(strings.Repeat("x", 5000)), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := start(t, each(ok))
				s := &setup{}
				h := http.MaxBytesHandler(s.handler(t, o.addr()), 3000)
				client := engines.Start(t, &chert.Server{Engine: e, Handler: h}).Dial()
				client.SendAside(c.in)
				res, _ := client.Response("POST")
				if res.StatusCode != c.status || res.Header.Get("Proxy-Status") != "chert; error=http_request_error" {
					t.Errorf("%s %v, log %s", res.Status, res.Header, s.log)
				}
				servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
				if st := s.pool.Status()[0].Servers[0]; st.Failures != 0 || strings.HasSuffix(o.received(), "0\r\n\r\n") {
					t.Errorf("%+v, server received %q", st, servertest.Brief(o.received()))
				}
			})
		})
	}
}
