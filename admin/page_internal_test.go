package admin

import (
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

// Titles and cells are text, in whatever place of the page they are: clients choose
// targets, methods and routes.
func TestPagesEscape(t *testing.T) {
	t.Parallel()
	const evil = `"><script>alert('&')</script>{{list}}{{title}}`
	const want = `&#34;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;{{list}}{{title}}`
	for name, n := range map[string]int{"rows": 7, "links": 9, "empty": 3, "live": 4} {
		w := httptest.NewRecorder()
		list := table{Title: evil, Root: "../", Columns: []string{evil}, Rows: [][]string{{evil, evil}, {evil, evil}}, Links: name == "links"}
		switch name {
		case "rows", "links":
			list.send(w, 2)
		case "empty":
			list.Empty, list.Rows = evil, nil
			list.send(w, 2)
		case "live":
			h := &handler{}
			h.opts.Title, h.opts.Version = evil, evil
			h.opts.Setup = func() Setup { return Setup{Addrs: []string{evil}} }
			h.page(w, nil)
		}
		body := w.Body.String()
		if strings.Contains(body, "<script>") || strings.Contains(body, "'&'") {
			t.Errorf("%s: %s", name, body)
		}
		if got := strings.Count(body, want); got != n {
			t.Errorf("%s: %d times, want %d", name, got, n)
		}
		if rest := strings.ReplaceAll(body, want, ""); strings.Contains(rest, "{{") {
			t.Errorf("%s: a place was not filled in: %s", name, rest)
		}
	}
}

// The head says which process this is, in a bounded space.
func TestAbout(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	h := &handler{}
	if got, want := h.about(), "on "+host; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	h.opts.Version = "v1.2.3"
	addrs := []string{"http://a/", "http://b/"}
	h.opts.Setup = func() Setup { return Setup{Addrs: addrs} }
	if got, want := h.about(), "v1.2.3 on "+host+" at http://a/, http://b/"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	addrs = slices.Repeat([]string{"http://a/"}, 100)
	if got := h.about(); !strings.HasSuffix(got, " and 92 more") || strings.Count(got, "http:") != 8 {
		t.Errorf("%q", got)
	}
}
