// Command nethttpproxy is httputil.ReverseProxy on net/http as a reverse proxy under test.
package main

import (
	"crypto/tls"
	"flag"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"github.com/chert-http/chert/lab/serve"
)

// buffers is what ReverseProxy copies bodies with.
type buffers struct{ sync.Pool }

func (b *buffers) Get() []byte  { return *b.Pool.Get().(*[]byte) }
func (b *buffers) Put(p []byte) { b.Pool.Put(&p) }

func main() {
	origin := flag.String("origin", "", "`address` of the server behind the proxy")
	keep := flag.Int("keep", 0, "how many connections to it are kept")
	serve.Main(func(addr string) error {
		pool := &buffers{sync.Pool{New: func() any {
			b := make([]byte, 32<<10)
			return &b
		}}}
		to := &url.URL{Scheme: "http", Host: *origin}
		h := &httputil.ReverseProxy{BufferPool: pool,
			Transport: &http.Transport{MaxIdleConns: *keep, MaxIdleConnsPerHost: *keep, DisableCompression: true},
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(to)
				r.Out.Host = r.In.Host
				r.SetXForwarded()
				if host, _, err := net.SplitHostPort(r.In.RemoteAddr); err == nil {
					r.Out.Header.Set("X-Real-Ip", host)
				}
			}}
		s := &http.Server{Addr: addr, Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()},
			NextProtos: []string{"h2", "http/1.1"}}}
		if err := serve.AlsoTLS(net.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}
