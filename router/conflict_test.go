package router

import (
	"net/http"
	"slices"
	"testing"

	"github.com/chert-http/chert/internal/pattern"
)

// Conflict reports what Handle panics for.
func TestConflictIsHandles(t *testing.T) {
	t.Parallel()
	all := []string{"/", "/a", "/a/", "GET /a/", "POST /a/", "/{x}", "/{x}/b", "/a/{x}", "GET /a/{x...}", "/{x...}", "/{$}", "h/a", "HEAD /{x}", "GET /{y}"}
	var some []string
	for _, p := range all {
		for _, q := range all {
			first, _ := pattern.Parse(p)
			second, _ := pattern.Parse(q)
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
