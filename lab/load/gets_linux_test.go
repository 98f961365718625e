package load

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/quic-go/quic-go/http3"

	"github.com/chert-http/chert/lab/serve"
)

// serveGets serves h over HTTP/2 and, at the same port, over HTTP/3.
func serveGets(t *testing.T, h http.Handler) (addr string) {
	t.Helper()
	certificates := []tls.Certificate{serve.Certificate()}
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: certificates}
	s.StartTLS()
	t.Cleanup(s.Close)
	at := s.Listener.Addr().(*net.TCPAddr)
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port})
	if err != nil {
		t.Fatal(err)
	}
	over := &http3.Server{Handler: h, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: certificates})}
	done := make(chan struct{})
	go func() {
		over.Serve(c)
		close(done)
	}()
	t.Cleanup(func() {
		over.Close()
		<-done
		c.Close()
	})
	return at.String()
}

func TestGets(t *testing.T) {
	const large = 20 << 20 // more than the client's windows
	addr := serveGets(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			io.WriteString(w, "hello")
		case "/large":
			w.Write(make([]byte, large))
		default:
			http.NotFound(w, r)
		}
	}))
	for name, h3 := range map[string]bool{"HTTP/2": false, "HTTP/3": true} {
		plan := Gets{Addr: addr, H3: h3, Path: "/", Length: 5, Connections: 2, Streams: 3, Seconds: 0.05, Server: os.Getpid()}
		res, err := plan.Run(t.Context())
		if err != nil || res.Requests < 6 || res.Errors != 0 || res.P99 < res.P50 || res.Server.Total <= 0 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		plan.Path, plan.Length, plan.Connections, plan.Streams, plan.Seconds = "/large", large, 1, 1, 0.001
		if res, err := plan.Run(t.Context()); err != nil || res.Requests != 1 || res.Errors != 0 {
			t.Errorf("%s, a large body: %+v, %v", name, res, err)
		}
		plan.Path, plan.Length = "/", 4
		if res, err := plan.Run(t.Context()); err != nil || res.Errors != 1 || !strings.Contains(res.Fault, "5 bytes, not 4") {
			t.Errorf("%s, another length: %+v, %v", name, res, err)
		}
		plan.Path = "/none"
		if res, err := plan.Run(t.Context()); err != nil || res.Errors != 1 || !strings.Contains(res.Fault, "status") {
			t.Errorf("%s, another status: %+v, %v", name, res, err)
		}
	}
}

func TestIdleH3(t *testing.T) {
	addr := serveGets(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	idle, err := OpenIdleH3(t.Context(), addr, 20, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if err := idle.Ask(t.Context()); err != nil {
		t.Error(err)
	}
	idle.conns[3].close()
	if err := idle.Ask(t.Context()); err == nil {
		t.Error("one connection is closed, and Ask has not noticed")
	}
}
