package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/router"
)

// shows responds with the path and the query that it sees.
var shows = direct.HandlerFunc(func(x *direct.Exchange) {
	x.SetHeader("Content-Type", "text/plain")
	x.WriteString(string(x.Path()) + "?" + string(x.RawQuery()))
})

func TestRewrite(t *testing.T) {
	rules := []RewriteRule{
		{`^/old/(?P<id>[0-9]+)$`, "/new/{id}"},
		{`^/q/(?P<a>[^/]*)/(.*)$`, "/search?a={a}&b={2}"},
		{`^/both/(.*)$`, "/s?p={1}&{query}"},
		{`^/none/`, "/n?"},
		{`^/strip(?P<rest>/.*)?$`, "/{rest}"},
		{`^/pre/`, "/x{path}"},
		{`^/twice$`, "/old/1"}, // once
		{`^/alt/(?:(a)|(b))$`, "/alt-{1}-{2}"},
		{`middle`, "/found"},
		{`^/up/(.*)$`, "/in/{1}"},
		{`^/{$`, "/brace"},
	}
	ways(t, Must(Rewrite(&RewriteOptions{Rules: rules})), shows, func(t *testing.T, do func(r *http.Request) answer) {
		for target, want := range map[string]string{
			"/":                       "/?",
			"/old/17":                 "/new/17?",
			"/old/17?q=1&q=2":         "/new/17?q=1&q=2",
			"/old/x":                  "/old/x?",
			"/old/%31":                "/new/1?",
			"/q/a%26b=c/d%20e?x=1":    "/search?a=a%26b%3Dc&b=d%20e",
			"/q/%0d%0aX:1/%3f":        "/search?a=%0D%0AX%3A1&b=%3F",
			"/both/a?x=%20":           "/s?p=a&x=%20",
			"/none/x?y=z":             "/n?",
			"/strip":                  "/?",
			"/strip/a/b/":             "/a/b/?",
			"/strip//evil.example":    "/evil.example?",
			"/strip/%2e%2e/%2e%2e/x":  "/x?",
			"/up/..%2f..%2fetc%2f..":  "/?",
			"/up/%2e%2e%2fadmin":      "/admin?",
			"/up/.":                   "/in/?",
			"/up/a%3fb%23c":           "/in/a?b#c?", // bytes of the path
			"/up/{1}%25":              "/in/{1}%?",  // not expanded again
			"/pre/a":                  "/x/pre/a?",
			"/twice":                  "/old/1?",
			"/alt/b":                  "/alt--b?",
			"/in/the/middle/of?the=q": "/found?the=q",
		} {
			if a := do(request("GET", target, "")); a.Body != want {
				t.Errorf("%s: %q, want %q", target, a.Body, want)
			}
		}
	})
	// Without rules the handler is as it is.
	if h := Must(Rewrite(nil))(hello); h.(direct.HandlerFunc) == nil {
		t.Error("wrapped")
	}
}

// What is outside sees the request as it came, and OPTIONS * is left alone.
func TestRewriteRestores(t *testing.T) {
	h := Must(Rewrite(&RewriteOptions{Rules: []RewriteRule{{".*", "/y?z"}}}))(hello).(direct.Handler)
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: "GET", Target: []byte("/x?q"), Path: []byte("/x"), RawQuery: []byte("q"), Fields: wire.FieldsOf(nil)})
	if !h.ServeDirect(&x) || string(x.Path()) != "/x" || string(x.RawQuery()) != "q" {
		t.Errorf("%s %s", x.Path(), x.RawQuery())
	}
	x.Wire().Drop()
	r := httptest.NewRequest("GET", "/x%2f?q", nil)
	h.ServeHTTP(httptest.NewRecorder(), r)
	if r.URL.String() != "/x%2f?q" {
		t.Error(r.URL)
	}
	seen := ""
	star := Must(Rewrite(&RewriteOptions{Rules: []RewriteRule{{".*", "/y"}}}))(hf(func(_ http.ResponseWriter, r *http.Request) { seen, r.Pattern = r.URL.Path, "p" }))
	r = httptest.NewRequest("OPTIONS", "*", nil)
	star.ServeHTTP(httptest.NewRecorder(), r)
	if seen != "*" {
		t.Errorf("%q", seen)
	}
	r = httptest.NewRequest("GET", "/a", nil)
	star.ServeHTTP(httptest.NewRecorder(), r)
	if seen != "/y" || r.Pattern != "p" {
		t.Errorf("%q %q", seen, r.Pattern)
	}
}

// A path that another handler guards is not reached by a rule, and is left alone where it is
// the client's own.
func TestRewriteNot(t *testing.T) {
	not := func(path string) bool { return strings.HasPrefix(path, "/admin/") }
	ways(t, Must(Rewrite(&RewriteOptions{Rules: []RewriteRule{{"^/x/(.*)$", "/{1}"}}, Not: not})), shows, func(t *testing.T, do func(r *http.Request) answer) {
		for target, want := range map[string]int{"/x/a": 200, "/x/admin/f": 404, "/x/%2e%2e/admin/f": 404, "/x/a%2f..%2f%2fadmin%2ff": 404, "/admin/f": 200} {
			if a := do(request("GET", target, "")); a.Status != want {
				t.Errorf("%s: %d, want %d", target, a.Status, want)
			}
		}
	})
}

// A long path is matched, but not on an event loop.
func TestRewriteLong(t *testing.T) {
	h := Must(Rewrite(&RewriteOptions{Rules: []RewriteRule{{"(a*)*$", "/y"}}}))(shows)
	r := request("GET", "/"+strings.Repeat("a", maxDirectRewrite), "")
	if _, ok := directly(t, h, r); ok {
		t.Error("matched on the loop")
	}
	if a := plain(h, r); a.Body != "/y?" {
		t.Errorf("%q", a.Body)
	}
}

func TestRewriteErrors(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"", "/x", "From is empty"}, {"(", "/x", "From: error parsing regexp: missing closing )"}, {"(?!x)", "/x", "From: error parsing regexp"},
		{"x", "x", `To: "x" does not begin with a slash`}, {"x", "", "does not begin with a slash"}, {"(x)", "{1}", "does not begin with a slash"},
		{"x", "/{1}", "To: {1} is neither a group of From"}, {"(x)", "/{2}", "{2} is neither"}, {"(x)", "/{0}", "{0} is neither"}, {"(x)", "/{01}", "{01} is neither"}, {"(x)", "/{}", "{} is neither"},
		{"(?P<a>x)", "/{b}", "{b} is neither"}, {"x", "/{query}", "{query} is for the query"}, {"x", "/{", "a brace without the other one"}, {"x", "/}", "a brace without the other one"}, {"x", "/?{path", "a brace"},
		{"x", "/a#b", "which no path has"}, {"x", "/a\r\nb", "which no path has"}, {"x", "/a?b c", "is not percent-encoded"},
	} {
		rule := RewriteRule{tt.from, tt.to}
		_, err := Rewrite(&RewriteOptions{Rules: []RewriteRule{{"a", "/"}, rule}})
		if err == nil || !strings.HasPrefix(err.Error(), "middleware: Rewrite: Rules[1]: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt, err, tt.want)
		}
	}
	if _, err := Rewrite(&RewriteOptions{Rules: []RewriteRule{{"^(?<a>x)", "/b c/{a}?{query}"}}}); err != nil {
		t.Error(err)
	}
}

func TestRewriteAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h := Must(Rewrite(&RewriteOptions{Rules: []RewriteRule{{`^/old/(?P<id>[0-9]+)$`, "/new/{id}"}, {`\.php$`, "/gone"}}}))(direct.NewResponse(200, nil, []byte("x"))).(direct.Handler)
	var x direct.Exchange
	r := wire.Request{Method: "GET", Target: []byte("/old/file.html"), Path: []byte("/old/file.html"), Fields: wire.FieldsOf(nil)}
	if n := testing.AllocsPerRun(100, func() {
		x.Wire().Reset(r)
		if !h.ServeDirect(&x) {
			t.Error("declined")
		}
		x.Wire().Drop()
	}); n != 0 {
		t.Errorf("%v allocations for a path that no rule matches", n)
	}
}

// The new path is clean whatever the client sends, is the same on both paths, and has
// what the expression, applied by package regexp, would fill in.
func FuzzRewrite(f *testing.F) {
	for _, p := range []string{"/", "/a/b", "/a/../b", "//", "/a//", "/%2e%2e", "/..", "/a/.", "/a\x00b", "/{1}", "/a/$1", "/?", "/a\\..\\b", "/" + strings.Repeat("../", 50)} {
		f.Add(p)
	}
	from := regexp.MustCompile(`^/([^/]*)(/.*)?$`)
	h := Must(Rewrite(&RewriteOptions{Rules: []RewriteRule{{from.String(), "/in/{2}/{1}"}}}))(shows)
	f.Fuzz(func(t *testing.T, p string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path, r.URL.RawPath = p, ""
		got := plain(h, r)
		want := p
		if m := from.FindStringSubmatch(p); m != nil {
			want = path.Clean("/in/" + m[2] + "/" + m[1])
			seen := strings.TrimSuffix(got.Body, "?")
			if strings.Contains(seen+"/", "/../") || strings.Contains(seen, "//") || !strings.HasPrefix(seen, "/") {
				t.Errorf("%q: %q is not clean", p, seen)
			}
			got.Body = strings.TrimSuffix(seen, "/") + "?"
			if want == "/" {
				want = ""
			}
		}
		if got.Body != want+"?" {
			t.Errorf("%q: %q, want %q", p, got.Body, want+"?")
		}
		if a, ok := directly(t, h, r); ok && strings.TrimSuffix(a.Body, "/?") != strings.TrimSuffix(strings.TrimSuffix(got.Body, "?"), "/") && a.Body != got.Body {
			t.Errorf("%q: direct %q, plain %q", p, a.Body, got.Body)
		}
	})
}

// A percent sign of the new path stands for itself, in a router inside too.
func TestRewriteToPercent(t *testing.T) {
	t.Parallel()
	mux := router.New()
	for _, pattern := range []string{"/of/100%25", "/value/{v}"} {
		mux.Handle(pattern, direct.HandlerFunc(func(x *direct.Exchange) { fmt.Fprintf(x, "%s %s", x.Wire().Pattern(), x.PathValue("v")) }))
	}
	s := chertest.NewServer(Must(Rewrite(&RewriteOptions{Rules: []RewriteRule{
		{From: "^/a$", To: "/of/100%"}, {From: "^/b$", To: "/value/50%"}, {From: "^/c$", To: "/value/%41"},
	}}))(mux))
	defer s.Close()
	for path, want := range map[string]string{"/a": "/of/100%25 ", "/b": "/value/{v} 50%", "/c": "/value/{v} %41", "/of/100%25": "/of/100%25 "} {
		res, body, err := get(t, s.Client(), s.URL+path)
		if err != nil || res.StatusCode != 200 || body != want {
			t.Errorf("%s: %d %q, %v, want %q", path, res.StatusCode, body, err, want)
		}
	}
}
