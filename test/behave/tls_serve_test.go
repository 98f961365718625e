package behave

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// dialTLS shakes hands with cfg.
func dialTLS(ts *engines.Server, cfg *tls.Config) *servertest.Client {
	ts.T.Helper()
	tc := tls.Client(ts.Dial().Conn, cfg)
	if err := tc.Handshake(); err != nil {
		ts.T.Fatal(err)
	}
	return servertest.Wrap(ts.T, tc)
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
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		large := string(servertest.Pattern(300_000))
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(large), 0o600); err != nil {
			t.Fatal(err)
		}
		ts := engines.StartTLS(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
		})}, servertest.ListenTCP(t), cert)
		for version, v := range tlsVersions {
			for _, n := range []int{1, 7, 1 << 20} {
				cfg := clientConfig(roots)
				cfg.MaxVersion, cfg.NextProtos = v, []string{"http/1.1"}
				tc := tls.Client(inPieces{ts.Dial().Conn, n}, cfg)
				if err := tc.Handshake(); err != nil {
					t.Fatal(err)
				}
				c, s := servertest.Wrap(t, tc), tc.ConnectionState()
				want := fmt.Sprint(s.Version, s.CipherSuite, "example.com", "http/1.1", true, false, s.CurveID, "", "HTTP/1.1")
				for range 2 {
					if _, got := c.Get("/state"); got != want {
						t.Errorf("%s, pieces of %d: %s, want %s", version, n, got, want)
					}
				}
				// A record for each byte.
				c.SendSlowly("GET /state HTTP/1.1\r\nHost: h\r\n\r\n", 1)
				if _, got := c.Response("GET"); got != want {
					t.Errorf("%s: %s", version, got)
				}
				// Many requests in a record, and answers in the order.
				c.Send(strings.Repeat("GET /state HTTP/1.1\r\nHost: h\r\n\r\n", 20))
				for range 20 {
					if _, got := c.Response("GET"); got != want {
						t.Errorf("%s: %s", version, got)
					}
				}
				body := large
				if n < 1000 {
					body = body[:10_000]
				}
				c.Send(fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", len(body)))
				go put(c, body)
				if _, got := c.Response("POST"); got != body {
					t.Errorf("%s: %s", version, servertest.Brief(got))
				}
				if _, got := c.Get("/file"); got != large {
					t.Errorf("%s: %s", version, servertest.Brief(got))
				}
				if _, got := c.Get("/file", "Range: bytes=100000-199999"); got != large[100_000:200_000] {
					t.Errorf("%s: %s", version, servertest.Brief(got))
				}
				c.Get("/state", "Connection: close")
				// close_notify, RFC 8446 section 6.1.
				if b, err := io.ReadAll(tc); len(b) > 0 || err != nil {
					t.Errorf("%s: the end is %q, %v", version, b, err)
				}
			}
		}
		if log := ts.Log.String(); log != "" {
			t.Errorf("log is %q", log)
		}
	})
}

// A ClientHello may span records (RFC 8446 section 5.1), of a byte each too.
func TestTLSTinyRecords(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		ts := engines.StartTLS(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "hi") })}, servertest.ListenTCP(t), cert)
		for name, v := range tlsVersions {
			for _, size := range []int{1, 3, 4, 5, 100} {
				cfg := clientConfig(roots)
				cfg.MaxVersion = v
				tc := tls.Client(&splitting{Conn: ts.Dial().Conn, size: size}, cfg)
				if err := tc.Handshake(); err != nil {
					t.Fatalf("TLS %s, records of %d bytes: %v", name, size, err)
				}
				if _, got := servertest.Wrap(t, tc).Get("/"); got != "hi" {
					t.Errorf("got %q", got)
				}
			}
		}
	})
}

// splitting cuts its first record into smaller ones.
type splitting struct {
	net.Conn
	size int
	done bool
}

func (c *splitting) Write(p []byte) (int, error) {
	if c.done {
		return c.Conn.Write(p)
	}
	c.done = true
	var all []byte
	for part := range slices.Chunk(p[5:], c.size) {
		all = append(append(all, p[0], p[1], p[2], 0, byte(len(part))), part...)
	}
	if _, err := c.Conn.Write(all); err != nil {
		return 0, err
	}
	return len(p), nil
}

// On loops an idle connection has no goroutine, and each loop accepts by itself.
func TestTLSOnLoops(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	conns := make(chan string, 1)
	s := &chert.Server{ConnState: func(nc net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns <- fmt.Sprintf("%T", nc)
		}
	}}
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ts := engines.StartTLS(t, s, l, cert)
	dialTLS(ts, clientConfig(roots)).Get("/")
	got := servertest.Await(t, conns, "ConnState")
	if runtime.GOOS == "linux" && got != "conn.hookConn" {
		t.Errorf("ConnState is shown a %s", got)
	}
}

// The end of a connection without close_notify is not the end of a body.
func TestTLSTruncated(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		errc := make(chan error, 1)
		ts := engines.StartTLS(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			errc <- err
		})}, servertest.ListenTCP(t), cert)
		for _, framing := range []string{"Content-Length: 10\r\n\r\n12345", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"} {
			for _, how := range []string{"FIN", "close_notify", "both", "within a record"} {
				nc := ts.Dial().Conn
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
				if err := servertest.Await(t, errc, "the handler"); err == nil {
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
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		ts := engines.StartTLS(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
		})}, servertest.ListenTCP(t), cert)
		for _, v := range tlsVersions {
			for _, parts := range [][]string{{"", "rest"}, {"rest", ""}, {"re", "st"}} {
				cfg := clientConfig(roots)
				cfg.MaxVersion = v
				c := dialTLS(ts, cfg)
				path := "/"
				if parts[1] == "" {
					path = "/whole"
				}
				c.Send("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n" + parts[0])
				c.Send(parts[1])
				c.Want("rest")
				large := string(servertest.Pattern(200_000))
				go put(c, large)
				c.Want(large)
				c.Conn.(*tls.Conn).CloseWrite()
				if b, err := io.ReadAll(c.R); len(b) > 0 || err != nil {
					t.Errorf("the end is %q, %v", b, err)
				}
			}
		}
	})
}

// Sessions are resumed on any loop: one configuration has the keys for all.
func TestTLSResumes(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
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
			alikeOthers(t, func(t *testing.T, e chert.Engine) {
				s := &chert.Server{Engine: e, TLSConfig: new(tls.Config), Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprint(w, r.TLS.DidResume)
				})}
				change(s.TLSConfig)
				l, err := s.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				ts := engines.StartTLS(t, s, l, cert)
				for version, v := range tlsVersions {
					cfg := clientConfig(roots)
					cfg.MaxVersion, cfg.ClientSessionCache = v, tls.NewLRUClientSessionCache(1)
					for i := range 8 {
						c := dialTLS(ts, cfg)
						if _, got := c.Get("/"); got != fmt.Sprint(i > 0) {
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
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		for _, v := range tlsVersions {
			for mode := tls.NoClientCert; mode <= tls.RequireAndVerifyClientCert; mode++ {
				s := &chert.Server{Engine: e, TLSConfig: &tls.Config{ClientAuth: mode, ClientCAs: roots}, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprint(w, len(r.TLS.PeerCertificates), len(r.TLS.VerifiedChains))
				})}
				ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
				for _, has := range []bool{false, true} {
					cfg := clientConfig(roots)
					cfg.MaxVersion = v
					want := "0 0"
					if has {
						cfg.Certificates = []tls.Certificate{cert}
						want = map[tls.ClientAuthType]string{tls.NoClientCert: "0 0", tls.RequestClientCert: "1 0", tls.RequireAnyClientCert: "1 0"}[mode]
					}
					nc := tls.Client(ts.Dial().Conn, cfg)
					put(nc, servertest.GET)
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

// Shutdown ends idle connections by close_notify, and lets a request end.
func TestTLSShutdown(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		entered, leave := make(chan bool), make(chan bool)
		ts := engines.StartTLS(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				entered <- true
				<-leave
			}
			put(w, "hi")
		})}, servertest.ListenTCP(t), cert)
		idle, busy := dialTLS(ts, clientConfig(roots)), dialTLS(ts, clientConfig(roots))
		idle.Get("/")
		busy.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, entered, "the handler")
		done := make(chan error, 1)
		go func() { done <- ts.Control.Shutdown(context.Background()) }()
		if got := idle.Rest(); got != "" {
			t.Errorf("got %q", got)
		}
		close(leave)
		if res, body := busy.Response("GET"); body != "hi" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		if got := busy.Rest(); got != "" {
			t.Errorf("got %q", got)
		}
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

// The secrets go to the writer of the configuration.
func TestTLSKeyLog(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		log := new(servertest.Log)
		ts := engines.StartTLS(t, &chert.Server{Engine: e, TLSConfig: &tls.Config{KeyLogWriter: log}}, servertest.ListenTCP(t), cert)
		var client bytes.Buffer
		cfg := clientConfig(roots)
		cfg.KeyLogWriter = &client
		dialTLS(ts, cfg).Get("/")
		for line := range strings.Lines(client.String()) {
			if !strings.Contains(log.String(), line) {
				t.Errorf("no %q", line)
			}
		}
	})
}

// A writer that panics fails its handshake, with a line in the log, and no later one, nor does one that ends its
// goroutine: crypto/tls calls all writers of a process with one lock.
func TestTLSKeyLogPanics(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	for name, config := range map[string]func(w io.Writer) *tls.Config{
		"of the server": func(w io.Writer) *tls.Config { return &tls.Config{KeyLogWriter: w} },
		"of GetConfigForClient": func(w io.Writer) *tls.Config {
			c := &tls.Config{KeyLogWriter: w, Certificates: []tls.Certificate{cert}}
			return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c, nil }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				var calls atomic.Int32
				ts := engines.StartTLS(t, &chert.Server{Engine: e, TLSConfig: config(writerFunc(func(p []byte) (int, error) {
					switch calls.Add(1) {
					case 1:
						panic("no keys")
					case 2:
						runtime.Goexit()
					}
					return len(p), nil
				}))}, servertest.ListenTCP(t), cert)
				for range 2 {
					if err := tls.Client(ts.Dial(), clientConfig(roots)).Handshake(); err == nil {
						t.Error("the handshake succeeds")
					}
				}
				dialTLS(ts, clientConfig(roots)).Get("/")
				servertest.Eventually(t, "it is logged", func() bool {
					return strings.Contains(ts.Log.String(), "http: panic of KeyLogWriter: no keys\ngoroutine ")
				})
			})
		})
	}
}

// So does one whose panic is logged by a log that panics.
func TestTLSKeyLogAndLogPanic(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		var calls atomic.Int32
		ts := engines.StartTLS(t, &chert.Server{
			Engine:   e,
			ErrorLog: log.New(writerFunc(func([]byte) (int, error) { panic("the log fails") }), "", 0),
			TLSConfig: &tls.Config{KeyLogWriter: writerFunc(func(p []byte) (int, error) {
				if calls.Add(1) == 1 {
					panic("no keys")
				}
				return len(p), nil
			})},
		}, servertest.ListenTCP(t), cert)
		if err := tls.Client(ts.Dial(), clientConfig(roots)).Handshake(); err == nil {
			t.Error("the handshake succeeds")
		}
		dialTLS(ts, clientConfig(roots)).Get("/")
	})
}

// Requests that arrive together with the end of the handshake run where all others
// do: the client's last flight and its first request are one write.
func TestTLSPlacement(t *testing.T) {
	loopsOnly(t)
	cert, roots := servertest.Certificate(t)
	for name, v := range tlsVersions {
		for placement, want := range map[chert.Placement]string{chert.PlacementInline: "inline", chert.PlacementPooled: "pooled"} {
			p := new(placed)
			p.Server = engines.StartTLS(t, &chert.Server{Engine: chert.EngineLoops, Placement: placement, Handler: p}, servertest.ListenTCP(t), cert)
			for range 20 {
				cfg := clientConfig(roots)
				cfg.MaxVersion = v
				joined := &joining{Conn: p.Dial().Conn}
				tc := tls.Client(joined, cfg)
				if v == tls.VersionTLS13 {
					joined.hold = 2 // writes after the ClientHello: Finished, the request
				}
				if err := tc.Handshake(); err != nil {
					t.Fatal(err)
				}
				c := servertest.Wrap(t, tc)
				if got := where(c, "/"); got != want {
					t.Fatalf("TLS %s: the first request ran %s, want %s", name, got, want)
				}
				if got := where(c, "/"); got != want {
					t.Fatalf("TLS %s: the second request ran %s, want %s", name, got, want)
				}
				c.Close()
			}
		}
	}
}

// joining writes the first one as it comes, and the next hold ones together.
type joining struct {
	net.Conn
	hold, writes int
	held         []byte
}

func (c *joining) Write(p []byte) (int, error) {
	c.writes++
	if c.writes == 1 || c.writes > 1+c.hold {
		return c.Conn.Write(p)
	}
	if c.held = append(c.held, p...); c.writes == 1+c.hold {
		if _, err := c.Conn.Write(c.held); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
