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
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chromedp/chromedp"
)

// A large page over HTTPS, with a script and an upload.
func TestHTTPS(t *testing.T) {
	t.Parallel()
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
	tab := openTLS(t, &chert.Server{Handler: mux})
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

// openTLS serves with a certificate that the browser of the tab trusts, and has it begin with HTTP/3 if s has that.
func openTLS(t *testing.T, s *chert.Server) *tab {
	t.Helper()
	cert, _ := servertest.Certificate(t)
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	l, err := s.Listen("tcp", freeport.Both(t))
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
	flags := []chromedp.ExecAllocatorOption{
		chromedp.Flag("ignore-certificate-errors-spki-list", base64.StdEncoding.EncodeToString(key[:])),
	}
	if s.HTTP3 != nil {
		flags = append(flags, chromedp.Flag("origin-to-force-quic-on", l.Addr().String()))
	}
	return openTab(t, "https://"+l.Addr().String(), flags...)
}

// A page, an upload and an event stream over HTTP/3.
func TestHTTP3(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("large ", 100_000)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!DOCTYPE html><link rel=icon href=data:,><title>%s</title><p>%s", r.Proto, large)
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, r.Proto, " ", n)
	})
	feed, err := eventstream.New(&eventstream.Options{OnOpen: func(s *eventstream.Stream, r *http.Request) {
		if err := s.Send(eventstream.Event{Data: r.Proto}); err != nil {
			t.Error(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("GET /events", feed)
	tab := openTLS(t, &chert.Server{Handler: mux, HTTP3: http3.New(nil)})
	tab.visit(t, tab.origin+"/")
	if got := eval[string](t, tab, "document.title"); got != "HTTP/3.0" {
		t.Errorf("the title is %q", got)
	}
	if got := eval[string](t, tab, "performance.getEntriesByType('navigation')[0].nextHopProtocol"); got != "h3" {
		t.Errorf("the browser speaks %q", got)
	}
	if got := eval[int](t, tab, "document.querySelector('p').textContent.length"); got != len(large) {
		t.Errorf("%d characters", got)
	}
	const post = "fetch('/echo', {method: 'POST', body: 'x'.repeat(3000000)}).then(r => r.text())"
	if got := eval[string](t, tab, post); got != "HTTP/3.0 3000000" {
		t.Errorf("the echo is %q", got)
	}
	const event = "new Promise(f => { let s = new EventSource('/events'); s.onmessage = e => f(e.data) })"
	if got := eval[string](t, tab, event); got != "HTTP/3.0" {
		t.Errorf("the event is %q", got)
	}
}
