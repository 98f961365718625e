package chert

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tlsControl is what tests do with a server beside what control has.
type tlsControl interface {
	control
	ServeTLS(l net.Listener, certFile, keyFile string) error
	ListenAndServe() error
	ListenAndServeTLS(certFile, keyFile string) error
}

// controlOf is s, or net/http's server in its place.
func controlOf(s *Server) tlsControl {
	if s.Engine == oracle {
		return s.asHTTP()
	}
	return s
}

// startTLS serves s on l with ServeTLS, and with a certificate of its own.
func startTLS(t *testing.T, s *Server, l net.Listener, cert tls.Certificate) *testServer {
	t.Helper()
	ts := &testServer{Server: s, t: t, addr: l.Addr().String(), log: new(logBuffer), errc: make(chan error, 1)}
	s.ErrorLog = newLog(ts.log)
	if s.TLSConfig == nil {
		s.TLSConfig = new(tls.Config)
	}
	s.TLSConfig.Certificates = []tls.Certificate{cert}
	ctl := controlOf(s)
	ts.ctl = ctl
	go func() { ts.errc <- ctl.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		ctl.Close()
		if err := await(t, ts.errc, "ServeTLS"); err != http.ErrServerClosed {
			t.Errorf("ServeTLS returned %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := ctl.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("something did not end after Close: %v", err)
		}
	})
	return ts
}

// tlsOver shakes hands on nc, offering protos.
func tlsOver(t *testing.T, nc net.Conn, roots *x509.CertPool, protos ...string) (*rawConn, string) {
	t.Helper()
	tc := tls.Client(nc, &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: protos})
	if err := tc.Handshake(); err != nil {
		t.Fatal(err)
	}
	return newRaw(t, tc), tc.ConnectionState().NegotiatedProtocol
}

// certFiles puts certificate's into files.
func certFiles(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	cert, roots := certificate(t)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	return write("cert.pem", "CERTIFICATE", cert.Certificate[0]), write("key.pem", "PRIVATE KEY", key), roots
}

// listenTCP opens a port of the loopback.
func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lines is a protocol of one line each way: a path, and what the server's
// handler says about it.
func lines(hs *http.Server, tc *tls.Conn, h http.Handler) {
	s, err := bufio.NewReader(tc).ReadString('\n')
	if err != nil {
		return
	}
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return
	}
	w := lineWriter{http.Header{}, tc}
	h.ServeHTTP(w, &http.Request{Method: "GET", URL: u, RequestURI: u.String()})
	put(w, "\n")
}

type lineWriter struct {
	header http.Header
	io.Writer
}

func (w lineWriter) Header() http.Header  { return w.header }
func (w lineWriter) WriteHeader(code int) { fmt.Fprint(w, code, " ") }

func TestNextProto(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	type connKey struct{}
	alikeOthers(t, func(t *testing.T, e Engine) {
		servers := make(chan *http.Server, 1)
		s := &Server{
			Engine: e,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, connKey{}, c)
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if r.TLS == nil || !r.TLS.HandshakeComplete {
					t.Errorf("r.TLS is %+v", r.TLS)
					return
				}
				b, err := io.ReadAll(r.Body)
				fmt.Fprint(w, r.URL.Path, " ", r.RemoteAddr, " ", r.TLS.NegotiatedProtocol, " ", len(b), " ", err, " ", r.Body == http.NoBody)
			}),
		}
		l := listenTCP(t)
		s.TLSConfig = &tls.Config{NextProtos: []string{"lines", "filled"}}
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
			"lines": func(hs *http.Server, tc *tls.Conn, h http.Handler) {
				based, ok := h.(interface{ BaseContext() context.Context })
				if !ok {
					t.Errorf("the handler is a %T", h)
					return
				}
				ctx := based.BaseContext()
				if got := ctx.Value(http.ServerContextKey); got != hs {
					t.Errorf("ServerContextKey gives %v", got)
				}
				if a, _ := ctx.Value(http.LocalAddrContextKey).(net.Addr); a == nil || a.String() != l.Addr().String() {
					t.Errorf("LocalAddrContextKey gives %v", a)
				}
				if got := ctx.Value(connKey{}); got != tc {
					t.Errorf("ConnContext saw %T, not the connection", got)
				}
				if err := ctx.Err(); err != nil {
					t.Error(err)
				}
				if e != oracle && Stopping(ctx) == nil {
					t.Error("Stopping gives nothing")
				}
				servers <- hs
				lines(hs, tc, h)
			},
			"filled": func(hs *http.Server, tc *tls.Conn, h http.Handler) {
				// What is there is left alone.
				h.ServeHTTP(lineWriter{http.Header{}, tc}, &http.Request{
					Method: "GET", URL: new(url.URL), RemoteAddr: "somewhere", Body: io.NopCloser(strings.NewReader("body")),
					TLS: &tls.ConnectionState{HandshakeComplete: true, NegotiatedProtocol: "mine"},
				})
			},
		}
		ts := startTLS(t, s, l, cert)
		dial := func(protos ...string) (*rawConn, string) {
			return tlsOver(t, ts.dial().Conn, roots, protos...)
		}

		c, proto := dial("lines", "http/1.1")
		c.send("/path\n")
		if got, want := c.upToEnd(), "/path "+c.LocalAddr().String()+" lines 0 <nil> true\n"; got != want || proto != "lines" {
			t.Errorf("%s: got %q, want %q", proto, got, want)
		}
		hs := await(t, servers, "the protocol")
		if hs == nil || hs.ErrorLog != s.ErrorLog || hs.TLSConfig != s.TLSConfig || hs.TLSNextProto["lines"] == nil || hs.Handler == nil {
			t.Errorf("the server is %+v", hs)
		}

		// Of the asterisk only OPTIONS is the server's.
		c, _ = dial("lines")
		c.send("*\n")
		if got := c.upToEnd(); got != "* "+c.LocalAddr().String()+" lines 0 <nil> true\n" {
			t.Errorf("got %q", got)
		}
		await(t, servers, "the protocol")

		c, _ = dial("filled")
		if got := c.upToEnd(); got != " somewhere mine 4 <nil> false" {
			t.Errorf("got %q", got)
		}

		for _, protos := range [][]string{nil, {"http/1.1"}} {
			c, proto = dial(protos...)
			if proto != strings.Join(protos, "") {
				t.Errorf("%q was negotiated", proto)
			}
			for range 2 {
				if _, body := c.get("/p"); body != "/p "+c.LocalAddr().String()+" "+proto+" 0 <nil> true" {
					t.Errorf("got %q", body)
				}
			}
		}
		if log := ts.log.String(); log != "" {
			t.Errorf("log is %q", log)
		}
	})
}

// What ALPN offers decides what is spoken: nothing that nobody speaks.
func TestNextProtosOffered(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	type protos map[string]func(*http.Server, *tls.Conn, http.Handler)
	mine := func(_ *http.Server, tc *tls.Conn, _ http.Handler) { put(tc, "mine") }
	for _, tt := range []struct {
		why     string
		entries protos
		config  []string // TLSConfig.NextProtos
		offers  []string // the client's
		want    string   // negotiated
		served  string
	}{
		{"HTTP/1.1", protos{}, nil, []string{"http/1.1"}, "http/1.1", "HTTP"},
		{"nothing", protos{}, nil, nil, "", "HTTP"},
		{"no h2 without an entry", protos{}, nil, []string{"h2", "http/1.1"}, "http/1.1", "HTTP"},
		{"nor if the configuration names it", protos{}, []string{"h2", "http/1.1"}, []string{"h2", "http/1.1"}, "http/1.1", "HTTP"},
		{"h2 with an entry", protos{"h2": mine}, nil, []string{"h2", "http/1.1"}, "h2", "mine"},
		{"h2 with an entry, for who can", protos{"h2": mine}, nil, []string{"http/1.1"}, "http/1.1", "HTTP"},
		{"the configuration's order", protos{"h2": mine}, []string{"http/1.1"}, []string{"h2", "http/1.1"}, "http/1.1", "HTTP"},
		{"a protocol of the configuration", protos{"x": mine}, []string{"x"}, []string{"http/1.1", "x"}, "x", "mine"},
		{"an entry is not offered by itself", protos{"x": mine}, nil, []string{"x", "http/1.1"}, "http/1.1", "HTTP"},
		{"a protocol that nobody speaks", protos{"x": mine}, []string{"y"}, []string{"y"}, "y", ""},
		{"the same without a map", nil, []string{"y"}, []string{"y"}, "y", ""},
		{"nil is no entry", protos{"x": nil}, []string{"x"}, []string{"x"}, "x", ""},
		{"no entry for HTTP/1.1", protos{"http/1.1": mine}, nil, []string{"http/1.1"}, "http/1.1", "HTTP"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			alikeOthers(t, func(t *testing.T, e Engine) {
				s := &Server{Engine: e, TLSNextProto: tt.entries, TLSConfig: &tls.Config{NextProtos: tt.config}, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					put(w, "HTTP")
				})}
				ts := startTLS(t, s, listenTCP(t), cert)
				c, got := tlsOver(t, ts.dial().Conn, roots, tt.offers...)
				if got != tt.want {
					t.Fatalf("%q was negotiated", got)
				}
				if tt.served == "HTTP" {
					if _, body := c.get("/"); body != tt.served {
						t.Errorf("got %q", body)
					}
					return
				}
				if got := c.rest(); got != tt.served {
					t.Errorf("got %q", got)
				}
				if log := ts.log.String(); log != "" {
					t.Errorf("log is %q", log)
				}
			})
		})
	}
}

// However an entry ends, its connection is closed and ConnState told.
func TestNextProtoEnds(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	alikeOthers(t, func(t *testing.T, e Engine) {
		type step struct {
			conn  net.Conn
			state http.ConnState
		}
		steps, conns := make(chan step, 16), make(chan net.Conn, 16)
		type protos map[string]func(*http.Server, *tls.Conn, http.Handler)
		ends := protos{
			"returns": func(_ *http.Server, tc *tls.Conn, _ http.Handler) { conns <- tc },
			"closes":  func(_ *http.Server, tc *tls.Conn, _ http.Handler) { conns <- tc; tc.Close() },
			"aborts":  func(_ *http.Server, tc *tls.Conn, _ http.Handler) { conns <- tc; panic(http.ErrAbortHandler) },
			"panics":  func(_ *http.Server, tc *tls.Conn, _ http.Handler) { conns <- tc; panic("no more lines") },
		}
		s := &Server{
			Engine: e, TLSNextProto: ends,
			TLSConfig: &tls.Config{NextProtos: []string{"returns", "closes", "aborts", "panics", "unknown"}},
			ConnState: func(c net.Conn, st http.ConnState) { steps <- step{c, st} },
		}
		ts := startTLS(t, s, listenTCP(t), cert)
		for _, proto := range s.TLSConfig.NextProtos {
			c, _ := tlsOver(t, ts.dial().Conn, roots, proto)
			c.closed()
			var nc net.Conn
			if proto != "unknown" {
				nc = await(t, conns, "the connection")
			}
			for _, want := range []http.ConnState{http.StateNew, http.StateClosed} {
				s := await(t, steps, "ConnState")
				if s.state != want || nc != nil && s.conn != nc {
					t.Errorf("%s: %v of %T, want %v", proto, s.state, s.conn, want)
				}
			}
			log := ts.log.String()
			if proto == "panics" {
				line, stack, _ := strings.Cut(log, "\n")
				if line != "http: panic serving "+c.LocalAddr().String()+": no more lines" || !strings.HasPrefix(stack, "goroutine ") || !strings.Contains(stack, "behave_tls_test.go") {
					t.Errorf("log is %s", brief(log))
				}
				ts.log.reset()
			} else if log != "" {
				t.Errorf("%s: log is %q", proto, log)
			}
		}
		// And HTTP as ever.
		c, _ := tlsOver(t, ts.dial().Conn, roots)
		c.get("/", "Connection: close")
		for _, want := range []http.ConnState{http.StateNew, http.StateActive, http.StateClosed} {
			if s := await(t, steps, "ConnState"); s.state != want {
				t.Errorf("HTTP: %v, want %v", s.state, want)
			}
		}
	})
}

// Shutdown waits for a protocol that is not HTTP as long as it takes: nobody
// knows when it is idle.
func TestBubbleNextProtoShutdown(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	bubbles(t, func(t *testing.T, e Engine) {
		s := &Server{Engine: e, ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second,
			TLSConfig:    &tls.Config{NextProtos: []string{"lines"}},
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"lines": lines},
			Handler:      hf(func(w http.ResponseWriter, r *http.Request) { put(w, "answer") }),
		}
		m := newMemory()
		ts := startTLS(t, s, m, cert)
		c, _ := tlsOver(t, m.patient(t).Conn, roots, "lines")
		time.Sleep(time.Hour) // the server's times are HTTP's
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := ts.ctl.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Errorf("Shutdown returned %v", err)
		}
		ended := make(chan error)
		go func() { ended <- ts.ctl.Shutdown(context.Background()) }()
		time.Sleep(time.Hour)
		c.send("/\n")
		c.expect("answer\n")
		c.closed()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Close does not wait: it ends the connection under the protocol.
func TestNextProtoClose(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	alikeOthers(t, func(t *testing.T, e Engine) {
		running, ended := make(chan struct{}), make(chan error, 1)
		s := &Server{Engine: e,
			TLSConfig: &tls.Config{NextProtos: []string{"x"}},
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"x": func(_ *http.Server, tc *tls.Conn, _ http.Handler) {
				close(running)
				_, err := tc.Read(make([]byte, 1))
				ended <- err
			}},
		}
		ts := startTLS(t, s, listenTCP(t), cert)
		c, _ := tlsOver(t, ts.dial().Conn, roots, "x")
		await(t, running, "the protocol")
		if err := ts.ctl.Close(); err != nil {
			t.Error(err)
		}
		if err := await(t, ended, "the protocol's end"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read gave %v", err)
		}
		c.closed()
	})
}

// A connection that shakes hands when Shutdown begins may have a request to
// send; for five seconds.
func TestBubbleHandshakeShutdown(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	for name, part := range map[string]string{"nothing": "", "a part": "\x16\x03\x01\x02\x00\x01"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbles(t, func(t *testing.T, e Engine) {
				m := newMemory()
				ts := startTLS(t, &Server{Engine: e, Handler: memoryEcho(t)}, m, cert)
				silent, late := m.patient(t), m.patient(t)
				if part != "" {
					silent.send(part)
				}
				synctest.Wait()
				ended := make(chan time.Duration)
				go func() {
					ended <- took(func() {
						if err := ts.ctl.Shutdown(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}()
				time.Sleep(3 * time.Second)
				if e == oracle {
					late.Close() // it does not serve any more
				} else {
					c, _ := tlsOver(t, late.Conn, roots)
					if res, _ := c.get("/"); res.StatusCode != 200 || !res.Close {
						t.Errorf("got %v", res)
					}
					c.closed()
				}
				silent.upToEnd()
				d := <-ended
				within(t, "Shutdown ends", d, 5*time.Second, 7*time.Second)
				if e != oracle && d != 5*time.Second {
					t.Errorf("Shutdown took %v", d)
				}
			})
		})
	}
}

// One that waits for a worker has no more time than that.
func TestBubbleQueueShutdown(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		running, release := make(chan struct{}), make(chan struct{})
		m := newMemory()
		ts := startTLS(t, &Server{Workers: 1, QueueLength: 1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			running <- struct{}{}
			<-release
			put(w, "answer")
		})}, m, cert)
		active, _ := tlsOver(t, m.patient(t).Conn, roots)
		active.send(faultGet)
		<-running
		queued := m.patient(t)
		synctest.Wait()
		ended := make(chan time.Duration)
		go func() {
			ended <- took(func() {
				if err := ts.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}()
		time.Sleep(2 * time.Second)
		close(release)
		if _, body := active.response("GET"); body != "answer" {
			t.Errorf("got %q", body)
		}
		active.closed()
		if d := took(func() { queued.upToEnd() }); d != 3*time.Second {
			t.Errorf("closed %v after the worker was free", d)
		}
		if d := <-ended; d != 5*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
	})
}

// A handshake that does not end is cut short, as late as the server's other
// times allow with net/http, and always after ten seconds with chert.
func TestBubbleHandshakeTimeout(t *testing.T) {
	t.Parallel()
	cert, _ := certificate(t)
	bubbles(t, func(t *testing.T, e Engine) {
		m := newMemory()
		ts := startTLS(t, &Server{Engine: e, ReadHeaderTimeout: 10 * time.Second}, m, cert)
		c := m.patient(t)
		if d := took(func() { c.upToEnd() }); d != 10*time.Second {
			t.Errorf("closed after %v", d)
		}
		synctest.Wait()
		if log := ts.log.String(); !strings.HasPrefix(log, "http: TLS handshake error from pipe: ") {
			t.Errorf("log is %q", log)
		}
	})
}

// TLS over pipes keeps the times of plain connections.
func TestBubbleTLS(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	bubbles(t, func(t *testing.T, e Engine) {
		m := newMemory()
		ts := startTLS(t, &Server{Engine: e, IdleTimeout: 7 * time.Second, Handler: memoryEcho(t)}, m, cert)
		c, _ := tlsOver(t, m.patient(t).Conn, roots)
		for range 2 {
			c.get("/")
			time.Sleep(6 * time.Second)
		}
		if _, body := c.get("/large"); body != string(pattern(1<<20)) {
			t.Errorf("got %s", brief(body))
		}
		if d := took(c.closed); d != 7*time.Second {
			t.Errorf("closed after %v", d)
		}
		if err := ts.ctl.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
