package behave

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A connection in its handshake when Shutdown begins may still send a request,
// for five seconds.
func TestBubbleHandshakeShutdown(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	for name, part := range map[string]string{"nothing": "", "a part": "\x16\x03\x01\x02\x00\x01"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbles(t, func(t *testing.T, e chert.Engine) {
				m := servertest.NewMemory()
				ts := engines.StartTLS(t, &chert.Server{Engine: e, Handler: memoryEcho(t)}, m, cert)
				silent, late := m.Patient(t), m.Patient(t)
				if part != "" {
					silent.Send(part)
				}
				synctest.Wait()
				ended := make(chan time.Duration)
				go func() {
					ended <- servertest.Took(func() {
						if err := ts.Control.Shutdown(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}()
				time.Sleep(3 * time.Second)
				if e == engines.NetHTTP {
					late.Close() // it does not serve any more
				} else {
					c, _ := servertest.TLSOver(t, late.Conn, roots)
					if res, _ := c.Get("/"); res.StatusCode != 200 || !res.Close {
						t.Errorf("got %v", res)
					}
					c.Ended()
				}
				silent.UpToEnd()
				d := <-ended
				within(t, "Shutdown ends", d, 5*time.Second, 7*time.Second)
				if e != engines.NetHTTP && d != 5*time.Second {
					t.Errorf("Shutdown took %v", d)
				}
			})
		})
	}
}

// A handshake that does not end is aborted when the server's other times
// require it, as with net/http, and always after ten seconds with chert.
func TestBubbleHandshakeTimeout(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	bubbles(t, func(t *testing.T, e chert.Engine) {
		m := servertest.NewMemory()
		ts := engines.StartTLS(t, &chert.Server{Engine: e, ReadHeaderTimeout: 10 * time.Second}, m, cert)
		c := m.Patient(t)
		if d := servertest.Took(func() { c.UpToEnd() }); d != 10*time.Second {
			t.Errorf("closed after %v", d)
		}
		synctest.Wait()
		if log := ts.Log.String(); !strings.HasPrefix(log, "http: TLS handshake error from pipe: ") {
			t.Errorf("log is %q", log)
		}
	})
}

// TLS over pipes keeps the times of plain connections.
func TestBubbleTLS(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	bubbles(t, func(t *testing.T, e chert.Engine) {
		m := servertest.NewMemory()
		ts := engines.StartTLS(t, &chert.Server{Engine: e, IdleTimeout: 7 * time.Second, Handler: memoryEcho(t)}, m, cert)
		c, _ := servertest.TLSOver(t, m.Patient(t).Conn, roots)
		for range 2 {
			c.Get("/")
			time.Sleep(6 * time.Second)
		}
		if _, body := c.Get("/large"); body != string(servertest.Pattern(1<<20)) {
			t.Errorf("got %s", servertest.Brief(body))
		}
		if d := servertest.Took(c.Ended); d != 7*time.Second {
			t.Errorf("closed after %v", d)
		}
		if err := ts.Control.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestServeTLSListener(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	for name, e := range map[string]chert.Engine{"auto": chert.EngineAuto, "goroutines": chert.EngineGoroutines, "nethttp": engines.NetHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tcp, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			body := string(servertest.Pattern(100_000))
			ts := engines.StartOn(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if r.TLS == nil || !r.TLS.HandshakeComplete || r.TLS.ServerName != "example.com" {
					t.Errorf("r.TLS is %+v", r.TLS)
				}
				if r.URL.Path == "/hijack" {
					nc, rw, err := w.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					defer nc.Close()
					if _, ok := nc.(*tls.Conn); !ok {
						t.Errorf("Hijack gave a %T", nc)
					}
					io.Copy(nc, rw)
					return
				}
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				w.Write(b)
			})}, tls.NewListener(tcp, &tls.Config{Certificates: []tls.Certificate{cert}}))
			dialTLS := func() *servertest.Client {
				nc, err := tls.Dial("tcp", ts.ListenAddr, &tls.Config{RootCAs: roots, ServerName: "example.com"})
				if err != nil {
					t.Fatal(err)
				}
				nc.SetDeadline(time.Now().Add(servertest.Patience))
				t.Cleanup(func() { nc.Close() })
				return servertest.Wrap(t, nc)
			}
			c := dialTLS()
			for range 2 {
				c.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + body)
				if _, got := c.Response("POST"); got != body {
					t.Errorf("got %s", servertest.Brief(got))
				}
			}
			c = dialTLS()
			c.Send("GET /hijack HTTP/1.1\r\nHost: h\r\n\r\nahead")
			c.Want("ahead")
			c.Send("more")
			c.Want("more")
			c.Close()
			// A plain HTTP client gets a response that says so.
			if got := ts.Exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n", false); !strings.HasPrefix(got, "HTTP/1.0 400 Bad Request\r\n") {
				t.Errorf("got %q", got)
			}
			servertest.Eventually(t, "the log has the handshake", func() bool {
				return strings.Contains(ts.Log.String(), "http: TLS handshake error from 127.0.0.1:")
			})
		})
	}
}
