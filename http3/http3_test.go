package http3_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
)

func TestHello(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		io.WriteString(w, r.Proto+" "+r.Method+" "+string(body))
	})})
	c := s.client()
	for _, body := range []string{"", "x", strings.Repeat("long", 100_000)} {
		var res *http.Response
		var err error
		if body == "" {
			res, err = c.Get(s.url("/"))
		} else {
			res, err = c.Post(s.url("/"), "text/plain", strings.NewReader(body))
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		want := "HTTP/3.0 POST " + body
		if body == "" {
			want = "HTTP/3.0 GET "
		}
		if err != nil || string(got) != want {
			t.Fatalf("%v %.50q, %v", res, got, err)
		}
	}
}
