package behave

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Several listeners of different kinds are served at once and end together.
func TestServeSeveral(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]chert.Engine{"auto": chert.EngineAuto, "goroutines": chert.EngineGoroutines, "nethttp": engines.NetHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
				put(w, local.Network()+" "+r.RemoteAddr)
			})})
			plain, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			own, err := ts.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "s")
			unix, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			mem := servertest.NewMemory()
			all := []net.Listener{plain, own, unix, mem}
			ends := make(chan error, len(all))
			for _, l := range all {
				go func() { ends <- ts.Control.Serve(l) }()
			}
			dialOn := func(network, addr string) net.Conn {
				nc, err := net.Dial(network, addr)
				if err != nil {
					t.Fatal(err)
				}
				nc.SetDeadline(time.Now().Add(servertest.Patience))
				t.Cleanup(func() { nc.Close() })
				return nc
			}
			first := ts.Dial()
			for _, tt := range []struct {
				c    net.Conn
				want string
			}{
				{first.Conn, "tcp " + first.LocalAddr().String()},
				{dialOn("tcp", plain.Addr().String()), "tcp 127.0.0.1:"},
				{dialOn("tcp", own.Addr().String()), "tcp 127.0.0.1:"},
				{dialOn("unix", path), "unix @"},
				{mem.Dial(t), "pipe pipe"},
			} {
				c := servertest.Wrap(t, tt.c)
				for range 2 {
					if _, body := c.Get("/"); !strings.HasPrefix(body, tt.want) {
						t.Errorf("got %q, want %q", body, tt.want)
					}
				}
			}
			if err := ts.Control.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			for range all {
				if err := servertest.Await(t, ends, "Serve"); err != http.ErrServerClosed {
					t.Errorf("Serve returned %v", err)
				}
			}
		})
	}
}

// Serve does not take an Engine or a Placement that there is not for the default.
func TestUnknownEngine(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*chert.Server{
		"chert: Server: Engine: unknown value 3":    {Engine: chert.EngineGoroutines + 1},
		"chert: Server: Placement: unknown value 3": {Placement: chert.PlacementPooled + 1},
	} {
		l := servertest.ListenTCP(t)
		end := make(chan error, 1)
		go func() { end <- s.Serve(l) }()
		if err := servertest.Await(t, end, want); err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener is left open: %v", err)
		}
	}
}

func TestListenAndServe(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		addr := make(chan string, 1)
		s := &chert.Server{Engine: e, Addr: "127.0.0.1:0",
			BaseContext: func(l net.Listener) context.Context {
				addr <- l.Addr().String()
				return context.Background()
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "hi") }),
		}
		end := make(chan error, 1)
		go func() { end <- s.ListenAndServe() }()
		nc, err := net.Dial("tcp", servertest.Await(t, addr, "BaseContext"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, body := servertest.Wrap(t, nc).Get("/"); body != "hi" {
			t.Errorf("got %q", body)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := servertest.Await(t, end, "ListenAndServe"); err != chert.ErrServerClosed {
			t.Errorf("ListenAndServe returned %v", err)
		}
	})
}
