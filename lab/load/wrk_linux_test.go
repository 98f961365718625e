package load

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/measure"
)

// mayRunWrk skips a test, or fails it, if wrk is not there. It returns the cores there are for it.
func mayRunWrk(t *testing.T) []int {
	t.Helper()
	cores, err := measure.Allowed()
	if err != nil {
		t.Skip(err)
	}
	for _, program := range []string{"wrk", "taskset"} {
		if _, err := child.Find(program); err != nil {
			if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	return cores
}

// What wrk sends must be what Fetch sends, or the check of an answer would be of another one.
func TestWrkSendsTheRequest(t *testing.T) {
	cores := mayRunWrk(t)
	tests := []struct {
		name    string
		request exchange.Request
	}{
		{"get", exchange.Get("/")},
		{"post", exchange.Request{Method: "POST", Path: "/form?id=7", Type: "text/plain", Body: "a \"quoted\" \\ line\n\x00"}},
		{"close", exchange.Request{Method: "GET", Path: "/", Close: true}},
		{"pipelined", exchange.Request{Method: "GET", Path: "/", Pipeline: 16}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan string, 1)
			var serving sync.WaitGroup
			serving.Go(func() { answerAll(l, tt.request.Depth(), got) })
			run := Run{Addr: l.Addr().String(), Request: tt.request, Connections: 1, Seconds: 1, Core: cores[0]}
			res, err := run.Wrk(t.Context())
			l.Close()
			serving.Wait()
			if res.Errors.Timeout = 0; err != nil || res.Requests == 0 || res.Errors.Sum() != 0 { // time-outs: a busy machine
				t.Errorf("%+v, %v", res, err)
			}
			want := strings.Repeat(tt.request.Text(l.Addr().String()), tt.request.Depth())
			if text := <-got; normal(text) != normal(want) {
				t.Errorf("wrk sent %q, want %q", text, want)
			}
			if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// wrk requests the paths of an order one after the other, from the given index, and begins again.
func TestWrkKeepsOrder(t *testing.T) {
	cores := mayRunWrk(t)
	dir := t.TempDir()
	order, err := WriteOrder(dir, []string{"/a", "/b", "/c.html"}, []int{2, 0, 0, 1})
	if err != nil || order.Len() != 4 {
		t.Fatal(order, err)
	}
	for from, want := range map[int]string{0: "/c.html /a /a /b /c.html ", 3: "/b /c.html /a /a /b ", 4: "/c.html /a /a /b /c.html "} {
		var got strings.Builder
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got.Len() < len(want) { // one connection: one request at a time
				got.WriteString(r.URL.Path + " ")
			}
		}))
		run := Run{Addr: s.Listener.Addr().String(), Request: exchange.Get("/a"), Order: order, From: from, Connections: 1, Seconds: 1, Core: cores[0]}
		res, err := run.Wrk(t.Context())
		s.Close()
		if res.Errors.Timeout = 0; err != nil || res.Requests == 0 || res.Errors.Sum() != 0 {
			t.Errorf("%+v, %v", res, err)
		}
		if got.String() != want {
			t.Errorf("from %d: %q, want %q", from, got.String(), want)
		}
	}
}

// normal is a request in spite of the order of its header fields.
func normal(requests string) string {
	var b strings.Builder
	r := bufio.NewReader(strings.NewReader(requests))
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return b.String()
		}
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(strings.NewReader(string(body)))
		req.Header.Set("User-Agent", "") // none
		req.Write(&b)
	}
}

// answerAll answers every request on every connection, several only when all have arrived, and returns the first
// one's text. A server of net/http would hide which requests were sent at once.
func answerAll(l net.Listener, depth int, got chan<- string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			var text strings.Builder
			r := bufio.NewReader(io.TeeReader(c, &text))
			for first := true; ; first = false {
				closing := false
				for range depth {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					closing = req.Close
				}
				if first {
					select {
					case got <- text.String():
					default:
					}
				}
				answer := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
				if closing {
					answer += "Connection: close\r\n" // or wrk would count the end of the connection as an error
				}
				io.WriteString(c, strings.Repeat(answer+"\r\n", depth))
				if closing {
					return
				}
			}
		}()
	}
}
