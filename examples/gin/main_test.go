package main

import (
	"bufio"
	"context"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/examples/internal/engines"
)

func TestMain(m *testing.M) { engines.Main(m) }

func subject() http.Handler { return handler(log.New(io.Discard, "", 0)) }

func TestRoutes(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, subject())
		for _, c := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"GET", "/", "", 200, "hello\n"},
			{"GET", "/users/7", "", 200, `{"id":"7"}`},
			{"POST", "/users", `{"name":"ada","age":36}`, 201, `{"name":"ada","age":36}`},
			{"POST", "/users", `{"age":36}`, 400, `{"error":"Key: 'user.Name' Error:Field validation for 'Name' failed on the 'required' tag"}`},
			{"POST", "/users", ``, 400, `{"error":"EOF"}`},
			{"PUT", "/users", "", 405, "405 method not allowed"},
			{"GET", "/nowhere", "", 404, "404 page not found"},
			{"GET", "/admin", "", 401, ""},
			{"POST", "/upload", "x", 400, "request Content-Type isn't multipart/form-data\n"},
		} {
			s.Expect(t, c.method, c.path, c.body, c.status, c.want)
		}
		s.Expect(t, "GET", "/admin", "", 200, "welcome admin\n", "Authorization", "Basic YWRtaW46c2VjcmV0")
		if res, _ := s.Do(t, "PUT", "/users", nil); res.Header.Get("Allow") != "POST" {
			t.Errorf("Allow is %q", res.Header["Allow"])
		}
	})
}

func TestPanic(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, subject())
		for range 3 {
			s.Expect(t, "GET", "/panic", "", 500, "")
		}
		s.Expect(t, "GET", "/", "", 200, "hello\n")
	})
}

func TestUpload(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, subject())
		for _, n := range []int{0, 1, 5000, 3 << 20} {
			for _, streamed := range []bool{false, true} {
				status, got := s.Upload(t, "/upload", "stone.bin", n, streamed)
				if want := engines.Uploaded("stone.bin", n); status != 200 || got != want {
					t.Errorf("%d bytes, streamed %v: got %d %q, want %q", n, streamed, status, got, want)
				}
			}
		}
		if status, got := s.Upload(t, "/upload", "boulder.bin", 9<<20, true); status != 400 || !strings.Contains(got, "too large") {
			t.Errorf("beyond the limit: got %d %q", status, got)
		}
	})
}

// lines is a log that can be waited on.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// c.Stream uses http.CloseNotifier. It must notify when the client leaves, and
// only then.
func TestCloseNotify(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		said := make(lines, 1)
		s := e.Start(t, handler(log.New(said, "", 0)))
		res, err := s.Client.Get(s.URL + "/ticks")
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(res.Body)
		for _, want := range []string{"event:tick\n", "data:1\n", "\n", "event:tick\n", "data:2\n"} {
			if got, err := r.ReadString('\n'); got != want {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
		}
		select {
		case early := <-said:
			t.Fatalf("the handler ended: %s", early)
		default:
		}
		res.Body.Close() // the rest is not read, so this closes the connection
		if got := engines.Await(t, said, "the handler's end"); got != "ticks: client left: true\n" {
			t.Errorf("got %q", got)
		}
	})
}

// On chert, open streams do not delay a Shutdown, and end whole.
func TestShutdown(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		if e == engines.NetHTTP {
			t.Skip("its handlers are not notified")
		}
		s := e.Start(t, handler(log.New(io.Discard, "", 0)))
		res, err := s.Client.Get(s.URL + "/ticks")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		r := bufio.NewReader(res.Body)
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), engines.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		rest, err := io.ReadAll(r)
		if err != nil || strings.Contains(string(rest), "data:999") {
			t.Errorf("the stream ended with %.100q, %v", rest, err)
		}
	})
}

func TestSame(t *testing.T) {
	engines.Same(t, subject, nil,
		"GET / HTTP/1.1\nHost: h\n\n",
		"HEAD / HTTP/1.1\nHost: h\n\n",
		"GET / HTTP/1.0\n\n",
		"GET /users/7 HTTP/1.1\nHost: h\nConnection: close\n\n",
		"GET /users/ HTTP/1.1\nHost: h\n\n",
		"PUT /users HTTP/1.1\nHost: h\nContent-Length: 3\n\nabc",
		"POST /users HTTP/1.1\nHost: h\nContent-Length: 23\n\n{\"name\":\"ada\",\"age\":36}",
		"POST /users HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n17\n{\"name\":\"ada\",\"age\":36}\n0\n\n",
		"POST /users HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 2\n\n{}",
		"GET /panic HTTP/1.1\nHost: h\n\n",
		"GET /admin HTTP/1.1\nHost: h\n\n",
		"GET /nowhere HTTP/1.1\nHost: h\n\n",
		"GET /source HTTP/1.1\nHost: h\n\n",
		"GET /source HTTP/1.1\nHost: h\nRange: bytes=0-3\n\n",
	)
}
