package chert

import (
	"io"
	"net/http"
	"testing"
)

func TestHello(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		ts := start(t, &Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "Hello, "+r.URL.Path)
		})})
		c := ts.dial()
		for range 3 {
			c.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
			if res, body := c.response("GET"); res.StatusCode != 200 || body != "Hello, /x" || res.ContentLength != 9 {
				t.Fatalf("got %v %q", res, body)
			}
		}
	})
}
