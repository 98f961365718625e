package static

import (
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chert-http/chert/internal/listing"
)

// locked is a file system with names that may not be read.
type locked struct{ fstest.MapFS }

func (f locked) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "locked") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.MapFS.Open(name)
}

// A person gets a page that says what is wrong and leads on, a program a line of
// text. Caches must not take one for the other.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const (
		html  = "Accept: text/html,application/xhtml+xml,*/*;q=0.8" // a browser that goes to a page
		image = "Accept: image/avif,image/webp,*/*;q=0.8"           // the same for an image
		here  = `<a href="./">`
		up    = `<a href="../">`
		none  = ""
	)
	for _, rules := range [][]Rule{nil, {{Match: "**", Header: map[string]string{"X-Rule": "1"}}}} {
		s := newSite(t, nil, nil)
		s.Handler.Close()
		h, err := NewFS(locked{fstest.MapFS{"a.txt": {Data: []byte("hello")}, "locked": {}}}, &Options{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		s.use(h)
		for _, tt := range []struct {
			method, target, more string
			status               int
			text, link           string // of the page
		}{
			{"GET", "/nope", "", 404, "404 page not found\n", here},
			{"GET", "/dir/nope", "", 404, "404 page not found\n", here},
			{"GET", "/nope/", "", 404, "404 page not found\n", up},
			{"GET", "/", "", 404, "404 page not found\n", none}, // no listing, and nothing above
			{"GET", "/locked", "", 403, "Forbidden\n", here},
			{"POST", "/a.txt", "", 405, "Method Not Allowed\n", here},
			{"GET", "/a.txt", "Range: bytes=9-", 416, "Requested Range Not Satisfiable\n", here},
			{"GET", "/a.txt", `If-Match: "x"`, 412, "Precondition Failed\n", here},
		} {
			ask := func(accept string) reply {
				lines := []string{accept}
				if tt.more != "" {
					lines = append(lines, tt.more)
				}
				r, _ := s.ask(tt.method, tt.target, lines...)
				return r
			}
			r := ask(html)
			if r.status != tt.status || r.head.Get("Content-Type") != "text/html; charset=utf-8" || !strings.HasPrefix(r.head.Get("Vary"), "Accept") ||
				r.head.Get("Content-Security-Policy") != listing.ContentSecurityPolicy || rules != nil && r.head.Get("X-Rule") != "1" ||
				r.head.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.Contains(r.body, http.StatusText(tt.status)) || !strings.Contains(r.body, reasons[tt.status]) || !strings.Contains(r.body, tt.link) || tt.link == none && strings.Contains(r.body, "<a ") {
				t.Errorf("%s %s for a person: %v", tt.method, tt.target, r)
			}
			for _, accept := range []string{image, "Accept: */*", "X-None: 1"} {
				r := ask(accept)
				if r.status != tt.status || r.body != tt.text || r.head.Get("Content-Type") != "text/plain; charset=utf-8" ||
					r.head.Get("Content-Security-Policy") != "" || !strings.HasPrefix(r.head.Get("Vary"), "Accept") {
					t.Errorf("%s %s with %s: %v", tt.method, tt.target, accept, r)
				}
			}
		}
		if r, _ := s.ask("HEAD", "/nope", html); r.status != 404 || r.body != "" || r.head.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("HEAD: %v", r)
		}
	}
}

// What a page is sent with can be set, and a page of one's own goes before it.
func TestRefusalRules(t *testing.T) {
	t.Parallel()
	const html = "Accept: text/html"
	s := newSite(t, map[string]string{"404.html": "own"}, &Options{NotFound: "404.html",
		Rules: []Rule{{Match: "**", Header: map[string]string{"Content-Security-Policy": "default-src 'self'"}}}})
	if r, _ := s.ask("GET", "/nope", html); r.status != 404 || r.body != "own" {
		t.Errorf("got %v", r)
	}
	for _, lines := range [][]string{{html}, {html, "Range: bytes=9-"}} {
		method := map[bool]string{true: "POST", false: "GET"}[len(lines) == 1]
		r, _ := s.ask(method, "/404.html", lines...)
		if all := r.head["Content-Security-Policy"]; r.status < 400 || len(all) != 1 || all[0] != "default-src 'self'" {
			t.Errorf("%s %q: %v", method, lines, r)
		}
	}
}

// Vary names each field once, also where the content's own has it.
func TestRefusalVary(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"d/a.txt": "a"}, &Options{Listing: true})
	for target, want := range map[string]string{"/d/": "Accept, Accept-Encoding", "/d/a.txt": "Accept-Encoding, Accept"} {
		ok, _ := s.ask("GET", target, "Accept: text/html")
		r, _ := s.ask("GET", target, "Accept: text/html", `If-Match: "x"`)
		if got := r.head.Values("Vary"); ok.status != 200 || r.status != 412 || len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %d, then %d and Vary %q, want %q", target, ok.status, r.status, got, want)
		}
	}
}
