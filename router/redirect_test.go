package router_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/chert-http/chert/router"
)

// A redirect keeps what was taken off the path, also where the target is not
// written as EscapedPath writes it, or names a host.
func TestMountedRedirect(t *testing.T) {
	t.Parallel()
	inner := router.New()
	inner.Handle("GET /dir/{$}", say("dir"))
	inner.Handle("GET /{a}/dir/{$}", say("dir"))
	inner.Handle("GET /{rest...}", say("rest"))
	r := router.New()
	r.Group("/t/{tenant}").Mount("/shop/", inner)
	r.Handle("/stripped/", http.StripPrefix("/stripped", inner))
	for target, want := range map[string]string{
		`/t/x/shop/a{"b//c`:          "/t/x/shop/a%7B%22b/c",
		`/t/x{y/shop/dir`:            "/t/x{y/shop/dir/",
		`/t/x/shop/a{"b/dir`:         "/t/x/shop/a%7B%22b/dir/",
		`/t/x/shop/é/dir?q`:          "/t/x/shop/%C3%A9/dir/?q",
		`/stripped/a{"b/dir`:         "/stripped/a%7B%22b/dir/",
		`http://h.com/t/x/shop/dir`:  "/t/x/shop/dir/",
		`/t/x{y/shop/a//b?q=//`:      "/t/x%7By/shop/a/b?q=//",
		`/stripped/a{"b//c`:          "/stripped/a%7B%22b/c",
		`http://h.com/t/x/shop/a//b`: "/t/x/shop/a/b",
		`http://h.com/stripped/dir`:  "/stripped/dir/",
		`http://h.com//stripped//a`:  "/stripped/a",
		`/t/x/shop/a%2Fb//c`:         "/t/x/shop/a%2Fb/c",
	} {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		// As a server has it: the target as it came.
		req := &http.Request{Method: "GET", URL: u, RequestURI: target, Host: "h.com", Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		if a := ask(r, req); a.status != 307 || a.location != want {
			t.Errorf("%s: got %d to %s, want %s", target, a.status, a.location, want)
		}
	}
}
