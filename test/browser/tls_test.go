package browser

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chromedp/chromedp"
)

// A large page over HTTPS, with a script and an upload.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("large ", 100_000)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!DOCTYPE html><link rel=icon href=data:,><title>%s</title><script src=/script.js></script><p>%s", tls.VersionName(r.TLS.Version), large)
	})
	mux.HandleFunc("GET /script.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, "let loaded = 1")
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, n)
	})
	s := &chert.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		s.Close()
		if err := servertest.Await(t, served, "ServeTLS"); err != http.ErrServerClosed {
			t.Errorf("ServeTLS returned %v", err)
		}
	})
	// Chromium trusts this key, and checks all the rest.
	key := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	tab := openTab(t, "https://"+l.Addr().String(),
		chromedp.Flag("ignore-certificate-errors-spki-list", base64.StdEncoding.EncodeToString(key[:])))
	for range 2 {
		tab.visit(t, tab.origin+"/")
		if got := eval[string](t, tab, "document.title"); got != "TLS 1.3" {
			t.Errorf("the title is %q", got)
		}
		if got := eval[int](t, tab, "loaded + document.querySelector('p').textContent.length"); got != 1+len(large) {
			t.Errorf("%d characters", got)
		}
		if got := eval[string](t, tab, "fetch('/echo', {method: 'POST', body: 'x'.repeat(100000)}).then(r => r.text())"); got != "100000" {
			t.Errorf("the echo is %q", got)
		}
	}
}
