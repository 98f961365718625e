package router

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestParsePattern(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern string
		names   string
		rest    bool
		err     string
	}{
		{"/", "", false, ""}, // nameless
		{"/{$}", "", false, ""},
		{"GET h/{a}/b/{c...}", "a c", true, ""},
		{"/{a}/", "a", false, ""},
		{"/{a}/{b}", "a b", false, ""},
		{"/{a...}/b", "", false, "is not at the end"},
		{"/{a}/{a}", "", false, "there twice"},
		{"/:id", "", false, `:id`},
		{"x", "", false, "without a slash"},
	} {
		var names []string
		rest := false
		p, err := ParsePattern(tt.pattern)
		if err == nil {
			names, rest = p.Wildcards()
		}
		if strings.Join(names, " ") != tt.names || rest != tt.rest || (err == nil) != (tt.err == "") ||
			err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q %v %v", tt.pattern, names, rest, err)
		}
	}
}

// Conflict reports what Handle panics for.
func TestConflictIsHandles(t *testing.T) {
	t.Parallel()
	all := []string{"/", "/a", "/a/", "GET /a/", "POST /a/", "/{x}", "/{x}/b", "/a/{x}", "GET /a/{x...}", "/{x...}", "/{$}", "h/a", "HEAD /{x}", "GET /{y}"}
	var some []string
	for _, p := range all {
		for _, q := range all {
			first, _ := ParsePattern(p)
			second, _ := ParsePattern(q)
			why := first.Conflict(second)
			if panics := registered(p, q); (why != "") != panics {
				t.Errorf("%s, %s: %q, and Handle panics: %v", p, q, why, panics)
			}
			if why != "" && !slices.Contains(some, why) {
				some = append(some, why)
			}
		}
	}
	if len(some) < 4 {
		t.Errorf("%q", some)
	}
}

func registered(p, q string) (panics bool) {
	defer func() { panics = recover() != nil }()
	r := New()
	r.Handle(p, http.NotFoundHandler())
	r.Handle(q, http.NotFoundHandler())
	return false
}
