package h2_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

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
