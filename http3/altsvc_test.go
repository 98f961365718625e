package http3_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	chert3 "github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// over returns the response to a GET over HTTP/1.1 or HTTP/2.
func over(t *testing.T, url string, two bool) *http.Response {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols)}
	t.Cleanup(tr.CloseIdleConnections)
	tr.Protocols.SetHTTP1(!two)
	tr.Protocols.SetHTTP2(two)
	res, err := (&http.Client{Transport: tr, Timeout: servertest.Patience}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}

// directly is a handler of package direct.
type directly struct{ http.Handler }

func (directly) ServeDirect(x *direct.Exchange) bool {
	x.WriteString("direct")
	return true
}

// Responses over TCP with TLS tell of HTTP/3, however they are made, and no others.
func TestAltSvc(t *testing.T) {
	t.Parallel()
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "plain") })
	backend := httptest.NewServer(plain)
	t.Cleanup(backend.Close)
	pool := proxy.NewPool(&proxy.PoolOptions{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { pool.Close() })
	forward := func(name, addr string) http.Handler {
		up, err := pool.Upstream(&proxy.UpstreamOptions{Name: name, Servers: []proxy.Server{{Addr: addr}}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := proxy.New(&proxy.Options{Upstream: up})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	handlers := map[string]http.Handler{
		"plain": plain, "direct": directly{plain}, "forwarded": forward("there", backend.Listener.Addr().String()),
		"not forwarded": forward("gone", freeport.Addr(t)), "empty": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }),
	}
	for name, h := range handlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range []*chert3.Options{nil, {Port: 443, MaxAge: time.Minute}} {
				addr := startWith(t, h, chert3.New(o))
				_, port, _ := net.SplitHostPort(addr)
				want := "h3=" + strconv.Quote(":"+port) + "; ma=86400"
				if o != nil {
					want = `h3=":443"; ma=60`
				}
				for _, two := range []bool{false, true, false, true} { // what is known of a handler has an effect
					if got := over(t, "https://"+addr, two).Header.Values("Alt-Svc"); len(got) != 1 || got[0] != want {
						t.Errorf("HTTP/2 %v: Alt-Svc %q, want %q", two, got, want)
					}
				}
			}
			addr := startWith(t, h, nil)
			for _, two := range []bool{false, true} {
				if got := over(t, "https://"+addr, two).Header.Values("Alt-Svc"); got != nil {
					t.Errorf("without HTTP/3, HTTP/2 %v: Alt-Svc %q", two, got)
				}
			}
			srv := &chert.Server{Handler: h, HTTP3: chert3.New(nil)}
			l := listen(t, srv)
			done := make(chan error, 1)
			go func() { done <- srv.Serve(l) }()
			t.Cleanup(func() {
				srv.Close()
				servertest.Await(t, done, "Serve")
			})
			if got := over(t, "http://"+l.Addr().String(), false).Header.Values("Alt-Svc"); got != nil {
				t.Errorf("without TLS: Alt-Svc %q", got)
			}
		})
	}
}

// startWith serves h over TLS, and over HTTP/3 if there is h3.
func startWith(t *testing.T, h http.Handler, h3 chert.HTTP3) (addr string) {
	t.Helper()
	cert, _ := servertest.Certificate(t)
	srv := &chert.Server{Handler: h, HTTP3: h3, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	l := listen(t, srv)
	done := make(chan error, 1)
	go func() { done <- srv.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		srv.Close()
		if err := servertest.Await(t, done, "ServeTLS"); err != chert.ErrServerClosed {
			t.Errorf("ServeTLS: %v", err)
		}
	})
	return l.Addr().String()
}
