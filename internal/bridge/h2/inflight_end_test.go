package h2_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// endings are requests that end in all ways that the code of a handler and its files have.
func endings(t *testing.T) fastOrNot {
	t.Helper()
	file := fileOf(t, 100_000)
	send := func(x *direct.Exchange, n int64, done func()) {
		x.SetHeader("Content-Type", "a/b")
		x.SendFile(direct.File{File: file, Len: n, Done: done})
	}
	abort := func() { panic(http.ErrAbortHandler) }
	return fastOrNot{
		hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/plain/panic":
				abort()
			case "/plain/late":
				w.Write(make([]byte, 100))
				http.NewResponseController(w).Flush()
				abort()
			case "/plain/exit":
				runtime.Goexit()
			case "/plain/short":
				w.Header().Set("Content-Length", "100")
			case "/plain/hijack":
				if nc, _, err := http.NewResponseController(w).Hijack(); err == nil {
					nc.Close()
				}
			case "/plain/keep":
				wire.Watch(w, careless{})
				w.Write(make([]byte, 100_000))
			case "/plain/done":
				direct.Respond(w, r, func(x *direct.Exchange) { send(x, 10, abort) })
			default:
				hello(w, r)
			}
		}),
		func(x *direct.Exchange) bool {
			switch string(x.Path()) {
			case "/panic":
				abort()
			case "/exit":
				runtime.Goexit()
			case "/done", "/large/done":
				send(x, map[bool]int64{true: 100_000, false: 10}[x.Path()[1] == 'l'], abort)
			case "/check":
				x.SendFile(direct.File{File: file, Len: 100_000, Check: func() error { panic(http.ErrAbortHandler) }})
			case "/empty":
				send(x, 0, abort)
			case "/short": // the file has less
				send(x, 200_000, nil)
			case "/none":
				x.SetStatus(204)
				send(x, 10, abort)
			case "/declined":
				send(x, 10, func() {})
				return false
			case "/declined/done":
				send(x, 10, abort)
				return false
			case "/keep":
				x.Wire().Watch(careless{})
				send(x, 100_000, nil)
			default:
				return false
			}
			return true
		},
	}
}

// careless is a watcher that panics before anything has been sent.
type careless struct{}

func (careless) Keep()              { panic(http.ErrAbortHandler) }
func (careless) Sent(wire.Delivery) {}

var endingPaths = []string{"/panic", "/exit", "/done", "/large/done", "/check", "/empty", "/short", "/none", "/declined",
	"/declined/done", "/keep", "/plain/panic", "/plain/late", "/plain/exit", "/plain/short", "/plain/hijack", "/plain/done",
	"/plain/keep"}

// ends has requests end in all of these ways, and checks that none is counted afterwards.
func ends(t *testing.T, without string, ask func(s *running, method, path string)) {
	t.Helper()
	for _, p := range endingPaths {
		for _, method := range []string{"GET", "HEAD"} {
			t.Run(method+p, func(t *testing.T) {
				t.Parallel()
				each(t, without, func(t *testing.T, kind string) {
					s := serve(t, kind, &chert.Server{Handler: heldOr(1, endings(t))})
					for range 3 {
						ask(s, method, p)
					}
					s.held(1)
				})
			})
		}
	}
}

// However the handler, its file or another watcher ends a request, it is not counted afterwards.
func TestInFlightEnds(t *testing.T) {
	t.Parallel()
	ends(t, "oracle", func(s *running, method, p string) {
		c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		defer c.Close()
		c.fr.WriteWindowUpdate(0, 1<<20)
		f := path(get, p)
		f[0] = ":method: " + method
		c.headers(1, true, f...)
		c.send()
		c.read(1)
	})
}

// The same over HTTP/1, with another request that has come at the same time.
func TestInFlightEndsHTTP1(t *testing.T) {
	t.Parallel()
	ends(t, "oracle tls", func(s *running, method, p string) {
		c := s.dial()
		defer c.Close()
		fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", method, p)
		io.Copy(io.Discard, c)
	})
}
