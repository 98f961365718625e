package behave

import (
	"crypto/tls"
	"fmt"
	"io"
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
			servertest.Eventually(t, "it is logged", func() bool { return ts.Log.String() != "" })
			if got := ts.Log.String(); got != want {
				t.Errorf("log is %q, want %q", got, want)
			}
		})
	}
}
