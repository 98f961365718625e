package middleware

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

func headersFor(t *testing.T, set map[string]string) func(http.Handler) http.Handler {
	t.Helper()
	return Must(Headers(&HeadersOptions{Set: set}))
}

// Fields are set, added and removed on every kind of response, on every way.
func TestHeaders(t *testing.T) {
	mw := headersFor(t, map[string]string{"x-one": "new", "X-Gone": "", "Vary": "Origin", "Content-Type": "text/css", "X-More": "m"})
	fields := http.Header{"X-One": {"old", "older"}, "X-Gone": {"1"}, "Vary": {"Accept"}, "Content-Type": {"text/html"}, "X-Own": {"o"}}
	outer := func(next http.Handler) http.Handler {
		return keeps{mw(next), http.Header{"X-Gone": {"outer"}, "X-More": {"outer"}}}
	}
	written := func(status int) direct.Handler {
		return direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetStatus(status)
			for name, values := range fields {
				for _, v := range values {
					x.AddHeader(name, v)
				}
			}
			if status != 304 {
				x.WriteString("body")
			}
		})
	}
	for _, tt := range []struct {
		name   string
		h      direct.Handler
		status int
	}{
		{"written", written(200), 200},
		{"written error", written(500), 500},
		{"written 304", written(304), 304},
		{"ready", direct.NewResponse(404, fields, []byte("body")), 404},
		{"ready redirect", direct.NewResponse(301, fields, nil), 301},
		{"ready 304", direct.NewResponse(304, fields, nil), 304},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ways(t, outer, tt.h, func(t *testing.T, do func(r *http.Request) answer) {
				for range 2 { // the second time what was derived
					a := do(request("GET", "/", ""))
					vary := a.Header["Vary"]
					slices.Sort(vary)
					if a.Status != tt.status || !slices.Equal(a.Header["X-One"], []string{"new"}) || a.Header["X-Gone"] != nil ||
						!slices.Equal(vary, []string{"Accept", "Origin"}) || !slices.Equal(a.Header["X-More"], []string{"m"}) || a.Header.Get("X-Own") != "o" {
						t.Errorf("%+v", a)
					}
					want := "text/css"
					if tt.status == 304 {
						want = ""
					}
					if got := a.Header.Get("Content-Type"); got != want {
						t.Errorf("Content-Type %q", got)
					}
				}
			})
		})
	}
}

// A handler that writes nothing, and one that sends a file.
func TestHeadersOfOthers(t *testing.T) {
	mw := headersFor(t, map[string]string{"X-Set": "1"})
	if a := plain(mw(hf(func(http.ResponseWriter, *http.Request) {})), request("GET", "/", "")); a.Header.Get("X-Set") != "1" {
		t.Errorf("%+v", a)
	}
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole := wire.NewFileResponse(200, http.Header{"Content-Type": {"text/plain"}}, 9)
	for name, h := range map[string]http.Handler{
		"ready file": direct.HandlerFunc(func(x *direct.Exchange) { x.Wire().SendFileAs(whole, direct.File{File: f, Len: 9}) }),
		"file":       direct.HandlerFunc(func(x *direct.Exchange) { x.SendFile(direct.File{File: f, Len: 9}) }),
		"plain":      hf(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "of a file") }),
	} {
		servers(t, mw(h), func(t *testing.T, url string, c *http.Client) {
			for _, method := range []string{"GET", "HEAD", "GET"} {
				req, _ := http.NewRequest(method, url, nil)
				res, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.Header.Get("X-Set") != "1" || method == "GET" && string(body) != "of a file" || res.ContentLength != 9 {
					t.Errorf("%s, %s: %v %q", name, method, res.Header, body)
				}
			}
		})
	}
}

func TestHeadersErrors(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"": "x", "a b": "x", "Content-Length": "1", "connection": "close", "content-range": "x", "Content-Encoding": "gzip", "content-encoding": "", "Content-Type": "", "X": "a\r\nb"} {
		mw, err := Headers(&HeadersOptions{Set: map[string]string{name: value}})
		refused(t, mw, err, "middleware: Headers: Set: the field ")
	}
	if h := headersFor(t, nil)(hello); h.(direct.HandlerFunc) == nil {
		t.Error("no fields, and yet another handler")
	}
}

// What is derived of a Response is cached.
func TestHeadersAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h := headersFor(t, map[string]string{"X-Set": "1", "X-Gone": ""})(direct.NewResponse(200, nil, []byte("hello"))).(direct.Handler)
	var x direct.Exchange
	r := wire.Request{Method: "GET", Target: []byte("/"), Path: []byte("/"), Fields: wire.FieldsOf(nil)}
	if n := testing.AllocsPerRun(100, func() {
		x.Wire().Reset(r)
		h.ServeDirect(&x)
		x.Wire().Finish()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Rules are for statuses and classes, and apply in order.
func TestHeaderRules(t *testing.T) {
	mw := Must(Headers(&HeadersOptions{Set: map[string]string{"X-A": "first"}, Rules: []HeaderRule{
		{Status: []int{2, 304}, Set: map[string]string{"X-A": "ok"}},
		{Status: []int{404}, Add: map[string][]string{"Link": {"<a>", "<b>"}}, Remove: []string{"x-gone"}},
		{Status: []int{5}, Remove: []string{"X-A"}, Set: map[string]string{"X-Gone": "set after"}},
		{Add: map[string][]string{"X-All": {"1"}}},
	}}))
	for _, tt := range []struct {
		status       int
		a, gone, all string
		links        int
	}{{200, "ok", "g", "1", 1}, {304, "ok", "g", "1", 1}, {301, "first", "g", "1", 1}, {404, "first", "", "1", 3}, {403, "first", "g", "1", 1}, {503, "", "set after", "1", 1}} {
		fields := http.Header{"X-Gone": {"g"}, "Link": {"<own>"}}
		ways(t, mw, direct.NewResponse(tt.status, fields, nil), func(t *testing.T, do func(r *http.Request) answer) {
			a := do(request("GET", "/", ""))
			if a.Header.Get("X-A") != tt.a || a.Header.Get("X-Gone") != tt.gone || a.Header.Get("X-All") != tt.all || len(a.Header["Link"]) != tt.links {
				t.Errorf("%d: %v", tt.status, a.Header)
			}
		})
		ways(t, mw, direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetStatus(tt.status)
			x.SetHeader("X-Gone", "g")
			x.SetHeader("Link", "<own>")
		}), func(t *testing.T, do func(r *http.Request) answer) {
			a := do(request("GET", "/", ""))
			if a.Header.Get("X-A") != tt.a || a.Header.Get("X-Gone") != tt.gone || a.Header.Get("X-All") != tt.all || len(a.Header["Link"]) != tt.links {
				t.Errorf("%d, written: %v", tt.status, a.Header)
			}
		})
	}
	for name, r := range map[string]HeaderRule{
		"a class": {Status: []int{1}}, "a status": {Status: []int{600}}, "added type": {Add: map[string][]string{"Content-Type": {"a/b"}}}, "no value": {Add: map[string][]string{"X": {""}}},
		"removed type": {Remove: []string{"content-type"}}, "framing": {Remove: []string{"Transfer-Encoding"}}, "coding": {Set: map[string]string{"content-encoding": "gzip"}},
		"removed coding": {Remove: []string{"Content-Encoding"}},
	} {
		mw, err := Headers(&HeadersOptions{Rules: []HeaderRule{r}})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		refused(t, mw, err, "middleware: Headers: Rules[0]: ")
	}
}
