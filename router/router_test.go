package router_test

import (
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/router"
)

// say answers with its name and the path it sees.
func say(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, name, " ", r.URL.EscapedPath())
	})
}

// tag is a middleware that writes its name before and after.
func tag(name string) router.Middleware {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Tag", name)
			h.ServeHTTP(w, r)
		})
	}
}

func get(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// Panics at registration, and what they must name.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		patterns string // by commas; the last is refused
		says     string
	}{
		{"", "slash"},
		{"GET", "slash"},
		{"GET users", "slash"},
		{"G@T /", "invalid method"},
		{"{x}/", "host has a '{'"},
		{"/{x", "does not end with its wildcard"},
		{"/a{x}", "does not begin with its wildcard"},
		{"/{x}a", "does not end with its wildcard"},
		{"/{}", "bad wildcard name"},
		{"/{1}", "bad wildcard name"},
		{"/{a-b}", "bad wildcard name"},
		{"/{...}", "bad wildcard name"},
		{"/{x}/{x}", "twice"},
		{"/{$}/a", "not at the end"},
		{"/{x...}/", "not at the end"},
		{"GET /a//b", "unclean"},
		{"/a/../b", "unclean"},
		{"/a,/a", "same requests"},
		{"/{x},/{y}", "same requests"},
		{"/a/,/a/{rest...}", "same requests"},
		{"/%2F,/{$}", "same requests"},
		{"/%61,/a", "same requests"},
		{"/a/{x},/{x}/b", `both match "/a/b"`},
		{"/{x}/b/,/a/{y...}", `both match "/a/b/"`},
		{"GET /a/,/a/b", "fewer paths"},
		{"/a/b,GET /a/", "more paths"},
		{"GET /a,HEAD /{x}", "more paths"},

		// What other routers take.
		{"GET /users/:id", `":id" is literal here; write "/users/{id}", or "%3Aid"`},
		{"/:a/:a/b", `write "/{a}/{a2}/b"`},
		{"/:", `write "/{id}"`},
		{"/:id?", `write "/{id}"`},
		{"GET /files/*", `"*" is literal here; write "/files/{path...}", or "%2A"`},
		{"/files/*name", `write "/files/{name...}"`},
		{"/a/*/b", `write "/a/{id}/b"`},
		{"/static/*.css", `write "/static/{path...}"`},
		{"/{id:[0-9]+}", "write {id} and check"},
		{"get /x", `write "GET", not "get"`},
		{"Trace /x", `write "TRACE"`},
		{"* /x", "leave the method out"},
		{"GET users", `write "/users" for a path`},

		// Ways out of a conflict.
		{"GET /,/files/", `; write "GET /{$}" for the one page, or "GET /files/"`},
		{"/files/,GET /", `; write "GET /{$}" for the one page, or "GET /files/"`},
		{"GET /{x},/a", `; write "GET /a"`},
		{"GET a.com/b/,a.com/b/c", `; write "GET a.com/b/{$}" for the one page, or "GET a.com/b/c"`},
	} {
		r := router.New()
		patterns := strings.Split(tt.patterns, ",")
		last := len(patterns) - 1
		for _, p := range patterns[:last] {
			r.Handle(p, say(p))
		}
		text := func() (s string) {
			defer func() { s = fmt.Sprint(recover()) }()
			r.Handle(patterns[last], say(""))
			return
		}()
		for _, want := range append(patterns, tt.says) {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in %q", tt.patterns, want, text)
			}
		}
		if n := strings.Count(text, "router_test.go:"); last > 0 && n != 2 {
			t.Errorf("%s: %d places are named in %q", tt.patterns, n, text)
		}
	}
	for name, f := range map[string]func(r *router.Router){
		"nil middleware":              func(r *router.Router) { r.Use(nil) },
		"nil middleware of a group":   func(r *router.Router) { r.Group("/a", tag(""), nil) },
		"nil middleware of With":      func(r *router.Router) { r.With(nil) },
		"middleware that makes nil":   func(r *router.Router) { r.With(func(http.Handler) http.Handler { return nil }).Handle("/", say("")) },
		"nil handler":                 func(r *router.Router) { r.Handle("/", nil) },
		"nil HandlerFunc":             func(r *router.Router) { r.Handle("/", http.HandlerFunc(nil)) },
		"nil function":                func(r *router.Router) { r.HandleFunc("/", nil) },
		"nil direct function":         func(r *router.Router) { r.HandleDirect("/", nil) },
		"nil mounted":                 func(r *router.Router) { r.Mount("/", nil) },
		"Use after a route":           func(r *router.Router) { r.Handle("/", say("")); r.Use(tag("")) },
		"Use after a group's route":   func(r *router.Router) { r.Group("/a").Handle("/", say("")); r.Use(tag("")) },
		"Use when requests are there": func(r *router.Router) { get(r, "GET", "/"); r.Use(tag("")) },
		"a host in a group":           func(r *router.Router) { r.Group("/a").Handle("GET b.com/", say("")) },
		"a name twice":                func(r *router.Router) { r.Handle("/a", say("")).Named("a"); r.Handle("/b", say("")).Named("a") },
	} {
		if registers(func() { f(router.New()) }) {
			t.Errorf("%s: no panic", name)
		}
	}
}

// The messages of groups and mounts, which do not have a pattern to name.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]func(r *router.Router){
		`begins with the host "y"; write "/y" for a path, or "y/" for the host`: func(r *router.Router) { r.Group("y").Handle("GET /a", say("")) },
		`write "/api/v1" for a path, or "api/" for the host`:                    func(r *router.Router) { r.Group("api/v1") },
		`write "/b" for a path`:                       func(r *router.Router) { r.Group("").With().Group("b") },
		`write "/files" for a path`:                   func(r *router.Router) { r.Mount("files", say("")) },
		`write "/got" for a path`:                     func(r *router.Router) { r.Mount("GET got", say("")) },
		`must begin with a slash`:                     func(r *router.Router) { r.Group("/a").Group("y") },
		`below its prefix; write Mount("GET /files")`: func(r *router.Router) { r.Mount("GET /files/*", say("")) },
		`write "/a/{id}/b"`:                           func(r *router.Router) { r.Group("/a/:id").Handle("GET /b", say("")) },
		`; write "GET /{$}" for the one page, or Mount("GET /files")`: func(r *router.Router) {
			r.Handle("GET /", say(""))
			r.Mount("/files", say(""))
		},
		`for the one page, or Mount("GET /api/files")`: func(r *router.Router) {
			r.Group("/api").Mount("/files", say(""))
			r.Handle("GET /api/", say(""))
		},
		"nil middleware (number 2 of 2)": func(r *router.Router) { r.Use(tag(""), nil) },
	} {
		text := func() (s string) {
			defer func() { s = fmt.Sprint(recover()) }()
			f(router.New())
			return
		}()
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}

// What looks like another router's wildcard can be registered encoded, and
// hosts of one label with a slash.
func TestLiterals(t *testing.T) {
	t.Parallel()
	r := router.New()
	for _, p := range []string{"GET /%3Aid", "/a/%2A", "/%2a/b", "/a:b", "/a/b*", "GET intranet/x", "brew /pot"} {
		r.Handle(p, echo(p))
	}
	r.Group("wiki/").Handle("/x", echo("wiki/x"))
	r.Group("localhost/v1").Handle("/x", echo("localhost/v1/x"))
	r.Group("[::1]").Handle("/x", echo("[::1]/x"))
	for _, tt := range []struct{ method, target, pattern string }{
		{"GET", "http://a.com/:id", "GET /%3Aid"},
		{"GET", "http://a.com/%3aid", "GET /%3Aid"},
		{"GET", "http://a.com/a/*", "/a/%2A"},
		{"GET", "http://a.com/*/b", "/%2a/b"},
		{"GET", "http://a.com/a:b", "/a:b"},
		{"GET", "http://a.com/a/b*", "/a/b*"},
		{"GET", "http://intranet/x", "GET intranet/x"},
		{"brew", "http://a.com/pot", "brew /pot"},
		{"GET", "http://wiki/x", "wiki/x"},
		{"GET", "http://localhost:80/v1/x", "localhost/v1/x"},
	} {
		if a := ask(r, httptest.NewRequest(tt.method, tt.target, nil)); a.status != 200 || a.pattern != tt.pattern {
			t.Errorf("%s %s: got %+v, want %s", tt.method, tt.target, a, tt.pattern)
		}
	}
}

// An unclean pattern can match CONNECT, whose path is not cleaned.
func TestUncleanConnect(t *testing.T) {
	t.Parallel()
	r := router.New()
	r.Handle("CONNECT /a//{x}/../b", echo("CONNECT /a//{x}/../b"))
	req := httptest.NewRequest("GET", "/a//c/../b", nil)
	req.Method = "CONNECT"
	if a := ask(r, req); a.status != 200 || !strings.HasSuffix(a.body, `x="c"`) {
		t.Errorf("got %+v", a)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	r := router.New()
	r.Handle("GET /users/{id}", echo("GET /users/{id}"))
	r.Handle("POST /users/{id}", echo("POST /users/{id}"))
	r.Handle("BREW /users/{pot}", echo("BREW /users/{pot}"))
	r.Handle("GET /files/{path...}", echo("GET /files/{path...}"))
	r.Handle("POST /files/{path...}", echo("POST /files/{path...}"))
	r.Handle("GET /", echo("GET /"))
	r.Handle("example.com/", echo("example.com/"))
	r.Handle("OPTIONS /own", echo("OPTIONS /own"))
	for _, tt := range []struct {
		method, target string
		status         int
		says           string // in the body, the Location or Allow
		direct         bool
	}{
		{"GET", "http://a.com/users/7", 200, `id="7"`, true},
		{"HEAD", "http://a.com/users/7", 200, "", true},
		{"BREW", "http://a.com/users/7", 200, `pot="7"`, true},
		{"GET", "http://a.com/users/a%2Fb%25", 200, `id="a/b%"`, false},
		{"GET", "http://a.com/users/%2F", 200, `"GET /"`, false},
		{"GET", "http://a.com/users/a?q=%2F", 200, `id="a"`, true},
		{"GET", "http://a.com/files/a%2Fb/c%20d", 200, `path="a/b/c d"`, false},
		{"GET", "http://a.com/files/", 200, `path=""`, true},
		{"GET", "http://a.com/files", 307, "/files/", false},
		{"GET", "http://a.com/files?q", 307, "/files/?q", false},
		{"POST", "http://a.com/files//a/../b%20c?q", 307, "/files/b%20c?q", false},
		{"GET", "http://a.com/users//7", 307, "/users/7", false},
		{"GET", "http://a.com//evil.com/..", 307, "/", false},
		{"GET", "http://a.com//evil.com", 307, "/evil.com", false},
		{"GET", "http://a.com/\\evil.com", 200, `"GET /"`, false},
		{"PUT", "http://a.com/users/7", 405, "BREW, GET, HEAD, OPTIONS, POST", true},
		{"PUT", "http://a.com/x", 405, "GET, HEAD, OPTIONS", true},
		{"OPTIONS", "http://a.com/users/7", 204, "BREW, GET, HEAD, OPTIONS, POST", true},
		{"OPTIONS", "http://a.com/own", 200, "OPTIONS /own", true},
		{"PUT", "http://example.com:80/x", 200, `"example.com/"`, true},
	} {
		req := httptest.NewRequest(tt.method, tt.target, nil)
		req.RequestURI = req.URL.RequestURI()
		a := ask(r, req)
		if a.status != tt.status || !strings.Contains(a.body+a.location+a.allow, tt.says) {
			t.Errorf("%s %s: got %+v", tt.method, tt.target, a)
		}
		d, ok := askDirect(r, req)
		if ok != tt.direct || ok && d != a {
			t.Errorf("%s %s: direct %v, got %+v, want %+v", tt.method, tt.target, ok, d, a)
		}
	}
	if a := ask(router.New(), httptest.NewRequest("GET", "/", nil)); a.status != 404 || a.body != "404 page not found\n" {
		t.Errorf("without routes: %+v", a)
	}
	star := httptest.NewRequest("OPTIONS", "/", nil)
	star.RequestURI, star.URL.Path = "*", "*"
	if w := httptest.NewRecorder(); true {
		r.ServeHTTP(w, star)
		if w.Code != 400 || w.Header().Get("Connection") != "close" {
			t.Errorf("OPTIONS *: %d %v", w.Code, w.Header())
		}
	}
}

// More wildcards than a lookup has places for at first.
func TestManyWildcards(t *testing.T) {
	t.Parallel()
	pattern, path, want := "", "", ""
	for i := range 20 {
		pattern += fmt.Sprintf("/{w%d}", i)
		path += fmt.Sprintf("/v%d", i)
		want += fmt.Sprintf(" w%d=\"v%d\"", i, i)
	}
	r := router.New()
	r.Handle(pattern+"/end", say("end")) // fails after all of them
	r.Handle(pattern+"/", echo(pattern+"/"))
	req := httptest.NewRequest("GET", path+"/", nil)
	a := ask(r, req)
	d, ok := askDirect(r, req)
	if !strings.HasSuffix(a.body, want) || !ok || d != a {
		t.Errorf("got %q and %q", a.body, d.body)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	r := router.New()
	r.Use(tag("1"))
	r.Use(tag("2"))
	api := r.Group("/api/", tag("3"))
	api.Use(tag("4"))
	users := api.Group("/users/{user}")
	users.With(tag("5"), tag("6")).Handle("GET  /posts/{post}", echo("{user}{post}"))
	users.Handle("/{$}", echo("{user}"))
	r.Group("a.com").Handle("GET /x", say("host"))
	r.Group("").Handle("GET b.com/x", say("host"))
	for _, tt := range []struct {
		method, target string
		status         int
		tags           string
		says           string
	}{
		{"GET", "/api/users/7/posts/8", 200, "123456", `"GET /api/users/{user}/posts/{post}" "" user="7" post="8"`},
		{"GET", "/api/users/7/", 200, "1234", `user="7"`},
		{"GET", "/api/users/7", 307, "12", ""},
		{"GET", "/api/users", 404, "12", ""},
		{"POST", "/api/users/7/posts/8", 405, "12", ""},
		{"OPTIONS", "/api/users/7/posts/8", 204, "12", ""},
		{"GET", "http://a.com/x", 200, "12", "host"},
		{"GET", "http://b.com/x", 200, "12", "host"},
	} {
		w := get(r, tt.method, tt.target)
		if tags := strings.Join(w.Header()["Tag"], ""); w.Code != tt.status || tags != tt.tags || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s %s: %d %s %q", tt.method, tt.target, w.Code, tags, w.Body)
		}
	}
}

func TestOwnAnswers(t *testing.T) {
	t.Parallel()
	r := router.New()
	r.Handle("GET /a", say(""))
	get(r, "GET", "/") // the answers may be replaced at any time
	own := func(status int) direct.HandlerFunc {
		return func(x *direct.Exchange) { x.SetStatus(status); x.WriteString("own") }
	}
	r.NotFound(own(410))
	r.MethodNotAllowed(own(418))
	for target, want := range map[string]answer{
		"GET /b":     {status: 410, body: "own"},
		"POST /a":    {status: 418, body: "own", allow: "GET, HEAD, OPTIONS"},
		"OPTIONS /a": {status: 204, allow: "GET, HEAD, OPTIONS"},
	} {
		method, path, _ := strings.Cut(target, " ")
		req := httptest.NewRequest(method, path, nil)
		if a := ask(r, req); a != want {
			t.Errorf("%s: got %+v", target, a)
		}
		if a, ok := askDirect(r, req); !ok || a != want {
			t.Errorf("%s: direct %v, got %+v", target, ok, a)
		}
	}
	r.NotFound(say("plain"))
	req := httptest.NewRequest("GET", "/b", nil)
	if a := ask(r, req); a.body != "plain /b" {
		t.Errorf("got %+v", a)
	}
	if _, ok := askDirect(r, req); ok {
		t.Error("a plain handler answers directly")
	}
}

func TestMount(t *testing.T) {
	t.Parallel()
	inner := router.New()
	inner.Handle("GET /items/{id}", echo("{id}{tenant}"))
	inner.Handle("GET /dir/{$}", say("dir"))
	inner.Mount("/deeper", say("deeper"))
	r := router.New()
	r.Group("/t/{tenant}").Mount("/shop/", inner)
	r.Mount("/plain", say("plain"))
	r.Group("/g").Mount("GET /got", say("got"))
	r.Group("/g").Mount("POST /posted", say("posted"))
	r.Mount("h.com", say("host"))
	r.Handle("/stripped/", http.StripPrefix("/stripped", inner))
	for _, tt := range []struct {
		target string
		status int
		says   string
		direct bool
	}{
		{"/t/x/shop/items/7", 200, `"GET /items/{id}" "" id="7" tenant="x"`, true},
		{"/t/x%2Fy/shop/items/a%2Fb", 200, `id="a/b" tenant="x/y"`, false},
		{"/t/x/shop", 307, "/t/x/shop/", false},
		{"/t/x/shop/dir", 307, "/t/x/shop/dir/", false},
		{"/t/x/shop/dir?q", 307, "/t/x/shop/dir/?q", false},
		{"/t/x%20y/shop/dir", 307, "/t/x%20y/shop/dir/", false},
		{"/t/x/shop/dir/", 200, "dir /dir/", false},
		{"/t/x/shop/deeper/a%2Fb//", 307, "/t/x/shop/deeper/a%2Fb/", false},
		{"/t/x/shop/deeper/a%2Fb/", 200, "deeper /a%2Fb/", false},
		{"/t/x/shop/none", 404, "404", true},
		{"/plain/", 200, "plain /", false},
		{"/plain/a/b", 200, "plain /a/b", false},
		{"/g/got/a", 200, "got /a", false},
		{"/g/got", 307, "/g/got/", false},
		{"/g/posted/a", 405, "Method Not Allowed", true},
		{"http://h.com/a", 200, "host /a", false},
		{"/stripped/dir", 307, "/stripped/dir/", false},
		{"/stripped/dir/", 200, "dir /dir/", false},
	} {
		req := httptest.NewRequest("GET", tt.target, nil)
		req.RequestURI = req.URL.RequestURI()
		a := ask(r, req)
		if a.status != tt.status || !strings.Contains(a.body+a.location, tt.says) {
			t.Errorf("%s: got %+v", tt.target, a)
		}
		d, ok := askDirect(r, req)
		if ok != tt.direct || ok && (d.status != a.status || d.body != a.body) {
			t.Errorf("%s: direct %v, got %+v, want %+v", tt.target, ok, d, a)
		}
	}
}

// The pattern that is seen outside of a router is the same on both ways, also of one
// that is mounted.
func TestMountPattern(t *testing.T) {
	t.Parallel()
	inner := router.New()
	inner.Handle("GET /items/{id}", direct.NewResponse(200, nil, nil))
	r := router.New()
	r.Mount("/m", inner)
	for path, want := range map[string]string{"/m/items/1": "GET /items/{id}", "/m/none": "/m/"} {
		req := httptest.NewRequest("GET", path, nil)
		r.ServeHTTP(httptest.NewRecorder(), req)
		var x direct.Exchange
		x.Wire().Reset(wire.Request{Method: "GET", Target: []byte(path), Path: []byte(path), Fields: wire.FieldsOf(nil)})
		if !r.ServeDirect(&x) || req.Pattern != want || x.Wire().Pattern() != want {
			t.Errorf("%s: plain %q, direct %q, want %q", path, req.Pattern, x.Wire().Pattern(), want)
		}
	}
}

// A form that is parsed below is seen by the server, which removes its files.
func TestMountForm(t *testing.T) {
	t.Parallel()
	form := new(multipart.Form)
	r := router.New()
	r.Mount("/m", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { r.MultipartForm = form }))
	req := httptest.NewRequest("GET", "/m/a", nil)
	if r.ServeHTTP(httptest.NewRecorder(), req); req.MultipartForm != form {
		t.Errorf("got %v", req.MultipartForm)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	r := router.New()
	for name, p := range map[string]string{
		"static": "/a%20b/%25", "single": "GET /u/{id}/p", "rest": "/f/{path...}", "dir": "/d/{x}/", "end": "/e/{$}", "host": "h.com/{x}", "dots": "/%2E%2E/{x}", "slash": "/g%2Fh",
	} {
		r.Handle(p, echo(p)).Named(name)
	}
	for _, tt := range []struct {
		name, values string
		want         string // "" for an error
	}{
		{"static", "", "/a%20b/%25"},
		{"single", "id=7", "/u/7/p"},
		{"single", "id=a/b c?d%", "/u/a%2Fb%20c%3Fd%25/p"},
		{"single", "id=ä", "/u/%C3%A4/p"},
		{"single", "id=...", "/u/.../p"},
		{"rest", "path=", "/f/"},
		{"rest", "path=a/b c/", "/f/a/b%20c/"},
		{"dir", "x=1", "/d/1/"},
		{"end", "", "/e/"},
		{"host", "x=1", "//h.com/1"},
		{"dots", "x=1", "/%2E%2E/1"},
		{"slash", "", "/g%2Fh"},

		{"none", "", ""},
		{"single", "", ""},
		{"single", "id=", ""},
		{"single", "id=.", ""},
		{"single", "id=..", ""},
		{"single", "id=/", ""}, // ServeMux does not match it either
		{"single", "id=1,x=2", ""},
		{"single", "id=1,id=1", ""},
		{"single", "id", ""},
		{"rest", "path=../a", ""},
		{"rest", "path=a//b", ""},
		{"rest", "path=/a", ""},
		{"dir", "=1,x=1", ""},
	} {
		var values []string
		if tt.values != "" {
			for v := range strings.SplitSeq(tt.values, ",") {
				values = append(values, strings.SplitN(v, "=", 2)...)
			}
		}
		got, err := r.URL(tt.name, values...)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s(%s): got %q, %v", tt.name, tt.values, got, err)
		}
		if err != nil {
			continue
		}
		target := "http://x.com" + got
		if strings.HasPrefix(got, "//") {
			target = "http:" + got
		}
		body := get(r, "GET", target).Body.String()
		for i := 0; i < len(values); i += 2 {
			if want := fmt.Sprintf("%s=%q", values[i], values[i+1]); !strings.Contains(body, want) {
				t.Errorf("%s leads to %q, without %s", got, body, want)
			}
		}
		if body == "" || strings.HasPrefix(body, "404") {
			t.Errorf("%s leads to %q", got, body)
		}
	}
	rt := r.Handle("/renamed", say("")).Named("old").Named("new")
	if _, err := r.URL("old"); err == nil || rt.Name() != "new" {
		t.Errorf("the name is %q", rt.Name())
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	inner := router.New()
	inner.Handle("POST /b", say("b"))
	inner.Handle("i.com/c/{x}", say("c"))
	inner.Mount("/", router.New())
	r := router.New()
	r.Use(tag(""))
	r.Handle("GET /a", say("a")).Named("a")
	r.Group("h.com/g").Mount("/m", inner)
	r.Handle("/not/stripped/", inner)
	var got []string
	err := r.Walk(func(pattern string, rt *router.Route) error {
		got = append(got, pattern)
		return nil
	})
	want := []string{"GET /a", "h.com/g/m/", "POST h.com/g/m/b", "i.com/g/m/c/{x}", "h.com/g/m/", "/not/stripped/"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	stop := errors.New("stop")
	if err := r.Walk(func(pattern string, rt *router.Route) error {
		if rt.Pattern() == "POST /b" {
			if rt.Handler() == nil || rt.Name() != "" {
				t.Errorf("got %v %q", rt.Handler(), rt.Name())
			}
			return stop
		}
		if h := rt.Handler(); rt.Pattern() == "h.com/g/m/" && h != http.Handler(inner) {
			t.Errorf("got %T", h)
		}
		return nil
	}); err != stop {
		t.Errorf("got %v", err)
	}
}

// Registering while serving is not fast, but safe.
func TestConcurrently(t *testing.T) {
	t.Parallel()
	r := router.New()
	r.HandleDirect("GET /{x}/first", func(x *direct.Exchange) { x.Write(x.PathValue("x")) })
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 50 {
				r.Handle(fmt.Sprintf("GET /%d/%d", i, j), say("")).Named(fmt.Sprint(i, j))
				r.NotFound(say("none"))
				req := httptest.NewRequest("GET", fmt.Sprintf("/v%d/first", i), nil)
				if a, ok := askDirect(r, req); !ok || a.body != fmt.Sprintf("v%d", i) {
					t.Errorf("got %+v", a)
				}
				if a := ask(r, req); a.body != fmt.Sprintf("v%d", i) {
					t.Errorf("got %+v", a)
				}
				if a := ask(r, httptest.NewRequest("GET", fmt.Sprintf("/%d/%d", i, j), nil)); a.status != 200 {
					t.Errorf("got %+v", a)
				}
				r.URL(fmt.Sprint(i, j))
				r.Walk(func(pattern string, rt *router.Route) error { rt.Name(); return nil })
			}
		})
	}
	all.Wait()
}

func TestAllocs(t *testing.T) {
	r := router.New()
	r.HandleDirect("GET /static/path", func(x *direct.Exchange) {})
	r.HandleDirect("GET /users/{id}/posts/{post}", func(x *direct.Exchange) { x.PathValue("post") })
	r.HandleDirect("GET /files/{path...}", func(x *direct.Exchange) { x.PathValue("path") })
	r.HandleDirect("GET h.com/", func(x *direct.Exchange) {})
	inner := router.New()
	inner.HandleDirect("GET /{x}", func(x *direct.Exchange) { x.PathValue("t") })
	r.Mount("/mounted/{t}", inner)
	r.HandleFunc("GET /plain", func(w http.ResponseWriter, r *http.Request) {})
	r.HandleFunc("GET /plain/{x}/{y}", func(w http.ResponseWriter, r *http.Request) {})
	w := nowhere{http.Header{}}
	for _, tt := range []struct {
		target string
		direct bool
		want   float64
	}{
		{"/static/path", true, 0},
		{"/users/7/posts/8", true, 0},
		{"/files/a/b/c", true, 0},
		{"/mounted/x/y", true, 0},
		{"/none", true, 0},
		{"http://h.com/", true, 0},
		{"/plain", false, 0},
		{"/plain/x/y", false, 2}, // SetPathValue's map
	} {
		req := httptest.NewRequest("GET", tt.target, nil)
		var x direct.Exchange
		var c http.Request
		in := wire.Request{Method: req.Method, Target: []byte(req.URL.Path), Path: []byte(req.URL.Path), Host: []byte(req.Host)}
		got := testing.AllocsPerRun(100, func() {
			if tt.direct {
				x.Wire().Reset(in)
				if !r.ServeDirect(&x) {
					t.Fatalf("%s does not take the fast path", tt.target)
				}
				return
			}
			c = *req
			r.ServeHTTP(w, &c)
		})
		if got != tt.want {
			t.Errorf("%s: %v allocations, not %v", tt.target, got, tt.want)
		}
	}
}

// nowhere is a ResponseWriter that allocates nothing.
type nowhere struct{ h http.Header }

func (w nowhere) Header() http.Header         { return w.h }
func (w nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (w nowhere) WriteHeader(int)             {}
