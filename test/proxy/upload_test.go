package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/proxy"
)

// echo answers each request with its body.
func echo(c *conn) {
	for {
		_, body, ok := c.request()
		if !ok {
			return
		}
		c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	}
}

// The requests of TestUploads, of which the body is 12 bytes.
var uploads = []struct{ name, in string }{
	{"length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\nabcdefghijkl"},
	{"chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n7;x=\"y\"\r\nfghijkl\r\n0\r\n\r\n"},
	{"trailers", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\nc\r\nabcdefghijkl\r\n0\r\nSum: 1\r\n\r\n"},
}

// TestUploads sends a request byte by byte, and cut in two at every byte, with another request after it. Each
// server sees the same as when it comes in one piece.
func TestUploads(t *testing.T) {
	for _, c := range uploads {
		for _, keep := range []int{0, 5, -1} {
			t.Run(fmt.Sprint(c.name, keep), func(t *testing.T) {
				alike(t, func(t *testing.T, e chert.Engine) {
					overEach(t, func(t *testing.T, secure bool) {
						o := startOver(t, secure, echo)
						s := &setup{o: proxy.Options{BufferRequest: keep}}
						s.over(t, secure)
						client := s.start(t, e, o.addr()).Dial()
						all := c.in + get
						want := func(how string) {
							t.Helper()
							if res, body := client.Response("POST"); res.StatusCode != 200 || body != "abcdefghijkl" {
								t.Fatal(how, res.Status, body)
							}
							if res, body := client.Response("GET"); res.StatusCode != 200 || body != "" {
								t.Fatal(how, res.Status, body)
							}
						}
						for i := range len(all) {
							client.Send(all[i : i+1])
						}
						want("bytes")
						for i := range len(all) - 1 {
							client.Send(all[:i+1])
							client.Send(all[i+1:])
							want(fmt.Sprint("cut at ", i+1))
						}
						if n := strings.Count(o.received(), "POST / "); n != len(all) {
							t.Errorf("%d requests of %d", n, len(all))
						}
					})
				})
			})
		}
	}
}

// unblamed waits until no request is in flight, none of which must count as a failure of its server.
func (s *setup) unblamed(t testing.TB) {
	t.Helper()
	servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
	if st := s.pool.Status()[0].Servers[0]; st.Failures != 0 {
		t.Errorf("the server is blamed: %+v", st)
	}
}

// wholes starts a server that answers what is complete, and returns the methods and bodies of that.
func wholes(t *testing.T) (*origin, chan string) {
	whole := make(chan string, 1000)
	return start(t, func(c *conn) {
		for {
			r, body, ok := c.request()
			if !ok {
				return
			}
			whole <- r.Method + body
			c.put(ok200)
		}
	}), whole
}

// TestUploadEnds: a client that leaves in the middle of its request, at every byte, is never taken for one that has
// sent all of it.
func TestUploadEnds(t *testing.T) {
	for _, c := range uploads {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o, whole := wholes(t)
				s := &setup{}
				ts := s.start(t, e, o.addr())
				begin := strings.Index(c.in, "\r\n\r\n") + 4
				for i := begin; i < len(c.in); i++ {
					client := ts.Dial()
					client.Send(c.in[:i])
					if i%2 == 0 {
						client.Reset()
					} else {
						client.CloseWrite()
						client.UpToEnd()
					}
				}
				client := ts.Dial()
				client.Send(get)
				client.Status(200)
				if got := servertest.Await(t, whole, "a request"); got != "GET" {
					t.Errorf("server received %q", got)
				}
				s.unblamed(t)
			})
		})
	}
}

// TestMalformedUploads: no server sees the end of a request whose body is malformed, nor a second one.
func TestMalformedUploads(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, body := range []string{
		"x\r\n", "5\nabcde", "5\r\nabcdefg\r\n0\r\n\r\n", "3\r\nabc0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "-1\r\n", "0x1\r\na\r\n0\r\n\r\n", " 1\r\na\r\n0\r\n\r\n",
		"fffffffffffffffff\r\n", "1;\x00\r\na\r\n0\r\n\r\n", "0\r\nContent-Length: 3\r\n\r\n", "0\r\nbad field\r\n\r\n", "0\r\n X: y\r\n\r\n",
	} {
		t.Run(fmt.Sprintf("%q", body), func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				o := start(t, echo)
				s := &setup{}
				client := s.start(t, e, o.addr()).Dial()
				client.Send(head + body)
				client.SendAside(get)
				if res, _ := client.Response("POST"); res.StatusCode != 400 {
					t.Error(res.Status)
				}
				client.Ended()
				s.unblamed(t)
				if got := o.received(); strings.HasSuffix(got, "0\r\n\r\n") || strings.Contains(got, "GET ") {
					t.Errorf("server received %q", got)
				}
			})
		})
	}
}

// TestMalformedUploadHTTP2 is TestMalformedUploads for a server of HTTP/2, before and after its response has begun.
func TestMalformedUploadHTTP2(t *testing.T) {
	for _, path := range []string{"/late", "/early"} {
		t.Run(path, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				ended := make(chan error, 1)
				o := http2Server(t, engines.NetHTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/early" {
						http.NewResponseController(w).Flush()
					}
					_, err := io.Copy(io.Discard, r.Body)
					ended <- err
				}))
				s := &setup{up: proxy.UpstreamOptions{Protocol: proxy.ProtocolHTTP2}}
				client := s.start(t, e, o.ListenAddr).Dial()
				client.Send("POST " + path + " HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
				if path == "/early" {
					if head := client.Head(); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
						t.Errorf("%q", head)
					}
					client.Send("x\r\n")
					if rest := client.UpToEnd(); strings.HasSuffix(rest, "0\r\n\r\n") {
						t.Errorf("the response ended as if it were whole: %q", rest)
					}
				} else {
					client.Send("x\r\n")
					client.Status(400)
				}
				if err := servertest.Await(t, ended, "the end of the server's request"); err == nil {
					t.Error("to the server the body was whole")
				}
				s.unblamed(t)
			})
		})
	}
}

// TestWaitingUpload: a client that does not send its body gets 408, from servers of either protocol.
func TestWaitingUpload(t *testing.T) {
	for _, c := range []struct{ name, in string }{
		{"short", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\nabc"},
		{"long", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 70_000)},
		{"chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"},
	} {
		for _, protocol := range []proxy.Protocol{proxy.ProtocolHTTP1, proxy.ProtocolHTTP2} {
			wait := func(t *testing.T, server *chert.Server) {
				s := &setup{up: proxy.UpstreamOptions{Protocol: protocol}}
				o := http2Server(t, engines.NetHTTP, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
				}))
				server.Handler = s.handler(t, o.ListenAddr)
				client := engines.Start(t, server).Dial()
				client.Send(c.in)
				if res, _ := client.Response("POST"); res.StatusCode != 408 {
					t.Error(res.Status)
				}
				client.Ended()
				if !strings.Contains(s.log.String(), "request body not received in time") {
					t.Error(s.log)
				}
				s.unblamed(t)
			}
			const late = 100 * time.Millisecond
			t.Run(fmt.Sprint(c.name, " whole ", protocol), func(t *testing.T) {
				// It is for the head, too, which is not to be late on a busy machine.
				alike(t, func(t *testing.T, e chert.Engine) { wait(t, &chert.Server{Engine: e, ReadTimeout: 10 * late}) })
			})
			t.Run(fmt.Sprint(c.name, " stall ", protocol), func(t *testing.T) {
				t.Parallel()
				engines.Each(t, func(t *testing.T, e chert.Engine) { wait(t, &chert.Server{Engine: e, ReadStallTimeout: late}) })
			})
		}
	}
}

// TestUploadRetried: what is kept of a body is sent again, and no more.
func TestUploadRetried(t *testing.T) {
	const head = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name, first, rest string
		status            int
	}{
		{"kept", "5\r\nabcde\r\n", "3\r\nfgh\r\n0\r\n\r\n", 200},
		{"not kept", servertest.Chunks(strings.Repeat("x", 100_000), 10_000)[:80_064], "", 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				down := make(chan bool)
				var begun atomic.Bool
				got := make(chan bool, 1)
				serve := func(conn *conn) { // the first request, of either server, ends its connection
					if !begun.Swap(true) {
						conn.head()
						io.CopyN(io.Discard, conn.r, int64(len(c.first)*9/10))
						got <- true
						conn.wait(down)
						return
					}
					echo(conn)
				}
				one, other := start(t, serve), start(t, serve)
				s := &setup{}
				client := s.start(t, e, one.addr(), other.addr()).Dial()
				client.Send(head + c.first)
				servertest.Await(t, got, "the body")
				close(down)
				servertest.Eventually(t, "the failure", func() bool { return s.log.String() != "" })
				client.SendAside(c.rest)
				if res, body := client.Response("PUT"); res.StatusCode != c.status || c.status == 200 && body != "abcdefgh" {
					t.Errorf("%s %q, log %s", res.Status, body, s.log)
				}
			})
		})
	}
}

// TestEarlyWhileStalled: a server that answers before it has read a long body is heard although it reads no more.
func TestEarlyWhileStalled(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			c.head()
			c.r.ReadByte()
			c.put("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
			c.wait(nil)
		})
		client := (&setup{}).start(t, e, o.addr()).Dial()
		client.SendAside("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50000000\r\n\r\n" + strings.Repeat("x", 20<<20))
		if res, body := client.Response("POST"); res.StatusCode != 413 || body != "no" {
			t.Error(res.Status, body)
		}
	})
}

// TestSlowServer: the client is read no faster than the server reads.
func TestSlowServer(t *testing.T) {
	const size = 48 << 20
	alike(t, func(t *testing.T, e chert.Engine) {
		go1 := make(chan bool)
		o := start(t, func(c *conn) {
			r, err := http.ReadRequest(c.r)
			if err != nil {
				return
			}
			c.wait(go1)
			n, _ := io.Copy(io.Discard, r.Body)
			c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nX: %d\r\nContent-Length: 0\r\n\r\n", n))
		})
		client := (&setup{}).start(t, e, o.addr()).Dial()
		client.Send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", size))
		piece := servertest.Pattern(1 << 20)
		stuck := false
		sent := 0
		for sent < size {
			client.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			n, err := client.Write(piece[:min(len(piece), size-sent)])
			if sent += n; err != nil && !stuck {
				stuck = true
				close(go1)
			}
		}
		if !stuck {
			t.Error("all of the body was read")
			close(go1)
		}
		if res, _ := client.Response("POST"); res.StatusCode != 200 || res.Header.Get("X") != fmt.Sprint(size) {
			t.Error(res.Status, res.Header)
		}
	})
}

// refusals are middleware that answers 403: refuse requests with a field X-Refuse, inspect those with "bad" in the body.
func refusals(t *testing.T) (refuse, inspect func(http.Handler) http.Handler) {
	refused := direct.NewResponse(403, nil, []byte("no"))
	refuse = filter.New(func(c *filter.Call) filter.Outcome {
		if c.HasHeader("X-Refuse") {
			return c.Refuse(refused)
		}
		return filter.Pass
	})
	inspect = filter.New(func(c *filter.Call) filter.Outcome { // looks at bodies, as one against attacks
		body := c.Wire().Body()
		if w, r := c.Plain(); r != nil {
			var err error
			if body, err = io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			c.SetPlain(w, r)
		}
		if strings.Contains(string(body), "bad") {
			return c.Refuse(refused)
		}
		return filter.Pass
	})
	return refuse, inspect
}

// TestUploadThroughMiddleware: what decides about a request decides the same when its body comes later than its head.
func TestUploadThroughMiddleware(t *testing.T) {
	refuse, inspect := refusals(t)
	limit := middleware.BodyLimit(&middleware.BodyLimitOptions{MaxSize: 5})
	for _, c := range []struct {
		name     string
		with     func(http.Handler) http.Handler
		in, body string
		status   int
	}{
		{"refused", refuse, "X-Refuse: 1\r\nContent-Length: 3\r\n\r\n", "abc", 403},
		{"refused, chunks", refuse, "X-Refuse: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "3\r\nabc\r\n0\r\nA: b\r\n\r\n", 403},
		{"passed", refuse, "Content-Length: 3\r\n\r\n", "abc", 200},
		{"inspected", inspect, "Content-Length: 3\r\n\r\n", "bad", 403},
		{"inspected, chunks", inspect, "Transfer-Encoding: chunked\r\n\r\n", "3\r\nbad\r\n0\r\n\r\n", 403},
		{"inspected, good", inspect, "Transfer-Encoding: chunked\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", 200},
		{"limited", limit, "Content-Length: 5\r\n\r\n", "abcde", 200},
		{"limited, chunks", limit, "Transfer-Encoding: chunked\r\n\r\n", "5\r\nabcde\r\n0\r\n\r\n", 200},
		{"too long", limit, "Content-Length: 6\r\n\r\n", "abcdef", 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := start(t, echo)
				s := &setup{}
				h := c.with(s.handler(t, o.addr()))
				client := engines.Start(t, &chert.Server{Engine: e, Handler: h}).Dial()
				all := "POST / HTTP/1.1\r\nHost: h\r\n" + c.in + c.body
				for i := len(all) - len(c.body); i < len(all); i++ {
					client.Send(all[:i])
					client.Send(all[i:])
					if res, _ := client.Response("POST"); res.StatusCode != c.status {
						t.Fatal(i, res.Status)
					}
				}
				if strings.Contains(o.received(), "bad") || c.status != 200 && o.dials() > 0 {
					t.Errorf("server received %q", o.received())
				}
			})
		})
	}
}
