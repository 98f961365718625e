package chertest

import (
	"net/http"
	"testing"
)

// A test's handler and its client share variables without a lock: the request
// and the response order them, and the race detector knows that.
func TestRequestsOrder(t *testing.T) {
	var given, got string
	h := hf(func(w http.ResponseWriter, r *http.Request) { got = given + r.URL.Path })
	alike(t, h, func(t *testing.T, s *side) {
		s.Start()
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			given = "given"
			get(t, s.Client(), s.url()+path)
			if got != given+path {
				t.Errorf("got %q", got)
			}
		}
	})
}
