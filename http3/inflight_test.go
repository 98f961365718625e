package http3_test

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
)

// endings is a handler whose requests end in all ways that its code and its files have.
type endings struct {
	file  *os.File
	files atomic.Int64 // of which Done has not been called
}

// careless is a watcher that panics before anything has been sent.
type careless struct{}

func (careless) Keep()              { panic(http.ErrAbortHandler) }
func (careless) Sent(wire.Delivery) {}

func abort()          { panic(http.ErrAbortHandler) }
func checked() error  { panic(http.ErrAbortHandler) }
func checkEnd() error { runtime.Goexit(); return nil }

func (h *endings) send(x *direct.Exchange, n int64, check func() error, done func()) {
	h.files.Add(1)
	x.SetHeader("Content-Type", "a/b")
	x.SendFile(direct.File{File: h.file, Len: n, Check: check, Done: func() {
		h.files.Add(-1)
		if done != nil {
			done()
		}
	}})
}

// ServeDirect implements direct.Handler.
func (h *endings) ServeDirect(x *direct.Exchange) bool {
	const large = 100_000
	path := string(x.Path())
	switch path, exits := strings.CutSuffix(path, "/exit"); path {
	case "/panic":
		if exits {
			runtime.Goexit()
		}
		abort()
	case "/done", "/done/large", "/done/empty", "/done/none":
		done := abort
		if exits {
			done = runtime.Goexit
		}
		if path == "/done/none" {
			x.SetStatus(204)
		}
		h.send(x, map[string]int64{"/done": 10, "/done/large": large, "/done/none": 10}[path], nil, done)
	case "/check":
		check := checked
		if exits {
			check = checkEnd
		}
		h.send(x, large, check, nil)
	case "/short": // the file has less
		h.send(x, 2*large, nil, nil)
	case "/declined":
		h.send(x, 10, nil, nil)
		return false
	case "/declined/done":
		h.send(x, 10, nil, abort)
		return false
	case "/keep":
		x.Wire().Watch(careless{})
		h.send(x, large, nil, nil)
	default:
		return false
	}
	return true
}

func (h *endings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	case "/plain/keep":
		wire.Watch(w, careless{})
		w.Write(make([]byte, 100_000))
	case "/plain/done":
		direct.Respond(w, r, func(x *direct.Exchange) { h.send(x, 10, nil, abort) })
	default:
		hello(w, r)
	}
}

// However the handler, its file or another watcher ends a request, neither middleware.InFlight nor the connection
// counts it afterwards.
func TestInFlightEnds(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	for _, p := range []string{"/panic", "/panic/exit", "/done", "/done/large", "/done/empty", "/done/none", "/done/exit",
		"/done/large/exit", "/done/empty/exit", "/done/none/exit", "/check", "/check/exit", "/short", "/declined",
		"/declined/done", "/keep", "/plain/panic", "/plain/late", "/plain/exit", "/plain/short", "/plain/done", "/plain/keep"} {
		for _, method := range []string{"GET", "HEAD"} {
			t.Run(method+p, func(t *testing.T) {
				t.Parallel()
				h := &endings{file: file}
				limit := middleware.InFlight(&middleware.InFlightOptions{Max: -1, PerClient: 1})
				s := serve(t, &chert.Server{Handler: limit(h)})
				c := s.raw()
				for range 3 {
					c.do(headers(with(path(get, p)[1:], ":method: "+method)...))
				}
				servertest.Eventually(t, "the client may have another request", func() bool { return c.get("/").ending() == "200" })
				servertest.Eventually(t, "nothing is counted", func() bool {
					all := s.OpenConnections(10)
					return len(all) == 1 && all[0].State == "idle" && s.Stats().Running == 0 && h.files.Load() == 0
				})
			})
		}
	}
}
