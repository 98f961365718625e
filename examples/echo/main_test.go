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
	const json = "application/json"
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, subject())
		for _, c := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"GET", "/", "", 200, "hello\n"},
			{"GET", "/users/7", "", 200, `{"id":7,"name":"","full":false}` + "\n"},
			{"GET", "/users/7?full=true", "", 200, `{"id":7,"name":"","full":true}` + "\n"},
			{"PUT", "/users/7", `{"name":"ada"}`, 200, `{"id":7,"name":"ada","full":false}` + "\n"},
			{"PUT", "/users/7", `{"name":`, 400, `{"message":"unexpected EOF"}` + "\n"},
			{"DELETE", "/users/7", "", 405, `{"message":"Method Not Allowed"}` + "\n"},
			{"GET", "/nowhere", "", 404, `{"message":"Not Found"}` + "\n"},
			{"GET", "/admin", "", 401, `{"message":"Unauthorized"}` + "\n"},
		} {
			s.Expect(t, c.method, c.path, c.body, c.status, c.want, "Content-Type", json)
		}
		s.Expect(t, "GET", "/admin", "", 200, "welcome\n", "Authorization", "Basic YWRtaW46c2VjcmV0")
		if res, _ := s.Do(t, "DELETE", "/users/7", nil); !strings.Contains(res.Header.Get("Allow"), "PUT") {
			t.Errorf("Allow is %q", res.Header["Allow"])
		}
	})
}

func TestPanic(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, subject())
		for range 3 {
			s.Expect(t, "GET", "/panic", "", 500, `{"message":"Internal Server Error"}`+"\n")
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
		if status, _ := s.Upload(t, "/upload", "boulder.bin", 9<<20, true); status != 413 {
			t.Errorf("beyond the limit: got %d", status)
		}
	})
}

// lines is a log that can be waited on.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// The client sees each line before the next is written, compressed or not, and
// the handler ends when the client leaves.
func TestTicks(t *testing.T) {
	for _, coding := range []string{"", "gzip"} {
		t.Run("coding="+coding, func(t *testing.T) {
			engines.Each(t, func(t *testing.T, e engines.Engine) {
				said := make(lines, 1)
				s := e.Start(t, handler(log.New(said, "", 0)))
				if coding == "" {
					s.Client.Transport.(*http.Transport).DisableCompression = true
				}
				res, err := s.Client.Get(s.URL + "/ticks")
				if err != nil {
					t.Fatal(err)
				}
				if res.Uncompressed != (coding == "gzip") {
					t.Errorf("compressed: %v", res.Uncompressed)
				}
				r := bufio.NewReader(res.Body)
				for _, want := range []string{`{"tick":1}`, `{"tick":2}`, `{"tick":3}`} {
					if got, err := r.ReadString('\n'); got != want+"\n" {
						t.Fatalf("got %q, %v, want %q", got, err, want)
					}
				}
				res.Body.Close()
				if got := engines.Await(t, said, "the handler's end"); got != "ticks: context canceled\n" {
					t.Errorf("got %q", got)
				}
			})
		})
	}
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
		if err != nil || strings.Contains(string(rest), `{"tick":999}`) {
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
		"PUT /users/7 HTTP/1.1\nHost: h\nContent-Type: application/json\nContent-Length: 14\n\n{\"name\":\"ada\"}",
		"PUT /users/7 HTTP/1.1\nHost: h\nContent-Type: application/json\nTransfer-Encoding: chunked\n\ne\n{\"name\":\"ada\"}\n0\n\n",
		"PUT /users/7 HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Type: application/json\nContent-Length: 2\n\n{}",
		"PUT /users/7 HTTP/1.1\nHost: h\nContent-Type: text/odd\nContent-Length: 3\n\nabc",
		"POST /upload HTTP/1.1\nHost: h\nContent-Length: 9000000\nConnection: close\n\n",
		"GET /panic HTTP/1.1\nHost: h\n\n",
		"GET /admin HTTP/1.1\nHost: h\n\n",
		"GET /nowhere HTTP/1.1\nHost: h\n\n",
		"GET /source HTTP/1.1\nHost: h\n\n",
		"GET /source HTTP/1.1\nHost: h\nRange: bytes=0-3\n\n",
	)
}
