package exchange

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFetchTLS(t *testing.T) {
	for _, max := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, r.Proto)
		}))
		s.TLS = &tls.Config{MaxVersion: max}
		s.StartTLS()
		defer s.Close()
		a, err := FetchTLS(t.Context(), strings.TrimPrefix(s.URL, "https://"), Get("/"))
		if max != tls.VersionTLS13 {
			if err == nil || !strings.Contains(err.Error(), "protocol version") {
				t.Errorf("TLS 1.2: %v, %v", a, err)
			}
			continue
		}
		if want := OK("text/plain", "HTTP/1.1"); err != nil || a.Differs(want) != nil {
			t.Errorf("%v, %v, want %v", a, err, want)
		}
	}
}

func TestFetchH2(t *testing.T) {
	for _, h2 := range []bool{true, false} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, r.Method+" "+r.Header.Get("Content-Type")+" ")
			io.Copy(w, r.Body)
		}))
		s.EnableHTTP2 = h2
		s.StartTLS()
		defer s.Close()
		a, err := FetchH2(t.Context(), strings.TrimPrefix(s.URL, "https://"), Request{Method: "POST", Path: "/", Type: "a/b", Body: "body"})
		if !h2 {
			if err == nil || !strings.Contains(err.Error(), "HTTP/1.1, not HTTP/2") {
				t.Errorf("over HTTP/1: %v, %v", a, err)
			}
			continue
		}
		if want := OK("text/plain", "POST a/b body"); err != nil || a.Differs(want) != nil {
			t.Errorf("%v, %v, want %v", a, err, want)
		}
	}
}
