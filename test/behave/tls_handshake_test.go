package behave

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// What a client does that does not shake hands as it should, and what is logged.
func TestTLSRefuses(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	hello := func(t *testing.T) string {
		a, b := net.Pipe()
		defer a.Close()
		go tls.Client(b, clientConfig(roots)).Handshake()
		p := make([]byte, 4096)
		n, _ := a.Read(p)
		return string(p[:n])
	}
	shake := func(change func(*tls.Config)) func(*testing.T, *servertest.Client) {
		return func(t *testing.T, c *servertest.Client) {
			cfg := clientConfig(roots)
			change(cfg)
			tc := tls.Client(c.Conn, cfg)
			if tc.Handshake() == nil { // of TLS 1.3 the client's side is done
				tc.Read(make([]byte, 1))
			}
			tc.Close()
		}
	}
	says := func(s string) func(*testing.T, *servertest.Client) {
		return func(t *testing.T, c *servertest.Client) {
			c.Send(s)
			c.CloseWrite()
			c.UpToEnd()
		}
	}
	ports := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	wanted := regexp.MustCompile(`(?m) \((server name ".*"|to address)\)$`)
	for name, do := range map[string]func(*testing.T, *servertest.Client){
		"an end":            says(""),
		"a part":            says("\x16\x03\x01"),
		"garbage":           says(strings.Repeat("garbage", 10)),
		"SSL 2":             says("\x80\x2e\x01\x00\x02\x00\x15"),
		"a fatal alert":     says("\x15\x03\x01\x00\x02\x02\x28"),
		"too long a record": says("\x16\x03\x01\xff\xff\x01"),
		"half a hello": func(t *testing.T, c *servertest.Client) {
			s := hello(t)
			says(s[:len(s)/2])(t, c)
		},
		"a whole hello": func(t *testing.T, c *servertest.Client) { says(hello(t))(t, c) },
		"garbage then":  func(t *testing.T, c *servertest.Client) { says(hello(t)+"\x16\x03\x03\x00\x01x")(t, c) },
		"a hello of nonsense": func(t *testing.T, c *servertest.Client) {
			says("\x16\x03\x01\x00\x06\x01\x00\x00\x02xx")(t, c)
		},
		"a huge hello":         says("\x16\x03\x01\x00\x04\x01\xff\xff\xff"),
		"a large hello's half": says(strings.Repeat("\x16\x03\x01\x10\x00\x01\x00\xff\xf0"+strings.Repeat("x", 0x1000-4), 2)),
		"a hello of nonsense, large": says(func() string {
			b := "\x01\x00\xff\xf0" + strings.Repeat("x", 0xfff0)
			all := ""
			for len(b) > 0 {
				n := min(len(b), 1<<14)
				all += "\x16\x03\x01" + string([]byte{byte(n >> 8), byte(n)}) + b[:n]
				b = b[n:]
			}
			return all
		}()),
		"empty records":  says(strings.Repeat("\x16\x03\x01\x00\x00", 100)),
		"warnings":       says(strings.Repeat("\x15\x03\x01\x00\x02\x01\x5a", 100)),
		"plain HTTP":     says(servertest.GET),
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
			logs := make(map[chert.Engine]string)
			for _, e := range []chert.Engine{chert.EngineAuto, chert.EngineGoroutines, engines.NetHTTP} {
				states := make(chan http.ConnState, 10)
				s := &chert.Server{Engine: e, ConnState: func(_ net.Conn, st http.ConnState) { states <- st }}
				s.TLSConfig = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
					if h.Context().Value(http.ServerContextKey) == nil && e != engines.NetHTTP || h.Context().Value(http.LocalAddrContextKey) == nil {
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
				ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
				do(t, ts.Dial())
				if got := servertest.Await(t, states, "ConnState"); got != http.StateNew {
					t.Errorf("the first state is %v", got)
				}
				if got := servertest.Await(t, states, "ConnState"); got != http.StateClosed {
					t.Errorf("then %v", got)
				}
				if name != "a function that aborts" {
					servertest.Eventually(t, "it is logged", func() bool { return ts.Log.String() != "" })
				}
				// What the client wanted is chert's addition: TestTLSFailureLog.
				log, _, _ := strings.Cut(wanted.ReplaceAllString(ports.ReplaceAllString(ts.Log.String(), "address"), ""), "\ngoroutine ")
				mu.Lock()
				logs[e] = log
				mu.Unlock()
			}
			want := logs[engines.NetHTTP]
			if want == "" && name != "a function that aborts" {
				t.Error("net/http has logged nothing")
			}
			if logs[chert.EngineAuto] != want || logs[chert.EngineGoroutines] != want {
				t.Errorf("loops      %q\ngoroutines %q\nnet/http   %q", logs[chert.EngineAuto], logs[chert.EngineGoroutines], want)
			}
		})
	}
}

// A client that stops in whatever message is given up in time, and leaves nothing
// behind; so does one that resets or ends there.
func TestTLSStops(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.StartTLS(t, &chert.Server{Engine: e, ReadHeaderTimeout: 300 * time.Millisecond}, servertest.ListenTCP(t), cert)
		var all sync.WaitGroup
		for _, v := range tlsVersions {
			for _, after := range []int{0, 1, 5, 6, 100, 250, 300, 400, 1000, 1500, 1600, 1700} {
				for _, how := range []string{"stops", "resets", "ends"} {
					all.Go(func() {
						c := ts.Dial()
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
	// began is called when the first bytes were written, if it is not nil.
	began func()
}

func (c *stopping) Write(p []byte) (int, error) {
	if c.began != nil {
		defer c.began()
		c.began = nil
	}
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

// How long a request's body may pause does not limit the handshake.
func TestTLSPauses(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.StartTLS(t, &chert.Server{
			Engine: e, ReadStallTimeout: time.Nanosecond, Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "hi") }),
		}, servertest.ListenTCP(t), cert)
		for range 10 {
			if _, got := dialTLS(ts, clientConfig(roots)).Get("/"); got != "hi" {
				t.Errorf("got %q", got)
			}
		}
	})
}

// Handshakes that stall do not keep other clients out, and are bounded.
func TestTLSMany(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	const places = 8
	blocked, held := make(chan bool), make(chan bool, 4)
	s := &chert.Server{ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if h.ServerName == "blocked.example.com" {
			held <- true
			<-blocked
		}
		return &cert, nil
	}}, Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "hi") })}
	testhook.Of(s).Handshakes(2, places)
	ts := engines.StartTLS(t, s, servertest.ListenTCP(t), tls.Certificate{}) // the function is asked for all names
	innocent := func() {
		t.Helper()
		if _, got := dialTLS(ts, clientConfig(roots)).Get("/"); got != "hi" {
			t.Errorf("got %q", got)
		}
	}
	all := 300
	if testing.Short() {
		all = 100
	}
	for i := range all {
		// Eight that begin while an innocent client waits may take its place.
		began := make(chan bool)
		go tls.Client(&stopping{
			Conn: ts.Dial().Conn, left: []int{0, 100, 1 << 10, 1 << 20}[i%4], began: func() { close(began) },
		}, clientConfig(roots)).Handshake()
		servertest.Await(t, began, "the ClientHello")
		if i%50 == 0 {
			innocent()
		}
	}
	innocent()
	// Functions of the tls.Config that wait hold places, but do not delay other handshakes.
	for range 4 {
		cfg := clientConfig(roots)
		cfg.ServerName = "blocked.example.com"
		go tls.Client(ts.Dial().Conn, cfg).Handshake()
		servertest.Await(t, held, "the function")
		innocent()
	}
	close(blocked)
	innocent()
}

// Close ends connections in whatever state, and the functions' contexts.
func TestTLSClose(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		states := make(chan http.ConnState, 100)
		ts := engines.StartTLS(t, &chert.Server{Engine: e, ConnState: func(_ net.Conn, st http.ConnState) { states <- st }}, servertest.ListenTCP(t), cert)
		const all = 12
		for i := range all {
			c := ts.Dial()
			go tls.Client(&stopping{Conn: c.Conn, left: []int{0, 100, 1 << 10, 1 << 20}[i%4]}, clientConfig(roots)).Handshake()
		}
		for range all {
			servertest.Await(t, states, "the connections")
		}
		ts.Close()
		for range all {
			if st := servertest.Await(t, states, "their end"); st != http.StateClosed {
				t.Errorf("then %v", st)
			}
		}
	})
}

// A client for which there is no room is refused in TLS: on loops by an alert, since
// it has not shaken hands yet.
func TestTLSNoRoom(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	for name, limits := range map[string]*chert.Server{"connections": {MaxConns: 1}, "address": {MaxConnsPerAddr: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, e := range []chert.Engine{chert.EngineAuto, chert.EngineGoroutines} {
				for _, own := range []bool{true, false} {
					entered, leave := make(chan bool, 1), make(chan bool)
					s := &chert.Server{Engine: e, MaxConns: limits.MaxConns, MaxConnsPerAddr: limits.MaxConnsPerAddr, Handler: hf(func(http.ResponseWriter, *http.Request) {
						entered <- true
						<-leave
					})}
					l := servertest.ListenTCP(t)
					if own {
						l.Close()
						var err error
						if l, err = s.Listen("tcp", "127.0.0.1:0"); err != nil {
							t.Fatal(err)
						}
					}
					ts := engines.StartTLS(t, s, l, cert)
					first := dialTLS(ts, clientConfig(roots))
					first.Send(servertest.GET)
					servertest.Await(t, entered, "the first request")
					tc := tls.Client(ts.Dial().Conn, clientConfig(roots))
					err := tc.Handshake()
					if e == chert.EngineGoroutines || runtime.GOOS != "linux" {
						if err != nil {
							t.Fatal(err)
						}
						if res, _ := servertest.Wrap(t, tc).Response("GET"); res.StatusCode != 503 {
							t.Errorf("got %v", res)
						}
					} else if err == nil || err.Error() != "remote error: tls: internal error" {
						t.Errorf("%v, a listener of its own %v: %v", e, own, err)
					}
					close(leave)
				}
			}
		})
	}
}
