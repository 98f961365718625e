package router_test

import (
	"cmp"
	"fmt"
	"io"
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

// A prefix that ends with a slash leaves a path without one, for which a redirect would lead to itself.
func TestStrippedSlash(t *testing.T) {
	t.Parallel()
	inner := router.New()
	inner.Handle("GET /{$}", say("root"))
	inner.Handle("GET /users", say("users"))
	inner.Handle("GET /dir/{$}", say("dir"))
	inner.HandleFunc("GET /of/{name}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.PathValue("name")) })
	h := http.StripPrefix("/api/", inner)
	for target, want := range map[string]string{
		"/api/":                 "200 root ",
		"/api/users":            "200 users users",
		"/api/users?q=/":        "200 users users",
		"/api/of/a%2Fb":         "200 a/b",
		`/api/of/{"`:            `200 {"`,
		"http://h.com/api/of/é": "200 é",
		"/api/nothing":          "404 404 page not found\n",
		"/api/dir":              "307 /api/dir/",
		"/api/of//a":            "307 /api/of/a",
	} {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Method: "GET", URL: u, RequestURI: target, Host: "h.com", Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		a := ask(h, req)
		if got := fmt.Sprint(a.status, " ", cmp.Or(a.location, a.body)); got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
}
