package behave

import (
	"io"
	"net/http"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
)

func TestHello(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "Hello, "+r.URL.Path)
		})})
		c := ts.Dial()
		for range 3 {
			c.Send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
			if res, body := c.Response("GET"); res.StatusCode != 200 || body != "Hello, /x" || res.ContentLength != 9 {
				t.Fatalf("got %v %q", res, body)
			}
		}
	})
}
