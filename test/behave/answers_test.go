package behave

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// tail is a request that is served last, if the connection is kept so far.
const tail = "GET /tail HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

func TestAnswers(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := answerer(t, e)
		for i, tt := range answers {
			if tt.want == "" || e == engines.NetHTTP && strings.HasPrefix(tt.why, unlike) {
				continue
			}
			req := "GET " + pathOf(i) + " HTTP/1.1\r\nHost: h\r\n\r\n"
			for _, slowly := range []bool{false, true} {
				c := ts.Dial()
				if slowly {
					// One at a time: the server may close before the second is
					// sent.
					c.SendSlowly(req, 1)
					c.CloseWrite()
				} else {
					c.Send(req + tail)
				}
				got := servertest.Undated(c.UpToEnd())
				c.Close()
				if tt.want != got && !strings.HasPrefix(got, tt.want+"HTTP/1.1 200 OK\r\n") {
					t.Errorf("%s (slowly=%v):\ngot  %s\nwant %s", tt.why, slowly, servertest.Brief(got), servertest.Brief(tt.want))
				}
			}
		}
	})
}

// TestAnswersAsNetHTTP makes every handler respond to every kind of request and
// compares the bytes with net/http's, including whether the connection is kept.
func TestAnswersAsNetHTTP(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ours, theirs := answerer(t, e), answerer(t, engines.NetHTTP)
		for i, tt := range answers {
			if strings.HasPrefix(tt.why, unlike) {
				continue
			}
			for _, method := range []string{"GET", "HEAD", "POST"} {
				for _, version := range []string{"1.0", "1.1"} {
					for _, lines := range []string{"", "Connection: close\r\n", "Connection: keep-alive\r\n"} {
						if version == "1.0" && strings.HasPrefix(tt.want, "HTTP/1.1 1") {
							continue // RFC 9110 section 15.2: no 1xx to 1.0; net/http sends them
						}
						body := ""
						if method == "POST" {
							lines += "Content-Length: 4\r\n"
							body = "body"
						}
						req := fmt.Sprintf("%s %s HTTP/%s\r\nHost: h\r\n%s\r\n%s", method, pathOf(i), version, lines, body)
						got, want := servertest.Undated(ours.Exchange(req+tail, false)), servertest.Undated(theirs.Exchange(req+tail, false))
						if got != want {
							t.Errorf("%s: %s HTTP/%s %q:\ngot  %s\nwant %s", tt.why, method, version, lines, servertest.Brief(got), servertest.Brief(want))
						}
					}
				}
			}
		}
	})
}

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
