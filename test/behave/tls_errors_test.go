package behave

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// badRecord is one that nobody has sealed.
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
