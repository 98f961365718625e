package behave

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// badRecord is a record that was not sealed with the connection's keys.
var badRecord = "\x17\x03\x03\x00\x20" + strings.Repeat("x", 32)

// After an error of TLS a handler's writes fail: one that writes until then ends.
func TestTLSWriteAfterError(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		entered, failed := make(chan bool, 1), make(chan bool, 1)
		ts := engines.StartTLS(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			entered <- true
			if r.Method == "POST" {
				io.Copy(io.Discard, r.Body)
			} else {
				<-r.Context().Done()
			}
			p := servertest.Pattern(64 << 10)
			for range 1000 {
				if _, err := w.Write(p); err != nil {
					failed <- true
					return
				}
			}
			failed <- false
		})}, servertest.ListenTCP(t), cert)
		for _, v := range tlsVersions {
			for _, head := range []string{servertest.GET, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"} {
				cfg := clientConfig(roots)
				cfg.MaxVersion = v
				nc := ts.Dial().Conn
				put(tls.Client(nc, cfg), head)
				servertest.Await(t, entered, "the handler")
				put(nc, badRecord)
				if !servertest.Await(t, failed, "the handler's end") {
					t.Errorf("%.4s: every write succeeded", head)
				}
			}
		}
	})
}

// Functions of the tls.Config may close the connection, then and later.
func TestTLSClosedByFunction(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		conns := make(chan net.Conn, 1)
		ts := engines.StartTLS(t, &chert.Server{Engine: e, TLSConfig: &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			if h.ServerName == "closes.example.com" {
				h.Conn.Close()
			} else {
				conns <- h.Conn
			}
			return nil, nil
		}}}, servertest.ListenTCP(t), cert)
		cfg := clientConfig(roots)
		cfg.ServerName = "closes.example.com"
		tc := tls.Client(ts.Dial().Conn, cfg)
		put(tc, servertest.GET) // with TLS 1.3 the client's side of the handshake may succeed
		if n, err := tc.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("it was served")
		}
		c := dialTLS(ts, clientConfig(roots))
		c.Get("/")
		if err := servertest.Await(t, conns, "the function").Close(); err != nil {
			t.Error(err)
		}
		c.UpToEnd()
	})
}

// What is logged of a handshake that does not end in time.
func TestTLSTimeoutLog(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	for _, sent := range []string{"", "\x16\x03\x01"} {
		alikeOthers(t, func(t *testing.T, e chert.Engine) {
			ts := engines.StartTLS(t, &chert.Server{Engine: e, ReadHeaderTimeout: 50 * time.Millisecond}, servertest.ListenTCP(t), cert)
			c := ts.Dial()
			c.Send(sent)
			c.UpToEnd()
			peer := c.LocalAddr().String()
			want := fmt.Sprintf("http: TLS handshake error from %s: read tcp %s->%s: i/o timeout\n", peer, ts.ListenAddr, peer)
			servertest.Eventually(t, "it is logged", func() bool { return strings.Contains(ts.Log.String(), peer) })
			if got := ts.Log.String(); !strings.Contains(got, want) { // other programs may have tried the port
				t.Errorf("log is %q, want %q", got, want)
			}
		})
	}
}

// stuckLog is a log whose reader has stopped, until it is opened.
type stuckLog chan struct{}

func (l stuckLog) Write(p []byte) (int, error) {
	<-l
	return len(p), nil
}

// No client waits for the log of what another has caused.
func TestTLSFailureDoesNotWaitForLog(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		stuck := make(stuckLog)
		ts := engines.StartTLS(t, &chert.Server{Engine: e, ErrorLog: log.New(stuck, "", 0)}, servertest.ListenTCP(t), cert)
		defer close(stuck)
		for range 3 {
			for _, sent := range []string{"\x16\x03\x01\x00\x05hello", "GET / HTTP/1.1\r\n\r\n"} {
				c := ts.Dial()
				c.Send(sent)
				c.UpToEnd()
			}
		}
		dialTLS(ts, clientConfig(roots)).Get("/")
	})
}

// What is logged of a handshake that fails names the host that the client wanted, as
// far as crypto/tls tells, and no client can forge a line or fill the log with a name.
func TestTLSFailureLog(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	long := strings.Repeat("x", 40_000)
	const distrust, noCert = "remote error: tls: bad certificate", "there is none"
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.StartTLS(t, &chert.Server{Engine: e, TLSConfig: &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if h.ServerName == "example.com" {
				return nil, nil
			}
			return nil, errors.New(noCert)
		}}}, servertest.ListenTCP(t), cert)
		seen := 0
		for _, version := range tlsVersions {
			for _, tt := range []struct{ name, want string }{
				{"example.com", distrust + ` (server name "example.com")`},
				{"unknown.example", noCert + ` (server name "unknown.example")`},
				{"a\nb\x1b\xff\"", noCert + ` (server name "a\nb\x1b\xff\"")`},
				{long, noCert + ` (server name "` + long[:253] + `"...)`},
				{"", distrust + " (to " + ts.ListenAddr + ")"},
			} {
				c := ts.Dial()
				cfg := &tls.Config{ServerName: tt.name, InsecureSkipVerify: true, MaxVersion: version}
				if tt.name == "example.com" || tt.name == "" {
					cfg.VerifyConnection = func(tls.ConnectionState) error { return errors.New("not trusted") }
				}
				tls.Client(c.Conn, cfg).Handshake()
				want := "http: TLS handshake error from " + c.LocalAddr().String() + ": " + tt.want
				c.Close()
				servertest.Eventually(t, "it is logged", func() bool { return strings.Count(ts.Log.String(), "\n") > seen })
				seen++
				if lines := strings.Split(ts.Log.String(), "\n"); lines[seen-1] != want {
					t.Errorf("got  %s\nwant %s", servertest.Brief(lines[seen-1]), want)
				}
			}
		}
	})
}

// joined gathers what is written while it is held, so that it leaves in one segment.
type joined struct {
	net.Conn
	held bool
	out  []byte
}

func (j *joined) Write(p []byte) (int, error) {
	if j.held {
		j.out = append(j.out, p...)
		return len(p), nil
	}
	return j.Conn.Write(p)
}

// A request that was complete before an error of TLS is answered, although crypto/tls seals
// nothing after it.
func TestTLSAnswerBeforeError(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, placement := range []chert.Placement{chert.PlacementInline, chert.PlacementPooled} {
			ts := engines.StartTLS(t, &chert.Server{Engine: e, Placement: placement, Handler: memoryEcho(t)}, servertest.ListenTCP(t), cert)
			for _, v := range tlsVersions {
				for name, bad := range map[string]string{
					"bad MAC":           badRecord,
					"no record":         "garbage that is not a record of TLS",
					"another version":   "\x17\x02\x00\x00\x20" + strings.Repeat("x", 32),
					"a record too long": "\x17\x03\x03\xff\xff",
				} {
					for _, requests := range []int{1, 3} {
						cfg := clientConfig(roots)
						cfg.MaxVersion = v
						j := &joined{Conn: servertest.Dial(t, ts.ListenAddr).Conn}
						tc := tls.Client(j, cfg)
						if err := tc.Handshake(); err != nil {
							t.Fatal(err)
						}
						j.held = true
						for i := range requests {
							put(tc, servertest.Post(fmt.Sprint("/", i), "body"))
						}
						j.held = false
						put(j, string(j.out)+bad)
						c := servertest.Wrap(t, tc)
						for i := range requests {
							if res, body := c.Response("POST"); res.StatusCode != 200 || !strings.HasPrefix(body, fmt.Sprint("POST /", i)) {
								t.Errorf("%s: %v %q", name, res, body)
							}
						}
						if _, err := c.R.ReadByte(); err == nil {
							t.Errorf("%s: the connection goes on", name)
						}
						j.Close()
					}
				}
			}
		}
	})
}

// Cipher suites of TLS 1.2 that HTTP/2 must not use are an error when the server begins, as in net/http, and not of
// each client that has chosen HTTP/2. The listener stays its owner's.
func TestTLSCiphersOfHTTP2(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	cbc := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}
	withGCM := append(cbc[:2:2], tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
	only1 := new(http.Protocols)
	only1.SetHTTP1(true)
	for _, tt := range []struct {
		name   string
		suites []uint16
		change func(*chert.Server)
		fails  bool
		std    bool // net/http's fails all the same
	}{
		{name: "CBC", suites: cbc, fails: true},
		{name: "none", suites: []uint16{}, fails: true},
		{name: "the default"},
		{name: "with GCM", suites: withGCM},
		{name: "permitted", suites: cbc, std: true, change: func(s *chert.Server) {
			s.HTTP2 = &http.HTTP2Config{PermitProhibitedCipherSuites: true}
		}},
		{name: "TLS 1.3", suites: cbc, change: func(s *chert.Server) { s.TLSConfig.MinVersion = tls.VersionTLS13 }},
		{name: "HTTP/1", suites: cbc, change: func(s *chert.Server) { s.Protocols = only1 }},
		{name: "another HTTP/2", suites: cbc, change: func(s *chert.Server) {
			s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": nil}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Alike(t, func(t *testing.T, e chert.Engine) {
				s := &chert.Server{Engine: e, TLSConfig: &tls.Config{
					Certificates: []tls.Certificate{cert}, CipherSuites: tt.suites,
				}}
				if tt.change != nil {
					tt.change(s)
				}
				l, fails := servertest.ListenTCP(t), tt.fails || tt.std && e == engines.NetHTTP
				if !fails {
					l.Close() // what serves returns
				}
				const want = "http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher " +
					"(need at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)"
				ctl, end := engines.ControlOf(s), make(chan error, 1)
				defer ctl.Close()
				go func() { end <- ctl.ServeTLS(l, "", "") }()
				err := servertest.Await(t, end, "ServeTLS")
				if got := err.Error() == want; got != fails {
					t.Errorf("ServeTLS returned %v", err)
				}
				if err := l.Close(); fails && err != nil {
					t.Errorf("ServeTLS has closed the listener: %v", err)
				}
			})
		})
	}
}
