package h2_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// panicking is a watcher, an access log's for example, that panics when it is notified.
type panicking struct{}

func (panicking) Keep()              {}
func (panicking) Sent(wire.Delivery) { panic("watched") }

// A watcher that panics, also when its stream has been reused since, is logged and harms
// nothing.
func TestWatcherPanics(t *testing.T) {
	t.Parallel()
	plain := hf(func(w http.ResponseWriter, r *http.Request) {
		wire.Watch(w, panicking{})
		io.WriteString(w, "hello")
	})
	d := direct.HandlerFunc(func(x *direct.Exchange) {
		(*wire.Exchange)(x).Watch(panicking{})
		x.WriteString("hello")
	})
	each(t, "oracle", func(t *testing.T, kind string) {
		for _, h := range []http.Handler{plain, d} {
			const n = 50
			s := serve(t, kind, &chert.Server{Handler: h})
			c := s.raw()
			for i := range uint32(n) {
				c.headers(2*i+1, true, get...)
			}
			c.send()
			for range n { // answered in any order
				for ended := false; !ended; {
					f := c.next()
					if f == nil {
						t.Fatal("closed")
					}
					ended = f.Header().StreamID != 0 && f.Header().Flags.Has(1)
				}
			}
			all := n
			if !s.overTLS() {
				nc := s.dial()
				go io.WriteString(nc, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", n))
				br := bufio.NewReader(nc)
				for range n {
					res, err := http.ReadResponse(br, nil)
					if err != nil {
						t.Fatal(err)
					}
					if b, err := io.ReadAll(res.Body); err != nil || string(b) != "hello" {
						t.Fatalf("%q, %v", b, err)
					}
				}
				all += n
			}
			servertest.Eventually(t, "the panics are logged", func() bool {
				return strings.Count(s.log.String(), "panic serving 127.0.0.1:") == all
			})
		}
	})
}

// noted is a watcher that passes on the delivery.
type noted chan wire.Delivery

func (n noted) Keep()                {}
func (n noted) Sent(d wire.Delivery) { n <- d }

// Of a response that is cut off exactly the bytes of DATA frames are delivered: of one that the client resets as many as
// its window has let out, whether a handler still waits to send the rest or has left it.
func TestDeliveryCutOff(t *testing.T) {
	t.Parallel()
	const window = 1000
	for _, tt := range []struct {
		name  string
		large int // of the body; beyond the window the client resets the stream
		end   func(w http.ResponseWriter)
		want  int64
	}{
		{"the handler waits", 100_000, func(http.ResponseWriter) {}, window},
		{"the handler has returned", 5000, func(http.ResponseWriter) {}, window},
		{"it panics", 5, func(w http.ResponseWriter) {
			w.(http.Flusher).Flush()
			io.WriteString(w, "lost")
			panic(http.ErrAbortHandler)
		}, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, "oracle", func(t *testing.T, kind string) {
				body := strings.Repeat("x", tt.large)
				sent := make(noted, 2)
				mux := http.NewServeMux()
				mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {
					wire.Watch(w, sent)
					io.WriteString(w, body)
					tt.end(w)
				})
				mux.Handle("/direct", direct.HandlerFunc(func(x *direct.Exchange) {
					(*wire.Exchange)(x).Watch(sent)
					x.WriteString(body)
				}))
				s := serve(t, kind, &chert.Server{Handler: mux})
				for _, p := range []string{"/plain", "/direct"} {
					if p == "/direct" && tt.large <= window {
						continue // it has no way to fail
					}
					c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
					c.headers(1, true, path(get, p)...)
					c.send()
					for got := 0; got < min(tt.large, window); {
						switch f := c.next().(type) {
						case nil:
							t.Fatal("closed")
						case *http2.DataFrame:
							got += len(f.Data())
						}
					}
					if tt.large > window {
						c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
						c.send()
					}
					want := wire.Delivery{Status: 200, Body: tt.want}
					if got := servertest.Await(t, sent, "the delivery"); got != want {
						t.Errorf("%s: %+v, want %+v", p, got, want)
					}
				}
			})
		})
	}
}
