package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

// TestSlowClient: a server that ends a connection because the client does not send its body has not failed.
func TestSlowClient(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			c.SetReadDeadline(time.Now().Add(servertest.Soon)) // its limit for a request
			io.Copy(io.Discard, c.r)
		})
		s := &setup{}
		ts := s.start(t, e, o.addr())
		for range 2 {
			client := ts.Dial()
			client.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 70_000))
			if res, _ := client.Response("POST"); res.StatusCode != 502 {
				t.Error(res.Status, s.log)
			}
		}
		if st := s.pool.Status()[0].Servers[0]; st.Failures > 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestSlowClientHTTP2 is TestSlowClient for a server of HTTP/2, which ends the stream.
func TestSlowClientHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := http2Server(t, engines.NetHTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(servertest.Soon))
			io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}))
		s := &setup{up: proxy.UpstreamOptions{Protocol: proxy.ProtocolHTTP2}}
		ts := s.start(t, e, o.ListenAddr)
		for _, body := range []string{"Content-Length: 200000\r\n\r\n" + strings.Repeat("x", 70_000),
			"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"} {
			client := ts.Dial()
			client.Send("POST / HTTP/1.1\r\nHost: h\r\n" + body)
			if res, _ := client.Response("POST"); res.StatusCode != 502 {
				t.Error(res.Status, s.log)
			}
		}
		s.unblamed(t)
		client := ts.Dial()
		client.Send(post("x")) // which is whole: nothing was waited for
		client.Status(502)
		if st := s.pool.Status()[0].Servers[0]; st.Failures != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestSlowReader: a server that cuts a response off because the client does not take it has not failed. One that
// cuts off what the client takes has.
func TestSlowReader(t *testing.T) {
	const late = 2500 * time.Millisecond // the server's limit for a piece, more than origin.SlowClient, on a busy machine, too
	for _, protocol := range []proxy.Protocol{proxy.ProtocolHTTP1, proxy.ProtocolHTTP2} {
		for _, from := range []string{"HTTP/1", "HTTP/2"} {
			t.Run(fmt.Sprint(from, " to ", protocol), func(t *testing.T) {
				alike(t, func(t *testing.T, e chert.Engine) {
					cut := make(chan bool, 1)
					o := http2Server(t, engines.NetHTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/failed" {
							w.Header().Set("Content-Length", "5")
							http.NewResponseController(w).Flush()
							panic(http.ErrAbortHandler)
						}
						for piece, err := make([]byte, 16<<10), error(nil); err == nil; {
							http.NewResponseController(w).SetWriteDeadline(time.Now().Add(late))
							_, err = w.Write(piece)
						}
						cut <- true
					}))
					s := &setup{up: proxy.UpstreamOptions{Protocol: protocol}}
					ts := http2Server(t, e, s.handler(t, o.ListenAddr))
					client := h2c(t)
					if from == "HTTP/1" {
						client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
					}
					end := func(path string, wait <-chan bool) {
						res, err := client.Get("http://" + ts.ListenAddr + path)
						if err != nil {
							t.Fatal(err)
						}
						defer res.Body.Close()
						if wait != nil {
							servertest.Await(t, wait, "the server's limit")
						}
						if _, err := io.Copy(io.Discard, res.Body); err == nil {
							t.Error("the response has ended as if it were whole")
						}
					}
					end("/", cut)
					s.unblamed(t)
					if !strings.Contains(s.log.String(), "response cut off, slow client") {
						t.Error(s.log)
					}
					end("/failed", nil)
					servertest.Eventually(t, "a failure", func() bool { return s.pool.Status()[0].Servers[0].Failures > 0 })
				})
			})
		}
	}
}

// TestUnreadUpload: a server that reads no more of a body has a limit of time. A client that sends it slowly has not.
func TestUnreadUpload(t *testing.T) {
	const late = servertest.Soon // in which the server must answer what is whole
	for _, protocol := range []proxy.Protocol{proxy.ProtocolHTTP1, proxy.ProtocolHTTP2} {
		t.Run(fmt.Sprint(protocol), func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/unread" {
						<-t.Context().Done()
						return
					}
					n, _ := io.Copy(io.Discard, r.Body)
					fmt.Fprint(w, n)
				}))
				server.Config.Protocols = new(http.Protocols)
				server.Config.Protocols.SetHTTP1(true)
				server.Config.Protocols.SetUnencryptedHTTP2(true)
				server.Start()
				t.Cleanup(server.Close)
				s := &setup{}
				s.up.Protocol, s.up.StallTimeout, s.up.ResponseTimeout = protocol, late, late
				ts := s.start(t, e, server.Listener.Addr().String())
				client := ts.Dial()
				client.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
				time.Sleep(late * 2) // the client has nothing to send yet
				client.Send("1\r\nb\r\n0\r\n\r\n")
				if res, body := client.Response("POST"); body != "2" {
					t.Error(res.Status, body, s.log)
				}
				client = ts.Dial()
				client.SendAside("POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 16000000\r\n\r\n" + strings.Repeat("x", 16_000_000))
				if res, _ := client.Response("POST"); res.StatusCode != 504 {
					t.Error(res.Status, s.log)
				}
			})
		})
	}
}

// TestUnreadEndHTTP2: the limit is that of the last of a body, too, which the Transport has read to its end when it waits.
func TestUnreadEndHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
			if f.PseudoValue("method") == "GET" {
				respond(fr, f.StreamID, ":status: 204")
			}
		}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
		s := &setup{}
		s.up.Protocol, s.up.StallTimeout, s.up.ResponseTimeout = proxy.ProtocolHTTP2, servertest.Soon, servertest.Soon
		client := s.start(t, e, o.addr()).Dial()
		client.Send(get)
		if res, _ := client.Response("GET"); res.StatusCode != 204 { // the window is known then
			t.Fatal(res.Status, s.log)
		}
		client.Send(post(strings.Repeat("x", 5000)))
		if res, _ := client.Response("POST"); res.StatusCode != 504 {
			t.Error(res.Status, s.log)
		}
	})
}

// TestUnendedHeadHTTP2: the response to a HEAD has a limit of time, too, for the end of its stream.
func TestUnendedHeadHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, EndHeaders: true,
				BlockFragment: block([]string{":status: 200", "content-length: 5"})})
		}))
		s := &setup{}
		s.up.Protocol, s.up.StallTimeout, s.up.ResponseTimeout = proxy.ProtocolHTTP2, 300*time.Millisecond, 300*time.Millisecond
		client := s.start(t, e, o.addr()).Dial()
		client.Send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
		if res, _ := client.Response("HEAD"); res.StatusCode != 504 {
			t.Error(res.Status, s.log)
		}
	})
}

// TestStalledUpload: a response that the server makes of the body while that comes has not stalled as long as the
// client is waited for. It has when the server has the whole body.
func TestStalledUpload(t *testing.T) {
	const late = time.Second // in which the server must answer
	for _, protocol := range []proxy.Protocol{proxy.ProtocolHTTP1, proxy.ProtocolHTTP2} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprint(protocol, " silent ", silent), func(t *testing.T) {
				alike(t, func(t *testing.T, e chert.Engine) {
					server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						c := http.NewResponseController(w)
						c.EnableFullDuplex()
						io.WriteString(w, "first ")
						for b, err := make([]byte, 10), error(nil); err == nil; {
							c.Flush()
							var n int
							n, err = r.Body.Read(b)
							w.Write(b[:n])
						}
						if c.Flush(); silent {
							<-r.Context().Done()
						}
					}))
					server.Config.Protocols = new(http.Protocols)
					server.Config.Protocols.SetHTTP1(true)
					server.Config.Protocols.SetUnencryptedHTTP2(true)
					server.Start()
					t.Cleanup(server.Close)
					s := &setup{}
					s.up.Protocol, s.up.StallTimeout = protocol, late
					client := s.start(t, e, server.Listener.Addr().String()).Dial()
					client.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
					res, err := http.ReadResponse(client.R, &http.Request{Method: "POST"})
					if err != nil {
						t.Fatal(err)
					}
					begin := make([]byte, len("first a"))
					if _, err := io.ReadFull(res.Body, begin); err != nil || string(begin) != "first a" {
						t.Fatalf("%q, %v", begin, err)
					}
					time.Sleep(late + late/2) // the client has nothing to send yet
					client.Send("1\r\nb\r\n0\r\n\r\n")
					rest, err := io.ReadAll(res.Body)
					if string(rest) != "b" || (err != nil) != silent {
						t.Errorf("%q, %v", rest, err)
					}
					if strings.Contains(s.log.String(), "response stalled") != silent {
						t.Error(s.log)
					}
				})
			})
		}
	}
}

// TestWriteTimeout: a response whose time is over when it comes ends its connection, and that is counted.
func TestWriteTimeout(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("there are no loops")
	}
	const limit = 50 * time.Millisecond
	o := start(t, func(c *conn) {
		c.head()
		c.wait(nil)
	})
	s := &setup{}
	ts := engines.Start(t, &chert.Server{Handler: s.handler(t, o.addr()), WriteTimeout: limit})
	client := ts.Dial()
	client.Send(get)
	client.Ended()
	servertest.Eventually(t, "the limit is counted", func() bool { return stats.Get(ts.Stats().Timeouts, "write") == 1 })
	s.unblamed(t)
}
