package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

func TestBrowser(t *testing.T) {
	t.Parallel()
	page := Page{Document: PageFile{"/", "document"}}
	for i := range 20 {
		page.Rest = append(page.Rest, PageFile{fmt.Sprintf("/%d", i), strings.Repeat("x", i)})
	}
	for major := 1; major <= 3; major++ {
		t.Run(fmt.Sprintf("HTTP %d", major), func(t *testing.T) {
			t.Parallel()
			var connections, asked atomic.Int32
			together := make(chan bool) // closed when two files are asked for at the same time
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/":
					fmt.Fprint(w, "document")
				case "/missing":
					http.NotFound(w, r)
				default:
					if asked.Add(1) == 2 {
						close(together)
					}
					select {
					case <-together:
					case <-r.Context().Done():
					}
					var n int
					fmt.Sscanf(r.URL.Path, "/%d", &n)
					fmt.Fprint(w, strings.Repeat("x", n))
				}
			})
			s := httptest.NewUnstartedServer(h)
			s.EnableHTTP2 = true
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			s.StartTLS()
			defer s.Close()
			addr := s.Listener.Addr().String()
			if major == 3 {
				addr = serveH3(t, h, s.TLS.Certificates)
			}
			b := OpenBrowser(addr, major)
			defer b.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for range 2 {
				took, err := b.Fetch(ctx, page)
				if err != nil || took.File <= 0 || took.Page < took.File {
					t.Fatalf("%v, %v", took, err)
				}
			}
			if n := connections.Load(); major == 2 && n != 1 || major == 1 && (n < 2 || n > browserConnections) {
				t.Errorf("%d connections", n)
			}
			for name, bad := range map[string]PageFile{
				"a status":  {"/missing", "404 page not found\n"},
				"a content": {"/3", "xxy"},
			} {
				among := Page{Document: page.Document, Rest: []PageFile{page.Rest[1], bad}}
				for _, p := range []Page{{Document: bad}, among} {
					if _, err := b.Fetch(t.Context(), p); err == nil || !strings.Contains(err.Error(), bad.Path) {
						t.Errorf("%s that is wrong: %v", name, err)
					}
				}
			}
		})
	}
}

// serveH3 serves HTTP/3 until the test ends.
func serveH3(t *testing.T, h http.Handler, certificates []tls.Certificate) (addr string) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http3.Server{Handler: h, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: certificates})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Serve(c)
	}()
	t.Cleanup(func() {
		s.Close()
		c.Close()
		<-ended
	})
	return c.LocalAddr().String()
}
