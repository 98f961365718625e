package http3_test

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	chert3 "github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
)

const failedLine = "http: TLS handshake error from "

// fails dials, in vain.
func (r *running) fails(tr *quic.Transport, o *tls.Config) {
	r.t.Helper()
	to, err := net.ResolveUDPAddr("udp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), servertest.Patience)
	defer cancel()
	if _, err := tr.Dial(ctx, to, o, nil); err == nil || ctx.Err() != nil {
		r.t.Errorf("Dial: %v", err)
	}
}

// begins dials, until stop is called.
func (r *running) begins(tr *quic.Transport, o *tls.Config) (stop func()) {
	r.t.Helper()
	to, err := net.ResolveUDPAddr("udp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan bool)
	go func() {
		defer close(done)
		if _, err := tr.Dial(ctx, to, o, &quic.Config{HandshakeIdleTimeout: servertest.Patience}); err == nil {
			r.t.Error("Dial: connected")
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// A handshake that fails has a line, as over TCP, and is counted.
func TestHandshakeFailures(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	for name, early := range map[string]bool{"early data": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &chert.Server{
				Handler: hf(hello), HTTP3: chert3.New(&chert3.Options{EarlyData: early}),
				TLSConfig: &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
					if h.ServerName == "b\nc.example" {
						return nil, errors.New("there is none")
					}
					return &cert, nil
				}},
			})
			for i, tt := range []struct{ name, proto, want string }{
				{"a.example", "h3", `CRYPTO_ERROR 0x12a (remote): tls: bad certificate (server name "a.example")`},
				{"b\nc.example", "h3", `CRYPTO_ERROR 0x150 (local): there is none (server name "b\nc.example")`},
				{"", "x", `CRYPTO_ERROR 0x178 (local): tls: client requested unsupported application protocols (["x"]) (to ` + s.addr + ")"},
			} {
				tr := dialer(t)
				s.fails(tr, &tls.Config{ServerName: tt.name, InsecureSkipVerify: tt.name != "a.example", NextProtos: []string{tt.proto}})
				want := failedLine + tr.Conn.LocalAddr().String() + ": " + tt.want + "\n"
				servertest.Eventually(t, "it is logged", func() bool { return strings.Count(s.log.String(), failedLine) > i })
				if got := s.log.String(); !strings.HasSuffix(got, want) {
					t.Errorf("log is %q, want %q", got, want)
				}
				if n := s.Stats().TLS; n.Failed != uint64(i+1) || len(n.Versions) != 0 {
					t.Errorf("%+v", n)
				}
			}
			// One that ends has none.
			if a := s.raw().get("/"); a.body != "hello" {
				t.Errorf("%+v", a)
			}
			if n := s.Stats().TLS; n.Failed != 3 || strings.Count(s.log.String(), failedLine) != 3 {
				t.Errorf("%+v, %s", n, s.log)
			}
		})
	}
}

// Handshakes that do not end in time are counted as such. What has not come to a ClientHello has no line.
func TestHandshakeTimeouts(t *testing.T) {
	t.Parallel()
	counts := func(s *running) (n uint64) {
		all := s.Stats()
		for _, c := range all.Timeouts {
			if c.Name == "handshake" {
				n = c.N
			}
		}
		if n > all.TLS.Failed {
			t.Errorf("%d of %d have failed late", n, all.TLS.Failed)
		}
		return n
	}
	t.Run("a client that is silent", func(t *testing.T) {
		t.Parallel()
		s := serve(t, &chert.Server{Handler: hf(hello), ReadHeaderTimeout: 200 * time.Millisecond})
		tr, loss := deaf(t)
		loss.receiving.Store(false)
		stop := s.begins(tr, &tls.Config{ServerName: "a.example", NextProtos: []string{"h3"}})
		defer stop()
		peer := loss.LocalAddr().String()
		want := failedLine + peer + ": read udp " + s.addr + "->" + peer + `: i/o timeout (server name "a.example")` + "\n"
		servertest.Eventually(t, "it is logged", func() bool { return strings.Contains(s.log.String(), want) })
		if counts(s) == 0 {
			t.Error("it is not counted")
		}
	})
	t.Run("packets that are no handshake", func(t *testing.T) {
		t.Parallel()
		s := serve(t, &chert.Server{Handler: hf(hello), ReadHeaderTimeout: 100 * time.Millisecond})
		u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		to, _ := net.ResolveUDPAddr("udp", s.addr)
		servertest.Eventually(t, "it is counted", func() bool {
			for _, head := range []string{
				"",                                     // nothing of QUIC's
				"\xc0\x0a\x0a\x0a\x0a\x0812345678\x00", // a version that there is not
				"\xc0\x00\x00\x00\x01\x0812345678\x00\x00\x44\xd0junk", // an Initial that no key opens
			} {
				u.WriteTo(append([]byte(head), make([]byte, 1250)...)[:1250], to)
			}
			return counts(s) > 0
		})
		if strings.Contains(s.log.String(), failedLine) {
			t.Error(s.log)
		}
	})
}

// Handshakes that the server ends have not failed.
func TestHandshakeWithinClose(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello)})
	tr, loss := deaf(t)
	loss.receiving.Store(false)
	defer s.begins(tr, clientTLS())()
	servertest.Eventually(t, "it has begun", func() bool { return s.Stats().TLS.Running == 1 })
	s.Close()
	if err := s.Shutdown(t.Context()); err != nil { // it waits
		t.Error(err)
	}
	if n := s.Stats(); n.TLS.Running != 0 || n.TLS.Failed != 0 || strings.Contains(s.log.String(), failedLine) {
		t.Errorf("%+v, %s", n.TLS, s.log)
	}
}

// Clients that have not shown their addresses, which may be others', do not fill the log.
func TestHandshakeFailuresDoubt(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello), ReadHeaderTimeout: 2 * servertest.Patience}) // and for handshakes
	tr, counts := deaf(t)
	for i := 0; counts.retries.Load() == 0; i++ {
		if i > 300 {
			t.Fatal("there are no retries")
		}
		s.fails(tr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"x"}})
	}
	servertest.Eventually(t, "all have ended", func() bool { return s.Stats().TLS.Running == 0 })
}

// faultyKey is a key that does not sign.
type faultyKey struct {
	crypto.Signer
	fault func()
}

func (k faultyKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	k.fault()
	return nil, nil
}

// faultyIO is a source and a writer that fails.
type faultyIO func()

func (f faultyIO) Read([]byte) (int, error)  { f(); return 0, io.ErrNoProgress }
func (f faultyIO) Write([]byte) (int, error) { f(); return 0, io.ErrNoProgress }

// A function of TLSConfig that panics, or ends its goroutine, ends the handshake, as over TCP, and neither the process
// nor what the server waits for.
func TestHandshakeFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(){"panic": func() { panic("on purpose") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testHandshakeFaults(t, fault, name == "panic")
		})
	}
}

func testHandshakeFaults(t *testing.T, fault func(), panics bool) {
	t.Helper()
	cert, _ := servertest.Certificate(t)
	certs := []tls.Certificate{cert}
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { fault(); return nil, nil }
	faulty := tls.Certificate{Certificate: cert.Certificate, PrivateKey: faultyKey{cert.PrivateKey.(crypto.Signer), fault}}
	for name, o := range map[string]*tls.Config{
		"GetCertificate":     {GetCertificate: get},
		"GetConfigForClient": {GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { fault(); return nil, nil }},
		"GetCertificate of what GetConfigForClient returns": {
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return &tls.Config{GetCertificate: get}, nil },
		},
		"VerifyConnection": {VerifyConnection: func(tls.ConnectionState) error { fault(); return nil }},
		"VerifyPeerCertificate": {
			ClientAuth:            tls.RequireAnyClientCert,
			VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { fault(); return nil },
		},
		"WrapSession": {
			WrapSession: func(tls.ConnectionState, *tls.SessionState) ([]byte, error) { fault(); return nil, nil },
		},
		"KeyLogWriter":            {KeyLogWriter: faultyIO(fault)},
		"a key":                   {Certificates: []tls.Certificate{faulty}},
		"a key of GetCertificate": {GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &faulty, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if o.GetCertificate == nil && o.Certificates == nil {
				o.Certificates = certs
			}
			s := serve(t, &chert.Server{Handler: hf(hello), TLSConfig: o})
			to, err := net.ResolveUDPAddr("udp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			client := clientTLS()
			client.Certificates = certs
			// The client's part may end before the server's function is called.
			if c, err := dialer(t).Dial(t.Context(), to, client, nil); err == nil {
				servertest.WaitDone(t, c.Context(), "the connection has ended")
			}
			place := "in a TLS handshake of QUIC"
			if o.KeyLogWriter != nil {
				place = "of KeyLogWriter" // as over TCP
			}
			servertest.Eventually(t, "it has ended, and is logged", func() bool {
				says := strings.Contains(s.log.String(), "http: panic "+place+": on purpose\n")
				return s.Stats().TLS.Running == 0 && len(s.OpenConnections(1)) == 0 && says == panics
			})
		})
	}
}

// The system's time and random bytes stand in for a Time and a Rand that fail. crypto/tls asks for both when it makes
// keys of tickets.
func TestFaultySources(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	for name, fault := range map[string]func(){
		"panic": func() { panic("on purpose") }, "exit": runtime.Goexit, "error": func() {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var timed, read atomic.Bool
			s := serve(t, &chert.Server{Handler: hf(hello), TLSConfig: &tls.Config{
				Certificates: []tls.Certificate{cert},
				Time:         func() time.Time { timed.Store(true); fault(); return time.Now() },
				Rand:         faultyIO(func() { read.Store(true); fault() }),
			}})
			if a := s.raw().get("/"); a.body != "hello" || !timed.Load() || !read.Load() {
				t.Errorf("%+v; asked for the time: %v, for random bytes: %v", a, timed.Load(), read.Load())
			}
		})
	}
}

// A key that crypto/tls knows by no type signs.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	cert.PrivateKey = struct{ crypto.Signer }{cert.PrivateKey.(crypto.Signer)}
	s := serve(t, &chert.Server{Handler: hf(hello), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}})
	if a := s.raw().get("/"); a.body != "hello" {
		t.Errorf("%+v", a)
	}
}
