package behave

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/middleware"
)

func pagesOf(t *testing.T) func(int) (string, []byte) {
	t.Helper()
	f, err := middleware.RefusalPages(&middleware.ErrorPagesOptions{Pages: map[int]*middleware.ErrorPage{
		4: {Body: []byte("<p>{status} {text} {request_id}"), Template: true}, 414: nil, 431: {Type: "text/x", Body: []byte("fields")}, 5: {Body: []byte(strings.Repeat("5", 300<<10))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What is refused before there is a request has the page of its status, a whole response after
// which the connection ends.
func TestRefusalPage(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, RefusalPage: pagesOf(t)})
		for sent, want := range map[string]string{
			"GET\r\n\r\n": "400 text/html; charset=utf-8 <p>400 Bad Request ", "GET / HTTP/1.1\r\n\r\n": "400 text/html; charset=utf-8 <p>400 Bad Request ",
			"GET /" + strings.Repeat("a", 70<<10) + " HTTP/1.1\r\n\r\n":      "414 text/plain; charset=utf-8 414 Request URI Too Long: request line too long",
			"GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("a", 70<<10): "431 text/x fields",
			"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n":   "501 text/html; charset=utf-8 " + strings.Repeat("5", 300<<10),
			"GET / HTTP/2.1\r\nHost: a\r\n\r\n":                              "505 text/html; charset=utf-8 " + strings.Repeat("5", 300<<10),
		} {
			for _, slowly := range []bool{false, true} {
				if slowly && len(sent) > 1000 {
					continue
				}
				c := ts.Dial()
				if slowly {
					c.SendSlowly(sent, 1)
				} else {
					c.SendAside(sent)
				}
				res, body := c.Response("GET")
				got := res.Status[:4] + res.Header.Get("Content-Type") + " " + body
				if !strings.HasPrefix(got, want) || len(got) > len(want)+80 || !res.Close || res.ContentLength < 0 {
					t.Errorf("%.40q: %.100q, not %.100q", sent, got, want)
				}
				c.Close()
			}
		}
	})
}

// A client that has sent HEAD gets the head of the page and nothing else, whatever follows.
func TestRefusalPageHEAD(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, RefusalPage: pagesOf(t)})
		for sent, length := range map[string]string{
			"HEAD / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\nGET / HTTP/1.1\r\n\r\n": "19",
			"HEAD / HTTP/2.1\r\nHost: a\r\n\r\n":                                 "307200",
			"HEAD\r\n\r\n":                                                       "", // it has no method
			"head / HTTP/1.1\r\n\r\n":                                            "", // case matters
		} {
			head, body, ok := strings.Cut(ts.Exchange(sent, false), "\r\n\r\n")
			if !ok || (body == "") != (length != "") || !strings.Contains(head, "\r\nContent-Length: "+length) ||
				!strings.Contains(head, "\r\nConnection: close") {
				t.Errorf("%q: %q %.100q", sent, head, body)
			}
		}
	})
}

// A function that panics, or returns no media type, leaves the server's own answer.
func TestRefusalPagePanics(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(int) (string, []byte){
		"panics": func(int) (string, []byte) { panic("p") }, "nothing": func(int) (string, []byte) { return "", nil },
		"no type": func(int) (string, []byte) { return "", []byte("x") }, "a bad type": func(int) (string, []byte) { return "a\r\nb: c", []byte("x") },
	} {
		t.Run(name, func(t *testing.T) {
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				ts := engines.Start(t, &chert.Server{Engine: e, RefusalPage: f})
				if got := ts.Exchange("GET\r\n\r\n", false); !strings.HasSuffix(got, "\r\n\r\n400 Bad Request: malformed method") {
					t.Errorf("got %q", got)
				}
				if log := ts.Log.String(); (log != "") != (name == "panics") {
					t.Errorf("log is %q", log)
				}
			})
		})
	}
}

// A head that does not come in time, too.
func TestBubbleRefusalPageLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ts, m := engines.StartMemory(t, &chert.Server{RefusalPage: pagesOf(t), ReadHeaderTimeout: time.Second})
		c := m.Patient(t)
		c.Send("GET / HT")
		if res, body := c.Response("GET"); res.StatusCode != 408 || body != "<p>408 Request Timeout " {
			t.Errorf("%v %q", res, body)
		}
		if log := ts.Log.String(); log != "" {
			t.Errorf("log is %q", log)
		}
	})
}
