package behave

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
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
)

// This file is clients that others have written.

// needProgram skips where a program is missing.
func needProgram(t *testing.T, name, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatalf("%s is not installed; the Debian package is %s", name, pkg)
		}
		t.Skipf("%s is not installed; the Debian package is %s", name, pkg)
	}
}

// programServer serves TLS, and returns the name of a file with its certificate
// and key.
func programServer(t *testing.T, e chert.Engine) (ts *engines.Server, file string) {
	t.Helper()
	certFile, keyFile, _ := servertest.CertFiles(t)
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "both.pem")
	both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), key...)
	if err := os.WriteFile(file, both, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &chert.Server{Engine: e, TLSConfig: &tls.Config{ClientAuth: tls.RequestClientCert}, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %d certificates, %d bytes: ", tls.VersionName(r.TLS.Version), len(r.TLS.PeerCertificates), len(b))
		w.Write(b)
	})}
	return engines.StartTLS(t, s, servertest.ListenTCP(t), cert), file
}

func TestTLSCurl(t *testing.T) {
	t.Parallel()
	needProgram(t, "curl", "curl")
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts, file := programServer(t, e)
		_, port, _ := strings.Cut(ts.ListenAddr, ":")
		body := string(servertest.Pattern(100_000))
		for _, tt := range []struct {
			args []string
			want string
		}{
			{[]string{"--tls-max", "1.2"}, "TLS 1.2 0 certificates, 0 bytes: "},
			{[]string{"--tlsv1.3"}, "TLS 1.3 0 certificates, 0 bytes: "},
			{[]string{"--cert", file}, "TLS 1.3 1 certificates, 0 bytes: "},
			{[]string{"--cert", file, "--tls-max", "1.2"}, "TLS 1.2 1 certificates, 0 bytes: "},
			{[]string{"--data-binary", "@-"}, "TLS 1.3 0 certificates, 100000 bytes: " + body},
			{[]string{"--data-binary", "@-", "-H", "Transfer-Encoding: chunked"}, "TLS 1.3 0 certificates, 100000 bytes: " + body},
		} {
			args := append([]string{"-sS", "--max-time", "30", "--http1.1", "--cacert", file, "--resolve", "example.com:" + port + ":127.0.0.1"}, tt.args...)
			url := "https://example.com:" + port + "/"
			cmd := exec.Command("curl", append(args, url, url)...) // the second time on the same connection
			cmd.Stdin = strings.NewReader(body)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if want := tt.want + tt.want; err != nil || string(out) != want {
				t.Errorf("curl %v: %v %s\ngot %s, want %s", tt.args, err, stderr.String(), servertest.Brief(string(out)), servertest.Brief(want))
			}
		}
	})
}

// s_client's commands ask for a KeyUpdate (K) and a renegotiation (R), which TLS 1.3
// has not and crypto/tls refuses.
func TestTLSOpenSSL(t *testing.T) {
	t.Parallel()
	needProgram(t, "openssl", "openssl")
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts, file := programServer(t, e)
		const get = "GET / HTTP/1.1\nHost: h\n\n"
		for _, tt := range []struct {
			name, version string
			in            []string
			answers       int
		}{
			{"TLS 1.3", "-tls1_3", []string{get, get}, 2},
			{"a certificate", "-tls1_3", []string{get}, 1},
			{"a certificate, TLS 1.2", "-tls1_2", []string{get}, 1},
			{"TLS 1.2", "-tls1_2", []string{get, get}, 2},
			{"KeyUpdate", "-tls1_3", []string{get, "K\n", get, "k\n", get}, 3},
			{"renegotiation", "-tls1_2", []string{get, "R\n"}, 1},
		} {
			cmd := exec.Command("openssl", "s_client", "-connect", ts.ListenAddr, "-servername", "example.com", "-crlf", tt.version)
			count := " 0"
			if strings.HasPrefix(tt.name, "a certificate") {
				cmd.Args = append(cmd.Args, "-cert", file, "-key", file)
				count = " 1"
			}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = cmd.Stdout // where it answers commands
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			got, r := 0, newOutput(out)
			for _, line := range tt.in {
				put(in, line)
				if line == get {
					if r.until(count + " certificates, 0 bytes: ") {
						got++
					}
				} else if r.until(map[string]string{"K\n": "KEYUPDATE", "k\n": "KEYUPDATE", "R\n": "RENEGOTIATING"}[line]); line == "R\n" {
					r.until("\x00") // to the end
				}
			}
			in.Close()
			io.Copy(io.Discard, out)
			cmd.Wait()
			if got != tt.answers {
				t.Errorf("%s: %d answers, want %d; %s", tt.name, got, tt.answers, servertest.Brief(r.all.String()))
			}
		}
	})
}

// output reads what a program says.
type output struct {
	r   io.Reader
	all strings.Builder
}

func newOutput(r io.Reader) *output { return &output{r: r} }

// until reads until what comes ends with s; false if it does not.
func (r *output) until(s string) bool {
	b := make([]byte, 1)
	from := r.all.Len()
	for {
		if n, err := r.r.Read(b); n == 0 || err != nil {
			return false
		}
		r.all.Write(b)
		if strings.HasSuffix(r.all.String()[from:], s) {
			return true
		}
	}
}
