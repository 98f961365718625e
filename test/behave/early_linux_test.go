package behave

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
)

// curl receives the 413 of middleware.BodyLimit to an upload that goes on, over HTTP/2. The handler's own early
// responses are tested in internal/bridge/h2.
func TestBodyLimitToCurl(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("curl is not installed; the Debian package is curl")
		}
		t.Skip("curl is not installed; the Debian package is curl")
	}
	file := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(file, servertest.Pattern(3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	limited := middleware.BodyLimit(nil)(hf(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	cert, _ := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		var p http.Protocols
		p.SetHTTP1(true)
		p.SetHTTP2(true)
		p.SetUnencryptedHTTP2(true)
		plain := engines.Start(t, &chert.Server{Engine: e, Protocols: &p, Handler: limited})
		secure := engines.StartTLS(t, &chert.Server{Engine: e, Protocols: &p, Handler: limited, TLSConfig: new(tls.Config)}, servertest.ListenTCP(t), cert)
		for range 5 {
			for _, args := range [][]string{
				{"--http2-prior-knowledge", "http://" + plain.ListenAddr + "/"},
				{"--http2", "https://" + secure.ListenAddr + "/"},
			} {
				args = append([]string{"-sSk", "--noproxy", "*", "-m", "30", "-F", "file=@" + file, "-o", os.DevNull, "-w", "%{http_code} %{http_version}"}, args...)
				cmd := exec.Command(curl, args...)
				var stderr strings.Builder
				cmd.Stderr = &stderr
				if out, err := cmd.Output(); err != nil || string(out) != "413 2" {
					t.Errorf("%s, %v %s", out, err, stderr.String())
				}
			}
		}
	})
}
