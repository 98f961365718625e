package behave

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
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

// A listener that somebody else closes ends its Serve and nothing else.
func TestServeListenerClosed(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, own := range []bool{false, true} {
			release := make(chan struct{})
			running := make(chan struct{})
			s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/wait" {
					close(running)
					<-release
				}
				put(w, "answer")
			})}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if own {
				l.Close()
				l, err = s.Listen("tcp", "127.0.0.1:0")
			}
			if err != nil {
				t.Fatal(err)
			}
			ts := engines.StartOn(t, s, l)
			idle, active := ts.Dial(), ts.Dial()
			idle.Get("/")
			active.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
			servertest.Await(t, running, "the handler")
			l.Close()
			if err := servertest.Await(t, ts.Served, "Serve"); err == nil || errors.Is(err, http.ErrServerClosed) || !errors.Is(err, net.ErrClosed) {
				t.Errorf("Serve returned %v", err)
			}
			ts.Served <- http.ErrServerClosed // for start's cleanup
			ts.Refuses()
			idle.Get("/")
			close(release)
			if res, body := active.Response("GET"); body != "answer" || res.Close {
				t.Errorf("got %v %q", res, body)
			}
			active.Get("/")
			// And another can be served.
			l, err = net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			end := make(chan error, 1)
			go func() { end <- ts.Control.Serve(l) }()
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			servertest.Wrap(t, nc).Get("/")
			ts.Control.Close()
			if err := servertest.Await(t, end, "Serve"); err != http.ErrServerClosed {
				t.Errorf("Serve returned %v", err)
			}
		}
	})
}

// SO_REUSEPORT must not let two servers share a port unasked.
func TestListenPortTaken(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {})})
		if l, err := ts.Listen("tcp", ts.ListenAddr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("Listen gave %v, %v", l, err)
		}
		other := &chert.Server{Engine: e, Addr: ts.ListenAddr}
		if err := other.ListenAndServe(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServe returned %v", err)
		}
		if _, err := net.Listen("tcp", ts.ListenAddr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("net.Listen gave %v", err)
		}
		// A listener that does not serve yet holds its port too.
		l, err := (&chert.Server{Engine: e}).Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := (&chert.Server{Engine: e, Addr: l.Addr().String()}).ListenAndServe(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServe returned %v", err)
		}
		ts.Dial().Get("/")
	})
}

func TestListen(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, tt := range []struct{ network, addr string }{
			{"tcp", ":0"}, {"tcp", "127.0.0.1:0"}, {"tcp4", ":0"}, {"tcp", "localhost:0"},
		} {
			l, err := (&chert.Server{Engine: e}).Listen(tt.network, tt.addr)
			if err != nil {
				t.Fatal(err)
			}
			a, ok := l.Addr().(*net.TCPAddr)
			if !ok || a.Port == 0 {
				t.Errorf("%s %s: Addr is %v", tt.network, tt.addr, l.Addr())
			}
			// It can be used without Serve.
			nc, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strings.TrimLeft(l.Addr().String()[strings.LastIndexByte(l.Addr().String(), ':'):], ":")))
			if err != nil {
				t.Fatal(err)
			}
			peer, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			peer.Close()
			nc.Close()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err == nil {
				t.Error("a second Close gave no error")
			}
		}
		if l, err := (&chert.Server{Engine: e}).Listen("tcp", "127.0.0.1:http-alt-alt"); err == nil {
			t.Errorf("got %v", l.Addr())
		}
	})
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
			// Plain HTTP is told so.
			if got := ts.Exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n", false); !strings.HasPrefix(got, "HTTP/1.0 400 Bad Request\r\n") {
				t.Errorf("got %q", got)
			}
			if log := ts.Log.String(); !strings.Contains(log, "http: TLS handshake error from 127.0.0.1:") {
				t.Errorf("log is %q", log)
			}
		})
	}
}
