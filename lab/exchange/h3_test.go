package exchange

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quic-go/quic-go/http3"
)

func TestFetchH3(t *testing.T) {
	s := httptest.NewUnstartedServer(nil) // for its certificate
	s.StartTLS()
	defer s.Close()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	over := &http3.Server{
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: s.TLS.Certificates}),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, r.Method+" "+r.Header.Get("Content-Type")+" ")
			io.Copy(w, r.Body)
		}),
	}
	defer over.Close()
	go over.Serve(c)
	a, err := FetchH3(t.Context(), c.LocalAddr().String(), Request{Method: "POST", Path: "/", Type: "a/b", Body: "body"})
	if want := OK("text/plain", "POST a/b body"); err != nil || a.Differs(want) != nil {
		t.Errorf("%v, %v, want %v", a, err, want)
	}
}
