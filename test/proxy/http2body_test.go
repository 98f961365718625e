package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/router"
)

// TestEarlyHTTP2: a response that ends before the body of its request does is whole, and then the stream is reset
// without an error, while others go on.
func TestEarlyHTTP2(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, status := range []string{"200 OK", "413 Too Large"} {
			o := start(t, func(c *conn) {
				c.head()
				c.r.ReadByte()
				c.put("HTTP/1.1 " + status + "\r\nContent-Length: 2\r\n\r\nno")
				io.Copy(io.Discard, c.r)
			})
			s := &setup{}
			client, fr := dialHTTP2(http2Server(t, e, s.handler(t, o.addr())))
			f := newFrames()
			f.post(1, false)
			f.fr.WriteData(1, false, []byte("abc"))
			client.Send(f.String())
			if got := answerOf(t, fr, 1); got != status[:3]+" no" {
				t.Error(got)
			}
			if got := answerOf(t, fr, 1); got != "NO_ERROR" {
				t.Error(got)
			}
			servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
		}
	})
}

// TestContinueHTTP2: a body that the client holds back is asked for when the server asks, or does not answer.
func TestContinueHTTP2(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, c := range []struct{ first, want string }{
			{"HTTP/1.1 100 Continue\r\n\r\n", "100 200 abc"},
			{"", "100 200 abc"},
			{"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n", "417 "},
		} {
			o := start(t, func(conn *conn) {
				r, err := http.ReadRequest(conn.r)
				if err != nil {
					return
				}
				conn.put(c.first)
				b, err := io.ReadAll(r.Body)
				if err == nil {
					conn.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b))
				}
			})
			client, fr := dialHTTP2(http2Server(t, e, (&setup{}).handler(t, o.addr())))
			f := newFrames()
			f.post(1, false, "content-length: 3", "expect: 100-continue")
			client.Send(f.String())
			got := ""
			for !strings.HasSuffix(got, "abc") && !strings.Contains(got, "417") {
				frame, err := fr.ReadFrame()
				if err != nil {
					t.Fatal(err, got)
				}
				switch frame := frame.(type) {
				case *http2.MetaHeadersFrame:
					if got += frame.PseudoValue("status") + " "; got == "100 " {
						fr.WriteData(1, true, []byte("abc"))
					}
				case *http2.DataFrame:
					got += string(frame.Data())
				}
			}
			// On goroutines the body may have been asked for when a refusal comes.
			if got != c.want && (e == chert.EngineLoops || got != "100 "+c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		}
	})
}

// TestWaitingUploadHTTP2: a client that does not send its body gets 408, and its other streams go on.
func TestWaitingUploadHTTP2(t *testing.T) {
	for _, fields := range [][]string{nil, {"content-length: 12"}, {"content-length: 100000"}} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprint(fields, whole), func(t *testing.T) {
				t.Parallel()
				engines.Each(t, func(t *testing.T, e chert.Engine) {
					o := start(t, echo)
					s := &setup{}
					server := &chert.Server{Engine: e, Handler: s.handler(t, o.addr()), Protocols: new(http.Protocols)}
					server.Protocols.SetUnencryptedHTTP2(true)
					if whole {
						server.ReadTimeout = 500 * time.Millisecond // also for the client to send what it has
					} else {
						server.ReadStallTimeout = 100 * time.Millisecond
					}
					client, fr := dialHTTP2(engines.Start(t, server))
					f := newFrames()
					f.post(1, false, slices.Clone(fields)...)
					f.fr.WriteData(1, false, []byte("abc"))
					client.Send(f.String())
					if got := answerOf(t, fr, 1); !strings.HasPrefix(got, "408 ") {
						t.Error(got)
					}
					if !strings.Contains(s.log.String(), "request body not received in time") {
						t.Error(s.log)
					}
				})
			})
		}
	}
}

// TestUploadThroughMiddlewareHTTP2: what decides about a request decides the same when its body comes later than
// its head, and handlers that need the body get it.
func TestUploadThroughMiddlewareHTTP2(t *testing.T) {
	refuse, inspect := refusals(t)
	routes := func(h http.Handler) http.Handler {
		m := router.New()
		m.Handle("POST /{$}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(w, r.Body)
		}))
		m.Handle("/proxied", h)
		return m
	}
	for _, c := range []struct {
		name         string
		with         func(http.Handler) http.Handler
		fields       []string
		body, answer string
	}{
		{"refused", refuse, []string{"x-refuse: 1"}, "abc", "403 no"},
		{"refused, length", refuse, []string{"x-refuse: 1", "content-length: 3"}, "abc", "403 no"},
		{"passed", refuse, nil, "abc", "200 abc"},
		{"inspected", inspect, nil, "bad", "403 no"},
		{"inspected, good", inspect, []string{"content-length: 3"}, "abc", "200 abc"},
		{"a handler of its own", routes, nil, "abc", "200 abc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				o := start(t, echo)
				client, fr := dialHTTP2(http2Server(t, e, c.with((&setup{}).handler(t, o.addr()))))
				for id := uint32(1); id < 40; id += 2 {
					f := newFrames()
					f.post(id, false, c.fields...)
					if id%4 == 1 { // the body comes in another read, mostly
						client.Send(f.String())
						f.Reset()
					}
					f.fr.WriteData(id, false, []byte(c.body[:1]))
					f.fr.WriteData(id, true, []byte(c.body[1:]))
					client.Send(f.String())
					if got := answerOf(t, fr, id); got != c.answer {
						t.Fatalf("stream %d: %q, want %q", id, got, c.answer)
					}
				}
				if got := o.received(); strings.Contains(got, "bad") || c.answer != "200 abc" && got != "" {
					t.Errorf("server received %q", got)
				}
			})
		})
	}
}

// TestUploadRetriedHTTP2: what is kept of a body is sent again, and no more.
func TestUploadRetriedHTTP2(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		want string
	}{
		{"kept", 5, "200 "}, {"not kept", 100_000, "502 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				down, got := make(chan bool), make(chan bool, 1)
				var begun atomic.Bool
				serve := func(conn *conn) { // the first request, of either server, ends its connection
					if !begun.Swap(true) {
						conn.head()
						io.CopyN(io.Discard, conn.r, int64(c.size*9/10))
						got <- true
						conn.wait(down)
						return
					}
					echo(conn)
				}
				one, other := start(t, serve), start(t, serve)
				s := &setup{}
				client, fr := dialHTTP2(http2Server(t, e, s.handler(t, one.addr(), other.addr())))
				f := newFrames()
				f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true,
					BlockFragment: block([]string{":method: PUT", ":scheme: http", ":authority: h", ":path: /"})})
				for left := c.size; left > 0; left -= min(left, 10_000) {
					f.fr.WriteData(1, false, bytes.Repeat([]byte("x"), min(left, 10_000)))
				}
				client.Send(f.String())
				servertest.Await(t, got, "the body")
				close(down)
				servertest.Eventually(t, "the failure", func() bool { return s.log.String() != "" })
				f.Reset()
				f.fr.WriteData(1, true, []byte("yz"))
				client.Send(f.String())
				answer := answerOf(t, fr, 1)
				if !strings.HasPrefix(answer, c.want) || c.want == "200 " && answer != "200 xxxxxyz" {
					t.Errorf("%q, log %s", answer, s.log)
				}
			})
		})
	}
}

// TestClientGoneHTTP2: when the client's connection ends in the middle of a body, the server's ends without the
// end of the request.
func TestClientGoneHTTP2(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan error, 1)
		o := start(t, func(c *conn) {
			r, err := http.ReadRequest(c.r)
			if err != nil {
				return
			}
			c.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
			_, err = io.Copy(io.Discard, r.Body)
			ended <- err
		})
		s := &setup{}
		client, fr := dialHTTP2(http2Server(t, e, s.handler(t, o.addr())))
		f := newFrames()
		f.post(1, false)
		f.fr.WriteData(1, false, []byte("abc"))
		client.Send(f.String())
		for {
			frame, err := fr.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := frame.(*http2.DataFrame); ok {
				break
			}
		}
		client.Reset()
		if err := servertest.Await(t, ended, "the end"); err == nil {
			t.Error("the server took the request for complete")
		}
		servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
	})
}
