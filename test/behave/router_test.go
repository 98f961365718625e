package behave

import (
	"net/http"
	"testing"
	"testing/fstest"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/router"
	"github.com/chert-http/chert/static"
)

// A router's routes are identified by their patterns: the route is proven, for
// all path values, and not its neighbour under the same prefix.
func TestPlacementByRoute(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &chert.Server{})
	r := router.New()
	r.Handle("GET /api/{tenant}/quick", p)
	r.Handle("GET /api/{tenant}/other", p)
	p.Server.Handler = r
	if !p.inlineToo("/api/1/quick", "/api/2/quick?query") {
		t.Error("the route runs pooled for another value")
	}
	if got := where(p.Dial(), "/api/1/other"); got != "pooled" {
		t.Errorf("another route ran %s", got)
	}
}

// The router's own responses, and those of its direct and plain routes, are the
// same on all engines.
func TestRouter(t *testing.T) {
	r := router.New()
	r.HandleDirect("GET /direct/{x}/{rest...}", func(x *direct.Exchange) {
		x.WriteString(x.Wire().Pattern() + " " + string(x.PathValue("x")) + " " + string(x.PathValue("rest")))
	})
	r.HandleFunc("GET /plain/{x}/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		put(w, r.Pattern+" "+r.PathValue("x")+" "+r.PathValue("rest"))
	})
	files, err := static.NewFS(fstest.MapFS{"dir/a.txt": {Data: []byte("a file")}, "dir/index.html": {Data: []byte("index")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	r.Mount("/files", files)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		c := engines.Start(t, &chert.Server{Engine: e, Handler: r}).Dial()
		for _, tt := range []struct {
			method, target string
			status         int
			body, field    string
		}{
			{"GET", "/direct/1/2/3", 200, "GET /direct/{x}/{rest...} 1 2/3", ""},
			{"GET", "/direct/a%2Fb/2%2F3?q", 200, "GET /direct/{x}/{rest...} a/b 2/3", ""},
			{"GET", "/plain/1/2/3", 200, "GET /plain/{x}/{rest...} 1 2/3", ""},
			{"GET", "/plain/a%2Fb/2%2F3", 200, "GET /plain/{x}/{rest...} a/b 2/3", ""},
			{"HEAD", "/direct/1/", 200, "", ""},
			{"POST", "/direct/1/", 405, "Method Not Allowed\n", "GET, HEAD, OPTIONS"},
			{"OPTIONS", "/plain/1/", 204, "", "GET, HEAD, OPTIONS"},
			{"HEAD", "/plain/1", 307, "", "/plain/1/"},
			{"GET", "/files/dir/a.txt", 200, "a file", ""},
			{"HEAD", "/files/dir/%61.txt", 200, "", ""},
			{"HEAD", "/files/dir", 301, "", "dir/"},
			{"HEAD", "/files", 307, "", "/files/"},
			{"GET", "/none", 404, "404 page not found\n", ""},
		} {
			c.Send(tt.method + " " + tt.target + " HTTP/1.1\r\nHost: h\r\n\r\n")
			res, body := c.Response(tt.method)
			if field := res.Header.Get("Allow") + res.Header.Get("Location"); res.StatusCode != tt.status || body != tt.body || field != tt.field {
				t.Errorf("%s %s: %d %q %q", tt.method, tt.target, res.StatusCode, field, body)
			}
		}
	})
}
