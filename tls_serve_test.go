package chert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// tlsEngines runs f on loops, on goroutines, and on net/http.
func tlsEngines(t *testing.T, f func(t *testing.T, e Engine)) { alikeOthers(t, f) }

// dialTLS shakes hands with cfg.
func (ts *testServer) dialTLS(cfg *tls.Config) *rawConn {
	ts.t.Helper()
	tc := tls.Client(ts.dial().Conn, cfg)
	if err := tc.Handshake(); err != nil {
		ts.t.Fatal(err)
	}
	return newRaw(ts.t, tc)
}

func clientConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, ServerName: "example.com"}
}

var tlsVersions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

// inPieces writes n bytes at a time.
type inPieces struct {
	net.Conn
	n int
}

func (c inPieces) Write(p []byte) (int, error) {
	for i := 0; i < len(p); i += c.n {
		if _, err := c.Conn.Write(p[i:min(i+c.n, len(p))]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// What a request says of TLS, and what goes through it, however it is cut.
func TestTLSServes(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	tlsEngines(t, func(t *testing.T, e Engine) {
		large := string(pattern(300_000))
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(large), 0o600); err != nil {
			t.Fatal(err)
		}
		ts := startTLS(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/state":
				s := r.TLS
				fmt.Fprint(w, s.Version, s.CipherSuite, s.ServerName, s.NegotiatedProtocol, s.HandshakeComplete, s.DidResume, s.CurveID, r.URL.Scheme, r.Proto)
			case "/file":
				http.ServeFile(w, r, file)
			case "/echo":
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				w.Write(b)
			}
		})}, listenTCP(t), cert)
		for version, v := range tlsVersions {
			for _, n := range []int{1, 7, 1 << 20} {
				cfg := clientConfig(roots)
				cfg.MaxVersion, cfg.NextProtos = v, []string{"http/1.1"}
				tc := tls.Client(inPieces{ts.dial().Conn, n}, cfg)
				if err := tc.Handshake(); err != nil {
					t.Fatal(err)
				}
				c, s := newRaw(t, tc), tc.ConnectionState()
				want := fmt.Sprint(s.Version, s.CipherSuite, "example.com", "http/1.1", true, false, s.CurveID, "", "HTTP/1.1")
				for range 2 {
					if _, got := c.get("/state"); got != want {
						t.Errorf("%s, pieces of %d: %s, want %s", version, n, got, want)
					}
				}
				// A record for each byte.
				c.sendSlowly("GET /state HTTP/1.1\r\nHost: h\r\n\r\n", 1)
				if _, got := c.response("GET"); got != want {
					t.Errorf("%s: %s", version, got)
				}
				// Many requests in a record, and answers in the order.
				c.send(strings.Repeat("GET /state HTTP/1.1\r\nHost: h\r\n\r\n", 20))
				for range 20 {
					if _, got := c.response("GET"); got != want {
						t.Errorf("%s: %s", version, got)
					}
				}
				body := large
				if n < 1000 {
					body = body[:10_000]
				}
				c.send(fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", len(body)))
				go put(c, body)
				if _, got := c.response("POST"); got != body {
					t.Errorf("%s: %s", version, brief(got))
				}
				if _, got := c.get("/file"); got != large {
					t.Errorf("%s: %s", version, brief(got))
				}
				if _, got := c.get("/file", "Range: bytes=100000-199999"); got != large[100_000:200_000] {
					t.Errorf("%s: %s", version, brief(got))
				}
				c.get("/state", "Connection: close")
				// close_notify, RFC 8446 section 6.1.
				if b, err := io.ReadAll(tc); len(b) > 0 || err != nil {
					t.Errorf("%s: the end is %q, %v", version, b, err)
				}
			}
		}
		if log := ts.log.String(); log != "" {
			t.Errorf("log is %q", log)
		}
	})
}

// On loops an idle connection has no goroutine, and each loop accepts by itself.
func TestTLSOnLoops(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	conns := make(chan string, 1)
	s := &Server{ConnState: func(nc net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns <- fmt.Sprintf("%T", nc)
		}
	}}
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ts := startTLS(t, s, l, cert)
	ts.dialTLS(clientConfig(roots)).get("/")
	got := await(t, conns, "ConnState")
	if runtime.GOOS == "linux" && got != "conn.hookConn" {
		t.Errorf("ConnState is shown a %s", got)
	}
}

// What a client does that does not shake hands as it should, and what is logged.
func TestTLSRefuses(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	hello := func(t *testing.T) string {
		a, b := net.Pipe()
		defer a.Close()
		go tls.Client(b, clientConfig(roots)).Handshake()
		p := make([]byte, 4096)
		n, _ := a.Read(p)
		return string(p[:n])
	}
	shake := func(change func(*tls.Config)) func(*testing.T, *rawConn) {
		return func(t *testing.T, c *rawConn) {
			cfg := clientConfig(roots)
			change(cfg)
			tc := tls.Client(c.Conn, cfg)
			if tc.Handshake() == nil { // of TLS 1.3 the client's side is done
				tc.Read(make([]byte, 1))
			}
			tc.Close()
		}
	}
	says := func(s string) func(*testing.T, *rawConn) {
		return func(t *testing.T, c *rawConn) {
			c.send(s)
			c.closeWrite()
			c.upToEnd()
		}
	}
	ports := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	for name, do := range map[string]func(*testing.T, *rawConn){
		"an end":            says(""),
		"a part":            says("\x16\x03\x01"),
		"garbage":           says(strings.Repeat("garbage", 10)),
		"SSL 2":             says("\x80\x2e\x01\x00\x02\x00\x15"),
		"a fatal alert":     says("\x15\x03\x01\x00\x02\x02\x28"),
		"too long a record": says("\x16\x03\x01\xff\xff\x01"),
		"half a hello": func(t *testing.T, c *rawConn) {
			s := hello(t)
			says(s[:len(s)/2])(t, c)
		},
		"a whole hello": func(t *testing.T, c *rawConn) { says(hello(t))(t, c) },
		"garbage then":  func(t *testing.T, c *rawConn) { says(hello(t)+"\x16\x03\x03\x00\x01x")(t, c) },
		"a hello of nonsense": func(t *testing.T, c *rawConn) {
			says("\x16\x03\x01\x00\x06\x01\x00\x00\x02xx")(t, c)
		},
		"plain HTTP":     says("GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
		"an old version": shake(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }),
		"nothing in common": shake(func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}
		}),
		"an unknown protocol": shake(func(c *tls.Config) { c.NextProtos = []string{"spdy"} }),
		"no trust":            shake(func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }),
		"no trust, TLS 1.2":   shake(func(c *tls.Config) { c.RootCAs, c.MaxVersion = x509.NewCertPool(), tls.VersionTLS12 }),
		"no certificate":      shake(func(c *tls.Config) { c.ServerName = "certificate.example.com"; c.InsecureSkipVerify = true }),
		"no certificate, 1.2": shake(func(c *tls.Config) {
			c.ServerName = "certificate.example.com"
			c.InsecureSkipVerify = true
			c.MaxVersion = tls.VersionTLS12
		}),
		"a function that fails":  shake(func(c *tls.Config) { c.ServerName = "fails.example.com" }),
		"a function that panics": shake(func(c *tls.Config) { c.ServerName = "panics.example.com" }),
		"a function that aborts": shake(func(c *tls.Config) { c.ServerName = "aborts.example.com" }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			logs := make(map[Engine]string)
			for _, e := range []Engine{EngineAuto, EngineGoroutines, oracle} {
				states := make(chan http.ConnState, 10)
				s := &Server{Engine: e, ConnState: func(_ net.Conn, st http.ConnState) { states <- st }}
				s.TLSConfig = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
					if h.Context().Value(http.ServerContextKey) == nil && e != oracle || h.Context().Value(http.LocalAddrContextKey) == nil {
						t.Error("the context has no server")
					}
					switch h.ServerName {
					case "certificate.example.com":
						return &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert}, nil
					case "fails.example.com":
						return nil, errors.New("no such name")
					case "panics.example.com":
						panic("no such name")
					case "aborts.example.com":
						panic(http.ErrAbortHandler)
					}
					return nil, nil
				}}
				ts := startTLS(t, s, listenTCP(t), cert)
				do(t, ts.dial())
				if got := await(t, states, "ConnState"); got != http.StateNew {
					t.Errorf("the first state is %v", got)
				}
				if got := await(t, states, "ConnState"); got != http.StateClosed {
					t.Errorf("then %v", got)
				}
				log, _, _ := strings.Cut(ports.ReplaceAllString(ts.log.String(), "address"), "\ngoroutine ")
				mu.Lock()
				logs[e] = log
				mu.Unlock()
			}
			want := logs[oracle]
			if want == "" && name != "a function that aborts" {
				t.Error("net/http has logged nothing")
			}
			if logs[EngineAuto] != want || logs[EngineGoroutines] != want {
				t.Errorf("loops      %q\ngoroutines %q\nnet/http   %q", logs[EngineAuto], logs[EngineGoroutines], want)
			}
		})
	}
}

// A client that stops in whatever message is given up in time, and leaves nothing
// behind; so does one that resets or ends there.
func TestTLSStops(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	engines(t, func(t *testing.T, e Engine) {
		ts := startTLS(t, &Server{Engine: e, ReadHeaderTimeout: 300 * time.Millisecond}, listenTCP(t), cert)
		var all sync.WaitGroup
		for _, v := range tlsVersions {
			for _, after := range []int{0, 1, 5, 6, 100, 250, 300, 400, 1000, 1500, 1600, 1700} {
				for _, how := range []string{"stops", "resets", "ends"} {
					all.Go(func() {
						c := ts.dial()
						cfg := clientConfig(roots)
						cfg.MaxVersion = v
						tc := tls.Client(&stopping{Conn: c.Conn, left: after, how: how}, cfg)
						tc.Handshake()
						io.Copy(io.Discard, c.Conn)
						c.Close()
					})
				}
			}
		}
		all.Wait()
	})
}

// stopping writes so many bytes and then no more.
type stopping struct {
	net.Conn
	left int
	how  string
}

func (c *stopping) Write(p []byte) (int, error) {
	if n := min(c.left, len(p)); n > 0 {
		c.left -= n
		if _, err := c.Conn.Write(p[:n]); err != nil || n == len(p) {
			return n, err
		}
	}
	switch c.how {
	case "resets":
		c.Conn.(*net.TCPConn).SetLinger(0)
		c.Conn.Close()
	case "ends":
		c.Conn.(*net.TCPConn).CloseWrite()
	}
	return len(p), nil // as if it were on its way
}

// The least of the server's times that is set bounds the handshake, as with
// net/http.
func TestTLSTimeout(t *testing.T) {
	t.Parallel()
	for want, s := range map[time.Duration]*Server{
		10 * time.Second: {},
		time.Second:      {ReadHeaderTimeout: time.Second, ReadTimeout: 2 * time.Second},
		2 * time.Second:  {WriteTimeout: 2 * time.Second, ReadTimeout: time.Minute},
		3 * time.Second:  {ReadTimeout: 3 * time.Second, ReadHeaderTimeout: -1, WriteTimeout: -1},
		time.Minute:      {ReadTimeout: time.Minute},
	} {
		if got := s.handshakeTimeout(); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// The end of a connection without close_notify is not the end of a body.
func TestTLSTruncated(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	tlsEngines(t, func(t *testing.T, e Engine) {
		errc := make(chan error, 1)
		ts := startTLS(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			errc <- err
		})}, listenTCP(t), cert)
		for _, framing := range []string{"Content-Length: 10\r\n\r\n12345", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"} {
			for _, how := range []string{"FIN", "close_notify", "both", "within a record"} {
				nc := ts.dial().Conn
				tc := tls.Client(nc, clientConfig(roots))
				put(tc, "POST / HTTP/1.1\r\nHost: h\r\n"+framing)
				switch how {
				case "within a record":
					put(nc, "\x17\x03\x03\x00\x40abc")
				case "close_notify", "both":
					tc.CloseWrite()
				}
				if how != "close_notify" {
					nc.(*net.TCPConn).CloseWrite()
				}
				if err := await(t, errc, "the handler"); err == nil {
					t.Errorf("%s: a whole body", how)
				}
				nc.Close()
			}
		}
	})
}

// A hijacked connection is a *tls.Conn over the socket.
func TestTLSHijack(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	tlsEngines(t, func(t *testing.T, e Engine) {
		ts := startTLS(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			nc, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			tc, ok := nc.(*tls.Conn)
			if !ok {
				t.Errorf("Hijack gave a %T", nc)
				return
			}
			if _, ok := tc.NetConn().(*net.TCPConn); !ok || tc.RemoteAddr().String() != r.RemoteAddr {
				t.Errorf("over a %T of %v", tc.NetConn(), tc.RemoteAddr())
			}
			if s := tc.ConnectionState(); s.ServerName != "example.com" {
				t.Errorf("the state is %+v", s)
			}
			if r.URL.Path == "/whole" { // nothing is to come that the deadline could miss
				nc.SetReadDeadline(time.Now().Add(-time.Second))
				if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("Read gave %v", err)
				}
				nc.SetReadDeadline(time.Time{})
			}
			io.Copy(nc, rw)
		})}, listenTCP(t), cert)
		for _, v := range tlsVersions {
			for _, parts := range [][]string{{"", "rest"}, {"rest", ""}, {"re", "st"}} {
				cfg := clientConfig(roots)
				cfg.MaxVersion = v
				c := ts.dialTLS(cfg)
				path := "/"
				if parts[1] == "" {
					path = "/whole"
				}
				c.send("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n" + parts[0])
				c.send(parts[1])
				c.expect("rest")
				large := string(pattern(200_000))
				go put(c, large)
				c.expect(large)
				c.Conn.(*tls.Conn).CloseWrite()
				if b, err := io.ReadAll(c.r); len(b) > 0 || err != nil {
					t.Errorf("the end is %q, %v", b, err)
				}
			}
		}
	})
}

// Sessions are resumed on any loop: one configuration has the keys for all.
func TestTLSResumes(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	for name, change := range map[string]func(*tls.Config){
		"as it is": func(*tls.Config) {},
		"a configuration for each client": func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return &tls.Config{Certificates: []tls.Certificate{cert}}, nil
			}
		},
		"keys of its own": func(c *tls.Config) { c.SetSessionTicketKeys([][32]byte{{1, 2, 3}}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tlsEngines(t, func(t *testing.T, e Engine) {
				s := &Server{Engine: e, TLSConfig: new(tls.Config), Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprint(w, r.TLS.DidResume)
				})}
				change(s.TLSConfig)
				l, err := s.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				ts := startTLS(t, s, l, cert)
				for version, v := range tlsVersions {
					cfg := clientConfig(roots)
					cfg.MaxVersion, cfg.ClientSessionCache = v, tls.NewLRUClientSessionCache(1)
					for i := range 8 {
						c := ts.dialTLS(cfg)
						if _, got := c.get("/"); got != fmt.Sprint(i > 0) {
							t.Errorf("%s, connection %d: resumed is %s", version, i, got)
						}
						c.Close()
					}
				}
			})
		})
	}
}

// Certificates of clients, in each mode.
func TestTLSClientCertificates(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	tlsEngines(t, func(t *testing.T, e Engine) {
		for _, v := range tlsVersions {
			for mode := tls.NoClientCert; mode <= tls.RequireAndVerifyClientCert; mode++ {
				s := &Server{Engine: e, TLSConfig: &tls.Config{ClientAuth: mode, ClientCAs: roots}, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprint(w, len(r.TLS.PeerCertificates), len(r.TLS.VerifiedChains))
				})}
				ts := startTLS(t, s, listenTCP(t), cert)
				for _, has := range []bool{false, true} {
					cfg := clientConfig(roots)
					cfg.MaxVersion = v
					want := "0 0"
					if has {
						cfg.Certificates = []tls.Certificate{cert}
						want = map[tls.ClientAuthType]string{tls.NoClientCert: "0 0", tls.RequestClientCert: "1 0", tls.RequireAnyClientCert: "1 0"}[mode]
					}
					nc := tls.Client(ts.dial().Conn, cfg)
					put(nc, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
					b := make([]byte, 1000)
					n, err := nc.Read(b)
					refused := !has && (mode == tls.RequireAnyClientCert || mode == tls.RequireAndVerifyClientCert)
					refused = refused || has && mode >= tls.VerifyClientCertIfGiven // it is a server's
					switch {
					case refused != (err != nil):
						t.Errorf("%v, a certificate: %v: %v", mode, has, err)
					case !refused && want != "" && !strings.HasSuffix(string(b[:n]), want):
						t.Errorf("%v, a certificate: %v: %q, want %s", mode, has, b[:n], want)
					}
					nc.Close()
				}
			}
		}
	})
}

// Handshakes that do not go on keep nobody out, and are bounded.
func TestTLSMany(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	const places = 8
	blocked, held := make(chan bool), make(chan bool, 4)
	s := &Server{ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if h.ServerName == "blocked.example.com" {
			held <- true
			<-blocked
		}
		return &cert, nil
	}}, Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "hi") })}
	s.shaking.Slots, s.shaking.Places = 2, places
	ts := startTLS(t, s, listenTCP(t), tls.Certificate{}) // the function is asked for all names
	innocent := func() {
		t.Helper()
		if _, got := ts.dialTLS(clientConfig(roots)).get("/"); got != "hi" {
			t.Errorf("got %q", got)
		}
	}
	all := 300
	if testing.Short() {
		all = 100
	}
	for i := range all {
		c := ts.dial()
		tc := tls.Client(&stopping{Conn: c.Conn, left: []int{0, 100, 1 << 10, 1 << 20}[i%4]}, clientConfig(roots))
		go tc.Handshake()
		if i%50 == 0 {
			innocent()
		}
	}
	innocent()
	// Functions that wait for others hold places, but nobody up.
	for range 4 {
		cfg := clientConfig(roots)
		cfg.ServerName = "blocked.example.com"
		go tls.Client(ts.dial().Conn, cfg).Handshake()
		await(t, held, "the function")
		innocent()
	}
	close(blocked)
	innocent()
}

// Close ends connections in whatever state, and the functions' contexts.
func TestTLSClose(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	engines(t, func(t *testing.T, e Engine) {
		states := make(chan http.ConnState, 100)
		ts := startTLS(t, &Server{Engine: e, ConnState: func(_ net.Conn, st http.ConnState) { states <- st }}, listenTCP(t), cert)
		const all = 12
		for i := range all {
			c := ts.dial()
			go tls.Client(&stopping{Conn: c.Conn, left: []int{0, 100, 1 << 10, 1 << 20}[i%4]}, clientConfig(roots)).Handshake()
		}
		for range all {
			await(t, states, "the connections")
		}
		ts.Close()
		for range all {
			if st := await(t, states, "their end"); st != http.StateClosed {
				t.Errorf("then %v", st)
			}
		}
	})
}

// Shutdown ends idle connections by close_notify, and lets a request end.
func TestTLSShutdown(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	tlsEngines(t, func(t *testing.T, e Engine) {
		entered, leave := make(chan bool), make(chan bool)
		ts := startTLS(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				entered <- true
				<-leave
			}
			put(w, "hi")
		})}, listenTCP(t), cert)
		idle, busy := ts.dialTLS(clientConfig(roots)), ts.dialTLS(clientConfig(roots))
		idle.get("/")
		busy.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		await(t, entered, "the handler")
		done := make(chan error, 1)
		go func() { done <- ts.ctl.Shutdown(context.Background()) }()
		if got := idle.rest(); got != "" {
			t.Errorf("got %q", got)
		}
		close(leave)
		if res, body := busy.response("GET"); body != "hi" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		if got := busy.rest(); got != "" {
			t.Errorf("got %q", got)
		}
		if err := await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

// The secrets go to the writer of the configuration.
func TestTLSKeyLog(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	engines(t, func(t *testing.T, e Engine) {
		log := new(logBuffer)
		ts := startTLS(t, &Server{Engine: e, TLSConfig: &tls.Config{KeyLogWriter: log}}, listenTCP(t), cert)
		var client bytes.Buffer
		cfg := clientConfig(roots)
		cfg.KeyLogWriter = &client
		ts.dialTLS(cfg).get("/")
		for line := range strings.Lines(client.String()) {
			if !strings.Contains(log.String(), line) {
				t.Errorf("no %q", line)
			}
		}
	})
}
