package router_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/router"
)

// BenchmarkRouter asks on both ways. lab/routers has the comparison with others.
func BenchmarkRouter(b *testing.B) {
	r := router.New()
	for _, p := range []string{"GET /users", "GET /users/{id}", "GET /users/{id}/posts/{post}", "GET /static/css/site.css"} {
		r.HandleDirect("GET /d/"+p[strings.IndexByte(p, '/')+1:], func(x *direct.Exchange) { x.PathValue("id") })
		r.HandleFunc(p, func(w http.ResponseWriter, r *http.Request) { r.PathValue("id") })
	}
	for _, bm := range []struct{ name, path string }{
		{"static", "/static/css/site.css"},
		{"dynamic", "/users/7/posts/8"},
		{"notfound", "/nothing/here"},
	} {
		req := httptest.NewRequest("GET", bm.path, nil)
		b.Run(bm.name+"/direct", func(b *testing.B) {
			b.ReportAllocs()
			var x direct.Exchange
			path := []byte("/d" + bm.path)
			in := wire.Request{Method: "GET", Target: path, Path: path, Host: []byte("example.com")}
			for b.Loop() {
				x.Wire().Reset(in)
				if !r.ServeDirect(&x) {
					b.Fatal("not answered")
				}
				x.Wire().Finish()
			}
		})
		b.Run(bm.name+"/plain", func(b *testing.B) {
			b.ReportAllocs()
			w := nowhere{http.Header{}}
			var c http.Request
			for b.Loop() {
				c = *req // without the path values of the last time
				r.ServeHTTP(w, &c)
			}
		})
	}
}
