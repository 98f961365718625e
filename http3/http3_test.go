package http3_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/quic-go/quic-go/http3"

	"github.com/chert-http/chert"
	chert3 "github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// start starts a server, and returns its address and a client that speaks HTTP/3 to it.
func start(t *testing.T, srv *chert.Server) (addr string, client *http.Client) {
	t.Helper()
	cert, _ := servertest.Certificate(t)
	srv.HTTP3 = chert3.New(nil)
	srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	l, err := srv.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; err != chert.ErrServerClosed {
			t.Errorf("Serve: %v", err)
		}
	})
	tr := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(func() { tr.Close() })
	return l.Addr().(*net.TCPAddr).String(), &http.Client{Transport: tr}
}

func TestHello(t *testing.T) {
	t.Parallel()
	addr, c := start(t, &chert.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		io.WriteString(w, r.Proto+" "+r.Method+" "+string(body))
	})})
	for _, body := range []string{"", "x", strings.Repeat("long", 100_000)} {
		var res *http.Response
		var err error
		if body == "" {
			res, err = c.Get("https://" + addr + "/")
		} else {
			res, err = c.Post("https://"+addr+"/", "text/plain", strings.NewReader(body))
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		want := "HTTP/3.0 POST " + body
		if body == "" {
			want = "HTTP/3.0 GET "
		}
		if err != nil || string(got) != want {
			t.Fatalf("%v %.50q, %v", res, got, err)
		}
	}
}
