package h2_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A client hears 400 before the stream is reset. Go's sends what was only reset with
// PROTOCOL_ERROR again, on new connections until its context ends.
func TestMalformedIsAnswered(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(hello)})
		for name, change := range map[string]func(*http.Request){
			"te":                     func(r *http.Request) { r.Header.Set("Te", "gzip") },
			"an escape that is none": func(r *http.Request) { r.URL.Opaque = "/%zz" },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "GET", s.url("/"), nil)
			if err != nil {
				t.Fatal(err)
			}
			change(req)
			res, err := s.client().Do(req)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			res.Body.Close()
			if res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: %s", name, res.Status)
			}
		}
	})
}
