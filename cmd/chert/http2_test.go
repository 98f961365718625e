package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// With TLS, clients get HTTP/2 if they offer it.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	storage := filepath.Join(t.TempDir(), "state")
	p := start(t, folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0", "--tls-self", "--tls-storage", storage)
	p.line()
	text, err := os.ReadFile(filepath.Join(storage, "self", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	for _, two := range []bool{true, false} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: new(http.Protocols)}
		defer tr.CloseIdleConnections()
		want := "HTTP/2.0"
		if tr.Protocols.SetHTTP2(two); !two {
			tr.Protocols.SetHTTP1(true)
			want = "HTTP/1.1"
		}
		res, err := (&http.Client{Transport: tr, Timeout: servertest.Patience}).Get(p.urls[0] + "f")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.Proto != want || res.StatusCode != 200 || string(body) != "body" {
			t.Errorf("%s %s %q, %v", res.Proto, res.Status, body, err)
		}
	}
	p.cmd.Process.Kill()
	p.wait()
}
