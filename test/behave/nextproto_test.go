package behave

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// lines is a protocol of one line each way: a path, and what the server's
// handler responds to it.
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
	cert, roots := servertest.Certificate(t)
	type connKey struct{}
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		servers := make(chan *http.Server, 1)
		s := &chert.Server{
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
		l := servertest.ListenTCP(t)
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
				if e != engines.NetHTTP && chert.Stopping(ctx) == nil {
					t.Error("Stopping gives nothing")
				}
				servers <- hs
				lines(hs, tc, h)
			},
			"filled": func(hs *http.Server, tc *tls.Conn, h http.Handler) {
				// Values that are set are not changed.
				h.ServeHTTP(lineWriter{http.Header{}, tc}, &http.Request{
					Method: "GET", URL: new(url.URL), RemoteAddr: "somewhere", Body: io.NopCloser(strings.NewReader("body")),
					TLS: &tls.ConnectionState{HandshakeComplete: true, NegotiatedProtocol: "mine"},
				})
			},
		}
		ts := engines.StartTLS(t, s, l, cert)
		dial := func(protos ...string) (*servertest.Client, string) {
			return servertest.TLSOver(t, ts.Dial().Conn, roots, protos...)
		}

		c, proto := dial("lines", "http/1.1")
		c.Send("/path\n")
		if got, want := c.UpToEnd(), "/path "+c.LocalAddr().String()+" lines 0 <nil> true\n"; got != want || proto != "lines" {
			t.Errorf("%s: got %q, want %q", proto, got, want)
		}
		hs := servertest.Await(t, servers, "the protocol")
		if hs == nil || hs.ErrorLog != s.ErrorLog || hs.TLSConfig != s.TLSConfig || hs.TLSNextProto["lines"] == nil || hs.Handler == nil {
			t.Errorf("the server is %+v", hs)
		}

		// Of requests for the asterisk the server handles only OPTIONS itself.
		c, _ = dial("lines")
		c.Send("*\n")
		if got := c.UpToEnd(); got != "* "+c.LocalAddr().String()+" lines 0 <nil> true\n" {
			t.Errorf("got %q", got)
		}
		servertest.Await(t, servers, "the protocol")

		c, _ = dial("filled")
		if got := c.UpToEnd(); got != " somewhere mine 4 <nil> false" {
			t.Errorf("got %q", got)
		}

		for _, protos := range [][]string{nil, {"http/1.1"}} {
			c, proto = dial(protos...)
			if proto != strings.Join(protos, "") {
				t.Errorf("%q was negotiated", proto)
			}
			for range 2 {
				if _, body := c.Get("/p"); body != "/p "+c.LocalAddr().String()+" "+proto+" 0 <nil> true" {
					t.Errorf("got %q", body)
				}
			}
		}
		if log := ts.Log.String(); log != "" {
			t.Errorf("log is %q", log)
		}
	})
}

// ALPN's offers decide the protocol: only one that both sides speak.
func TestNextProtosOffered(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
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
			alikeOthers(t, func(t *testing.T, e chert.Engine) {
				s := &chert.Server{Engine: e, TLSNextProto: tt.entries, TLSConfig: &tls.Config{NextProtos: tt.config}, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					put(w, "HTTP")
				})}
				ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
				c, got := servertest.TLSOver(t, ts.Dial().Conn, roots, tt.offers...)
				if got != tt.want {
					t.Fatalf("%q was negotiated", got)
				}
				if tt.served == "HTTP" {
					if _, body := c.Get("/"); body != tt.served {
						t.Errorf("got %q", body)
					}
					return
				}
				if got := c.Rest(); got != tt.served {
					t.Errorf("got %q", got)
				}
				if log := ts.Log.String(); log != "" {
					t.Errorf("log is %q", log)
				}
			})
		})
	}
}

// However an entry ends, its connection is closed and ConnState is called.
func TestNextProtoEnds(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
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
		s := &chert.Server{
			Engine: e, TLSNextProto: ends,
			TLSConfig: &tls.Config{NextProtos: []string{"returns", "closes", "aborts", "panics", "unknown"}},
			ConnState: func(c net.Conn, st http.ConnState) { steps <- step{c, st} },
		}
		ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
		for _, proto := range s.TLSConfig.NextProtos {
			c, _ := servertest.TLSOver(t, ts.Dial().Conn, roots, proto)
			c.Ended()
			var nc net.Conn
			if proto != "unknown" {
				nc = servertest.Await(t, conns, "the connection")
			}
			for _, want := range []http.ConnState{http.StateNew, http.StateClosed} {
				s := servertest.Await(t, steps, "ConnState")
				// On loops ConnState receives a net.Conn of its own.
				if s.state != want || nc != nil && e != chert.EngineAuto && s.conn != nc {
					t.Errorf("%s: %v of %T, want %v", proto, s.state, s.conn, want)
				}
			}
			log := ts.Log.String()
			if proto == "panics" {
				line, stack, _ := strings.Cut(log, "\n")
				if line != "http: panic serving "+c.LocalAddr().String()+": no more lines" || !strings.HasPrefix(stack, "goroutine ") || !strings.Contains(stack, "behave/nextproto_test.go") {
					t.Errorf("log is %s", servertest.Brief(log))
				}
				ts.Log.Reset()
			} else if log != "" {
				t.Errorf("%s: log is %q", proto, log)
			}
		}
		// HTTP works as before.
		c, _ := servertest.TLSOver(t, ts.Dial().Conn, roots)
		c.Get("/", "Connection: close")
		for _, want := range []http.ConnState{http.StateNew, http.StateActive, http.StateClosed} {
			if s := servertest.Await(t, steps, "ConnState"); s.state != want {
				t.Errorf("HTTP: %v, want %v", s.state, want)
			}
		}
	})
}

// Shutdown waits for a protocol that is not HTTP without a limit: the server
// cannot know when it is idle.
func TestBubbleNextProtoShutdown(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	bubbles(t, func(t *testing.T, e chert.Engine) {
		s := &chert.Server{Engine: e, ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second,
			TLSConfig:    &tls.Config{NextProtos: []string{"lines"}},
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"lines": lines},
			Handler:      hf(func(w http.ResponseWriter, r *http.Request) { put(w, "answer") }),
		}
		m := servertest.NewMemory()
		ts := engines.StartTLS(t, s, m, cert)
		c, _ := servertest.TLSOver(t, m.Patient(t).Conn, roots, "lines")
		time.Sleep(time.Hour) // the server's times are HTTP's
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := ts.Control.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Errorf("Shutdown returned %v", err)
		}
		ended := make(chan error)
		go func() { ended <- ts.Control.Shutdown(context.Background()) }()
		time.Sleep(time.Hour)
		c.Send("/\n")
		c.Want("answer\n")
		c.Ended()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Close does not wait: it closes the connection during the protocol.
func TestNextProtoClose(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		running, ended := make(chan struct{}), make(chan error, 1)
		s := &chert.Server{Engine: e,
			TLSConfig: &tls.Config{NextProtos: []string{"x"}},
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"x": func(_ *http.Server, tc *tls.Conn, _ http.Handler) {
				close(running)
				_, err := tc.Read(make([]byte, 1))
				ended <- err
			}},
		}
		ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
		c, _ := servertest.TLSOver(t, ts.Dial().Conn, roots, "x")
		servertest.Await(t, running, "the protocol")
		if err := ts.Control.Close(); err != nil {
			t.Error(err)
		}
		if err := servertest.Await(t, ended, "the protocol's end"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read gave %v", err)
		}
		c.Ended()
	})
}

// Close does not wait for a Read of TLS either, which sends an alert to a client that accepts nothing. (That of
// net/http does.)
func TestNextProtoCloseDuringAlert(t *testing.T) {
	t.Parallel()
	name := t.Name()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		full, ended := make(chan struct{}), make(chan error, 1)
		s := &chert.Server{Engine: e,
			TLSConfig: &tls.Config{NextProtos: []string{"x"}},
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"x": func(_ *http.Server, tc *tls.Conn, _ http.Handler) {
				nc := tc.NetConn()
				for _, size := range []int{64 << 10, 1} { // a socket that has no room for much may have some
					for err, b := error(nil), make([]byte, size); err == nil; {
						nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
						_, err = nc.Write(b)
					}
				}
				nc.SetWriteDeadline(time.Time{})
				close(full)
				_, err := tc.Read(make([]byte, 1))
				ended <- err
			}},
		}
		ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
		raw := ts.Dial().Conn
		servertest.TLSOver(t, raw, roots, "x")
		servertest.Await(t, full, "a full socket")
		io.WriteString(raw, "\x17\x03\x03\x00\x20"+strings.Repeat("x", 32)) // a bad MAC
		servertest.Eventually(t, "TLS sends an alert", func() bool {
			stacks := make([]byte, 4<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			// Another test's connection may do so too.
			return slices.ContainsFunc(bytes.Split(stacks, []byte("\n\n")), func(one []byte) bool {
				return bytes.Contains(one, []byte("crypto/tls.(*Conn).sendAlert")) && bytes.Contains(one, []byte(name))
			})
		})
		closed := make(chan error)
		go func() { closed <- ts.Control.Close() }()
		if err := servertest.Await(t, closed, "Close"); err != nil {
			t.Error(err)
		}
		if err := servertest.Await(t, ended, "the protocol's end"); err == nil {
			t.Error("Read gave no error")
		}
	})
}

// An entry of TLSNextProto may end its goroutine; the connection ends with it.
func TestNextProtoGoexit(t *testing.T) {
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		closed := make(chan struct{}, 1)
		ts := engines.StartTLS(t, &chert.Server{Engine: e,
			TLSConfig: &tls.Config{NextProtos: []string{"x"}},
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){
				"x": func(*http.Server, *tls.Conn, http.Handler) { runtime.Goexit() },
			},
			ConnState: func(_ net.Conn, s http.ConnState) {
				if s == http.StateClosed {
					closed <- struct{}{}
				}
			},
		}, servertest.ListenTCP(t), cert)
		c, _ := servertest.TLSOver(t, ts.Dial().Conn, roots, "x")
		c.SetDeadline(time.Now().Add(servertest.Patience))
		c.Ended()
		servertest.Await(t, closed, "StateClosed")
	})
}

// A connection of TLSNextProto counts until its function returns.
func TestNextProtoCounts(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		in, out := make(chan bool), make(chan bool)
		s := &chert.Server{Engine: e, MaxConnsPerAddr: 1, TLSConfig: &tls.Config{NextProtos: []string{"mine"}}}
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
			"mine": func(*http.Server, *tls.Conn, http.Handler) {
				in <- true
				<-out
			},
		}
		ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
		for range 2 {
			c, _ := servertest.TLSOver(t, ts.Dial().Conn, roots, "mine")
			servertest.Await(t, in, "the function")
			servertest.Eventually(t, "it counts once", func() bool { return ts.Inside().Conns() == 1 })
			ts.Dial().UpToEnd() // refused
			if n := ts.Inside().Conns(); n != 1 {
				t.Errorf("%d count", n)
			}
			out <- true
			c.UpToEnd()
			servertest.Eventually(t, "none counts", func() bool { return ts.Inside().Conns() == 0 })
		}
	})
}
