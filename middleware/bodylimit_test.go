package middleware

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
)

func TestBodyLimit(t *testing.T) {
	echo := direct.HandlerFunc(func(x *direct.Exchange) { x.Write(x.Body()) })
	ways(t, BodyLimit(&BodyLimitOptions{MaxSize: 5}), echo, func(t *testing.T, do func(r *http.Request) answer) {
		for body, status := range map[string]int{"": 200, "12345": 200, "123456": 413} {
			a := do(request("POST", "/", body))
			if a.Status != status || status == 200 && a.Body != body {
				t.Errorf("%q: got %v", body, a)
			}
		}
	})
	called := false
	h := BodyLimit(&BodyLimitOptions{MaxSize: 5})(hf(func(w http.ResponseWriter, r *http.Request) { called = true }))
	if a := plain(h, request("POST", "/", "123456")); a.Status != 413 || called {
		t.Errorf("the handler was called, got %v", a)
	}
	for _, tt := range []struct {
		o      *BodyLimitOptions
		size   int
		status int
	}{{nil, 1 << 20, 200}, {nil, 1<<20 + 1, 413}, {&BodyLimitOptions{}, 1<<20 + 1, 413}, {&BodyLimitOptions{MaxSize: -1}, 1<<20 + 1, 200}} {
		if a := plain(BodyLimit(tt.o)(plainHello), request("POST", "/", strings.Repeat("x", tt.size))); a.Status != tt.status {
			t.Errorf("%+v: a body of %d bytes: got %v", tt.o, tt.size, a)
		}
	}
}

// A body of unknown length is cut off, also inside of other writers.
func TestBodyLimitChunked(t *testing.T) {
	h := Chain(hf(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			http.Error(w, "cut", http.StatusRequestEntityTooLarge)
			return
		}
		fmt.Fprint(w, len(b))
	}), Recover(nil), BodyLimit(&BodyLimitOptions{MaxSize: 1000}))
	servers(t, h, func(t *testing.T, url string, c *http.Client) {
		for n, want := range map[int]string{1000: "200 1000", 1001: "413 cut\n"} {
			res, err := c.Post(url, "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", n))))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if got := fmt.Sprintf("%d %s", res.StatusCode, b); got != want {
				t.Errorf("%d: got %q", n, got)
			}
		}
	})
}

// So is the body of a request to a direct handler on the ordinary path.
func TestBodyLimitDirectHandler(t *testing.T) {
	h := BodyLimit(&BodyLimitOptions{MaxSize: 1000})(direct.HandlerFunc(func(x *direct.Exchange) { fmt.Fprint(x, len(x.Body())) }))
	servers(t, h, func(t *testing.T, url string, c *http.Client) {
		for n, want := range map[int]string{1000: "200 1000", 1001: "413 Request Entity Too Large\n"} {
			res, err := c.Post(url, "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", n))))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if got := fmt.Sprintf("%d %s", res.StatusCode, b); got != want {
				t.Errorf("%d: got %q", n, got)
			}
		}
	})
}

// A client does not lift limits by a method: only an extended CONNECT begins a tunnel.
func TestBodyLimitConnect(t *testing.T) {
	t.Parallel()
	for _, extended := range []bool{false, true} {
		r := request(http.MethodConnect, "/", strings.Repeat("x", 100))
		r.ProtoMajor, r.ProtoMinor, r.ContentLength = 2, 0, -1
		if extended {
			r.Header[":protocol"] = []string{"websocket"}
		}
		var err error
		plain(BodyLimit(&BodyLimitOptions{MaxSize: 10})(hf(func(w http.ResponseWriter, r *http.Request) {
			_, err = io.ReadAll(r.Body)
		})), r)
		if (err == nil) != extended {
			t.Errorf("extended %v: %v", extended, err)
		}
	}
}
