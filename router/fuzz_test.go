package router_test

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/router"
)

// This file compares the Router with http.ServeMux: the same patterns are
// registered with both, as far as both take them, and both are asked the same.

// A source makes choices, of the bytes it is given; 0 when there are no more.
type source []byte

func (s *source) n(n int) int {
	if len(*s) == 0 {
		return 0
	}
	c := (*s)[0]
	*s = (*s)[1:]
	return int(c) % n
}

func (s *source) pick(of ...string) string { return of[s.n(len(of))] }

var pathSegments = []string{"a", "b", "ab", "a", "b", "%61", "%2F", "%2f", "a%2Fb", "%2E", "%2e.", "%25", "c%20d", "!", "*", "%C3%A4", "..."}

func (s *source) pattern() string {
	p := s.pick("", "GET ", "GET ", "HEAD ", "POST ", "CONNECT ", "OPTIONS ", "BREW ", "\t", "GET  ")
	p += s.pick("", "", "", "a.com", "b.com")
	names := []string{"x", "y", "z", "ä_1"}
	for range s.n(5) {
		if s.n(2) == 0 {
			i := s.n(len(names))
			p += "/{" + names[i] + "}"
			names = slices.Delete(names, i, i+1)
		} else {
			// The Router refuses a bare asterisk.
			p += "/" + strings.Replace(s.pick(pathSegments...), "*", "%2A", 1)
		}
	}
	end := s.pick("", "/", "/{$}", "/{rest...}", "")
	if end == "" && (p == "" || !strings.Contains(p, "/")) {
		end = "/"
	}
	return p + end
}

// request is a request as it comes over the wire; nil if net/http refuses it.
func (s *source) request() *http.Request {
	target := ""
	for range s.n(6) {
		if s.n(6) == 0 {
			target += "/" + s.pick("", ".", "..", "x", "\"", "ä", "%", "%zz")
		} else {
			target += "/" + s.pick(pathSegments...)
		}
	}
	target += s.pick("", "/")
	if target == "" {
		target = s.pick("/", "*")
	}
	target += s.pick("", "", "?q=%41", "?")
	method := s.pick("GET", "GET", "HEAD", "POST", "PUT", "OPTIONS", "BREW", "CONNECT", "get")
	target = s.pick("", "", "", "", "", "", "http://a.com") + target
	host := s.pick("a.com", "b.com:80", "c.com", "", "A.com", "[::1]:80", "a.com:x:y")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n")))
	if err != nil {
		return nil
	}
	return r
}

// registers reports whether f does not panic.
func registers(f func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	f()
	return
}

var wildcard = regexp.MustCompile(`\{([\pL\d_]+)(\.\.\.)?\}`)

// echo answers with the pattern and the path values.
func echo(pattern string) direct.HandlerFunc {
	return func(x *direct.Exchange) {
		fmt.Fprintf(x, "%q %q %q", pattern, x.Wire().Pattern(), x.PathValue("none"))
		for _, m := range wildcard.FindAllStringSubmatch(pattern, -1) {
			fmt.Fprintf(x, " %s=%q", m[1], x.PathValue(m[1]))
		}
	}
}

// An answer is what is compared.
type answer struct {
	status                   int
	allow, location, pattern string
	body                     string
}

func ask(h http.Handler, r *http.Request) answer {
	r = r.Clone(r.Context())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header().Get("Allow"), w.Header().Get("Location"), r.Pattern, w.Body.String()}
}

// askDirect asks as chert's bridge does; false if the ordinary path has to.
func askDirect(h direct.Handler, r *http.Request) (a answer, ok bool) {
	if !strings.HasPrefix(r.RequestURI, "/") {
		return a, false
	}
	var x direct.Exchange
	x.Wire().Reset(wire.Request{
		Method: r.Method, Target: []byte(r.RequestURI), Path: []byte(r.URL.Path), RawQuery: []byte(r.URL.RawQuery), Host: []byte(r.Host),
	})
	if !h.ServeDirect(&x) {
		return a, false
	}
	f := x.Wire().Finish()
	a = answer{status: f.Status, pattern: x.Wire().Pattern(), body: string(f.Body)}
	for _, f := range f.Fields {
		if f.Name == "Allow" {
			a.allow = f.Value
		}
	}
	return a, true
}

// expected is what the Router makes of ServeMux's answer to r.
func expected(a answer, method string) answer {
	if a.status == 405 {
		all := map[string]bool{"OPTIONS": true}
		for m := range strings.SplitSeq(a.allow, ", ") {
			all[m] = true
		}
		a.allow = strings.Join(slices.Sorted(maps.Keys(all)), ", ")
		if method == "OPTIONS" {
			a.status, a.body = 204, ""
		}
	}
	return a
}

// rightLocation reports whether ours is where ServeMux means to redirect r: to
// the cleaned path, or to that with a slash. It escapes the escapes of the
// first, and cleans the second after decoding.
func rightLocation(r *http.Request, mux, ours string) bool {
	decoded, err := url.PathUnescape(mux)
	if err != nil {
		return false
	}
	query := ""
	if r.URL.RawQuery != "" {
		query = "?" + r.URL.RawQuery
		decoded, _ = url.PathUnescape(strings.TrimSuffix(mux, query))
	}
	want := cleaned(r.URL.EscapedPath())
	if decoded != want && path.Clean(decoded) == cleanedSlash(r.URL.Path) {
		want += "/"
	}
	return ours == want+query
}

// cleaned is what ServeMux makes of a path.
func cleaned(p string) string {
	c := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && c != "/" {
		c += "/"
	}
	return c
}

func cleanedSlash(p string) string { return path.Clean(cleaned(p) + "/") }

func compare(t *testing.T, s source) {
	mux, ours := http.NewServeMux(), router.New()
	var patterns []string
	for range 1 + s.n(8) {
		p := s.pattern()
		ok := registers(func() { mux.Handle(p, echo(p)) })
		if registers(func() { ours.Handle(p, echo(p)) }) != ok {
			t.Fatalf("after %q: ServeMux takes %q: %v, the Router does not agree", patterns, p, ok)
		}
		if ok {
			patterns = append(patterns, p)
		}
	}
	for range 12 {
		r := s.request()
		if r == nil {
			continue
		}
		if r.Method == "CONNECT" && strings.Contains(r.URL.EscapedPath(), "//") {
			// ServeMux has no value for a wildcard that an empty segment
			// matches, and panics when it is asked for.
			ask(ours, r)
			continue
		}
		want, got := expected(ask(mux, r), r.Method), ask(ours, r)
		d, direct := askDirect(ours, r)
		if want.location != "" && rightLocation(r, want.location, got.location) {
			again(t, got)
			if r.Method == "CONNECT" {
				want.pattern = got.pattern // ServeMux has the path there
			}
			want.location, want.body = got.location, got.body
		}
		if got != want {
			t.Fatalf("patterns %q: %s %s of %q:\nServeMux %+v\nRouter   %+v", patterns, r.Method, r.RequestURI, r.Host, want, got)
		}
		if direct && r.Method == "HEAD" && d.status != 200 {
			d.body = got.body // the recorder keeps what a server does not send
		}
		if direct && d != got {
			t.Fatalf("patterns %q: %s %s of %q:\nplain  %+v\ndirect %+v", patterns, r.Method, r.RequestURI, r.Host, got, d)
		}
		if clean := !strings.Contains(r.RequestURI, "%") && got.status != 307 && strings.HasPrefix(r.RequestURI, "/"); clean && !direct && r.Method != "CONNECT" {
			t.Fatalf("patterns %q: %s %s of %q does not take the fast path", patterns, r.Method, r.RequestURI, r.Host)
		}
	}
}

// again checks that a redirect leads to a path of this server.
func again(t *testing.T, a answer) {
	u, err := url.Parse(a.location)
	if err != nil || u.Host != "" || !strings.HasPrefix(a.location, "/") || strings.HasPrefix(a.location, "//") {
		t.Fatalf("a redirect to %q", a.location)
	}
}

func FuzzRouter(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		b := make([]byte, 200)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { compare(t, b) })
}

// What the fuzzer would need long for: many sets of patterns.
func TestLikeServeMux(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		b := make([]byte, 300)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		compare(t, b)
	}
}
