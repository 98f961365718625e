package chert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// memory is a listener whose connections are net.Pipes.
type memory struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), done: make(chan struct{})} }

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.done) }); return nil }
func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }
func (m *memory) dial(t *testing.T) net.Conn {
	client, server := net.Pipe()
	client.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { client.Close() })
	select {
	case m.conns <- server:
	case <-time.After(patience):
		t.Fatal("nobody accepts")
	}
	return client
}

// Several listeners of different kinds are served at once and end together.
func TestServeSeveral(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]Engine{"auto": EngineAuto, "goroutines": EngineGoroutines, "nethttp": oracle} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
			mem := newMemory()
			all := []net.Listener{plain, own, unix, mem}
			ends := make(chan error, len(all))
			for _, l := range all {
				go func() { ends <- ts.ctl.Serve(l) }()
			}
			dialOn := func(network, addr string) net.Conn {
				nc, err := net.Dial(network, addr)
				if err != nil {
					t.Fatal(err)
				}
				nc.SetDeadline(time.Now().Add(patience))
				t.Cleanup(func() { nc.Close() })
				return nc
			}
			first := ts.dial()
			for _, tt := range []struct {
				c    net.Conn
				want string
			}{
				{first.Conn, "tcp " + first.LocalAddr().String()},
				{dialOn("tcp", plain.Addr().String()), "tcp 127.0.0.1:"},
				{dialOn("tcp", own.Addr().String()), "tcp 127.0.0.1:"},
				{dialOn("unix", path), "unix @"},
				{mem.dial(t), "pipe pipe"},
			} {
				c := newRaw(t, tt.c)
				for range 2 {
					if _, body := c.get("/"); !strings.HasPrefix(body, tt.want) {
						t.Errorf("got %q, want %q", body, tt.want)
					}
				}
			}
			if err := ts.ctl.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			for range all {
				if err := await(t, ends, "Serve"); err != http.ErrServerClosed {
					t.Errorf("Serve returned %v", err)
				}
			}
		})
	}
}

// A listener that somebody else closes ends its Serve and nothing else.
func TestServeListenerClosed(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		for _, own := range []bool{false, true} {
			release := make(chan struct{})
			running := make(chan struct{})
			s := &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
			ts := startOn(t, s, l)
			idle, active := ts.dial(), ts.dial()
			idle.get("/")
			active.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
			await(t, running, "the handler")
			l.Close()
			if err := await(t, ts.errc, "Serve"); err == nil || errors.Is(err, http.ErrServerClosed) || !errors.Is(err, net.ErrClosed) {
				t.Errorf("Serve returned %v", err)
			}
			ts.errc <- http.ErrServerClosed // for start's cleanup
			ts.refused()
			idle.get("/")
			close(release)
			if res, body := active.response("GET"); body != "answer" || res.Close {
				t.Errorf("got %v %q", res, body)
			}
			active.get("/")
			// And another can be served.
			l, err = net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			end := make(chan error, 1)
			go func() { end <- ts.ctl.Serve(l) }()
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			newRaw(t, nc).get("/")
			ts.ctl.Close()
			if err := await(t, end, "Serve"); err != http.ErrServerClosed {
				t.Errorf("Serve returned %v", err)
			}
		}
	})
}

// SO_REUSEPORT must not let two servers share a port unasked.
func TestListenPortTaken(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {})})
		if l, err := ts.Listen("tcp", ts.addr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("Listen gave %v, %v", l, err)
		}
		other := &Server{Engine: e, Addr: ts.addr}
		if err := other.ListenAndServe(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServe returned %v", err)
		}
		if _, err := net.Listen("tcp", ts.addr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("net.Listen gave %v", err)
		}
		// A listener that does not serve yet holds its port too.
		l, err := (&Server{Engine: e}).Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := (&Server{Engine: e, Addr: l.Addr().String()}).ListenAndServe(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServe returned %v", err)
		}
		ts.dial().get("/")
	})
}

func TestListen(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		for _, tt := range []struct{ network, addr string }{
			{"tcp", ":0"}, {"tcp", "127.0.0.1:0"}, {"tcp4", ":0"}, {"tcp", "localhost:0"},
		} {
			l, err := (&Server{Engine: e}).Listen(tt.network, tt.addr)
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
		if l, err := (&Server{Engine: e}).Listen("tcp", "127.0.0.1:http-alt-alt"); err == nil {
			t.Errorf("got %v", l.Addr())
		}
	})
}

func TestListenAndServe(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		addr := make(chan string, 1)
		s := &Server{Engine: e, Addr: "127.0.0.1:0",
			BaseContext: func(l net.Listener) context.Context {
				addr <- l.Addr().String()
				return context.Background()
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "hi") }),
		}
		end := make(chan error, 1)
		go func() { end <- s.ListenAndServe() }()
		nc, err := net.Dial("tcp", await(t, addr, "BaseContext"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, body := newRaw(t, nc).get("/"); body != "hi" {
			t.Errorf("got %q", body)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := await(t, end, "ListenAndServe"); err != ErrServerClosed {
			t.Errorf("ListenAndServe returned %v", err)
		}
	})
}

// certificate borrows httptest's.
func certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.TLS.Certificates[0], pool
}

func TestServeTLSListener(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	for name, e := range map[string]Engine{"auto": EngineAuto, "goroutines": EngineGoroutines, "nethttp": oracle} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tcp, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			body := string(pattern(100_000))
			ts := startOn(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
			dialTLS := func() *rawConn {
				nc, err := tls.Dial("tcp", ts.addr, &tls.Config{RootCAs: roots, ServerName: "example.com"})
				if err != nil {
					t.Fatal(err)
				}
				nc.SetDeadline(time.Now().Add(patience))
				t.Cleanup(func() { nc.Close() })
				return newRaw(t, nc)
			}
			c := dialTLS()
			for range 2 {
				c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + body)
				if _, got := c.response("POST"); got != body {
					t.Errorf("got %s", brief(got))
				}
			}
			c = dialTLS()
			c.send("GET /hijack HTTP/1.1\r\nHost: h\r\n\r\nahead")
			c.expect("ahead")
			c.send("more")
			c.expect("more")
			c.Close()
			// Plain HTTP is told so.
			if got := ts.exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n", false); !strings.HasPrefix(got, "HTTP/1.0 400 Bad Request\r\n") {
				t.Errorf("got %q", got)
			}
			if log := ts.log.String(); !strings.Contains(log, "http: TLS handshake error from 127.0.0.1:") {
				t.Errorf("log is %q", log)
			}
		})
	}
}
