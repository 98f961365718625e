package http3_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/router"
	"github.com/chert-http/chert/static"
)

// Handlers of the other packages, as over HTTP/1 and 2.
func TestStack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := strings.Repeat("0123456789", 300_000)
	for name, text := range map[string]string{"small.txt": "small", "empty.txt": "", "large.txt": large} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := static.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	compress, err := middleware.Compress(nil)
	if err != nil {
		t.Fatal(err)
	}
	backend := httptest.NewServer(hf(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "A")
		io.WriteString(w, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Forwarded-Proto")+" "+string(body))
		w.Header().Set("A", "b")
	}))
	t.Cleanup(backend.Close)
	pool := proxy.NewPool(nil)
	t.Cleanup(func() { pool.Close() })
	up, err := pool.Upstream(&proxy.UpstreamOptions{Name: "up", Servers: []proxy.Server{{Addr: backend.Listener.Addr().String()}}})
	if err != nil {
		t.Fatal(err)
	}
	forward, err := proxy.New(&proxy.Options{Upstream: up})
	if err != nil {
		t.Fatal(err)
	}
	r := router.New()
	r.Mount("/static", files)
	r.HandleDirect("GET /direct/{name}", func(x *direct.Exchange) { x.WriteString("direct " + string(x.Path())) })
	r.Handle("/proxy", forward)
	r.With(compress).HandleFunc("GET /text", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, large)
	})
	lines := new(servertest.Log)
	access := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: lines})
	s := serve(t, &chert.Server{Handler: access.Wrap(r), Refused: access.Refused})
	c := s.client()
	do := func(method, path, body string, more ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(method, s.url(path), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(more); i += 2 {
			req.Header.Set(more[i], more[i+1])
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return res, string(got)
	}
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
		fields             []string
	}{
		{"GET", "/static/small.txt", "", 200, "small", nil},
		{"HEAD", "/static/small.txt", "", 200, "", nil},
		{"GET", "/static/empty.txt", "", 200, "", nil},
		{"GET", "/static/large.txt", "", 200, large, nil},
		{"GET", "/static/large.txt", "", 206, large[1_000_000:2_000_000], []string{"Range", "bytes=1000000-1999999"}},
		{"GET", "/static/none", "", 404, "404 page not found\n", nil},
		{"GET", "/direct/a", "", 200, "direct /direct/a", nil},
		{"HEAD", "/direct/a", "", 200, "", nil},
		{"POST", "/proxy", "body", 200, "POST /proxy https body", nil},
		{"GET", "/proxy", "", 200, "GET /proxy https ", nil},
		{"GET", "/nowhere", "", 404, "404 page not found\n", nil},
	} {
		res, got := do(tt.method, tt.path, tt.body, tt.fields...)
		if res.StatusCode != tt.status || got != tt.want {
			t.Errorf("%s %s: %d %.60q, want %d %.60q", tt.method, tt.path, res.StatusCode, got, tt.status, tt.want)
		}
		if tt.path == "/proxy" && res.Trailer.Get("A") != "b" {
			t.Errorf("trailer %v", res.Trailer)
		}
	}
	res, got := do("GET", "/text", "", "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(strings.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(z); err != nil || string(plain) != large || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%v, %v", res, err)
	}
	s.raw().do(headers(with(get, "connection: close")...))
	// A line is written when the transport has the answer, which the client may have by then.
	servertest.Eventually(t, "all is logged", func() bool {
		access.Flush()
		return strings.Count(lines.String(), "\n") == 13
	})
	for _, want := range []string{
		`"GET /static/small.txt HTTP/3.0" 200 5 `, `"GET /static/large.txt HTTP/3.0" 200 3000000 `,
		`"GET /direct/a HTTP/3.0" 200 16 `, `"POST /proxy HTTP/3.0" 200 22 `, `"-" 400 `,
	} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("there is no %s in\n%s", want, lines)
		}
	}
}
