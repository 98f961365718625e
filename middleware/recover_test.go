package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
)

func TestRecover(t *testing.T) {
	var log bytes.Buffer
	mw := func(h http.Handler) http.Handler {
		return Chain(h, SecurityHeaders(nil), Recover(&RecoverOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
	}
	h := direct.HandlerFunc(func(x *direct.Exchange) {
		x.SetHeader("Etag", `"of what is not there"`)
		x.WriteString("half")
		if string(x.Path()) == "/panic" {
			x.Wire().SetPath(nil) // as a router's mount does
			panic(errors.New("on\npurpose"))
		}
		if string(x.Path()) == "/abort" {
			panic(http.ErrAbortHandler)
		}
	})
	ways(t, mw, h, func(t *testing.T, do func(r *http.Request) answer) {
		log.Reset()
		a := do(request("GET", "/panic?secret", ""))
		if a.Status != 500 || a.Body != "Internal Server Error\n" || a.Header.Get("Etag") != "" || a.Header.Get("X-Frame-Options") != "DENY" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("got %v", a)
		}
		if s := log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, `panic="on\npurpose" method=GET path=/panic `) || !strings.Contains(s, "recover_test.go") || strings.Contains(s, "secret") {
			t.Errorf("logged %s", s)
		}
		if a := do(request("GET", "/", "")); a.Status != 200 || a.Body != "half" {
			t.Errorf("got %v", a)
		}
		log.Reset()
		if !panics(func() { do(request("GET", "/abort", "")) }) || log.Len() > 0 {
			t.Errorf("ErrAbortHandler does not go on: %s", log.String())
		}
	})
}

func TestRecoverPlain(t *testing.T) {
	var seen []any
	mw := Recover(&RecoverOptions{Handle: func(v any, stack []byte) { seen = append(seen, v) }})
	// Fields of the handler's response are not in the 500.
	a := plain(mw(hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Content-Encoding", "br")
		w.Header().Set("X-Other", "stays")
		panic(1)
	})), request("GET", "/", ""))
	if a.Status != 500 || a.Header.Get("Content-Encoding") != "" || a.Header.Get("Content-Length") != "22" || a.Header.Get("X-Other") != "stays" || len(seen) != 1 {
		t.Errorf("got %v, %v", a, seen)
	}
	// panic(nil) is one too.
	if a := plain(mw(hf(func(http.ResponseWriter, *http.Request) { panic(nil) })), request("GET", "/", "")); a.Status != 500 {
		t.Errorf("got %v", a)
	}
	// A response that has begun cannot be withdrawn: the client must be able to
	// notice.
	mw = Recover(&RecoverOptions{Handle: func(any, []byte) {}})
	servers(t, mw(hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hijack" {
			c, rw, _ := http.NewResponseController(w).Hijack()
			defer c.Close()
			rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
			rw.Flush()
			panic("after Hijack")
		}
		if r.URL.Path == "/copy" {
			io.Copy(w, struct{ io.Reader }{io.MultiReader(strings.NewReader(page), panickingReader{})})
		}
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		panic("late")
	})), func(t *testing.T, url string, c *http.Client) {
		for _, path := range []string{"/", "/copy"} {
			res, err := c.Get(url + path)
			if path == "/copy" && errors.Is(err, io.EOF) {
				continue // nothing had been sent yet
			}
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if b, err := io.ReadAll(res.Body); err == nil {
				t.Errorf("%s: %d %q looks whole", path, res.StatusCode, b)
			}
		}
		res, err := c.Get(url + "/hijack")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "ok" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

type panickingReader struct{}

func (panickingReader) Read([]byte) (int, error) { panic("on purpose") }

// The logged stack is the handler's part: without the frames of the server and the
// runtime.
func TestRecoverStack(t *testing.T) {
	var missing *http.Request
	for _, tt := range []struct {
		name string
		f    func(values []int)
	}{
		{"panic", func([]int) { panic("on purpose") }},
		{"nil pointer", func([]int) { _ = missing.Method }},
		{"index", func(values []int) { _ = values[len(values)] }},
		{"again", func([]int) {
			defer func() { panic(recover()) }()
			panic("on purpose")
		}},
	} {
		var log locked
		read := 0
		mw := Recover(&RecoverOptions{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		h := direct.HandlerFunc(func(*direct.Exchange) { tt.f([]int{1}) })
		check := func(way string) {
			t.Helper()
			var got struct{ Stack string }
			line := log.String()[read:]
			read += len(line)
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("%s, %s: %v", tt.name, way, err)
			}
			first, _, _ := strings.Cut(got.Stack, "\n")
			if !strings.Contains(first, "TestRecoverStack") || !strings.Contains(got.Stack, "/recover_test.go:") {
				t.Errorf("%s, %s: it does not begin with the handler:\n%s", tt.name, way, got.Stack)
			}
			for _, unwanted := range []string{"debug.Stack", "goroutine", "internal/bridge", "http.serverHandler", "recoverer", "httptest"} {
				if strings.Contains(got.Stack, unwanted) {
					t.Errorf("%s, %s: %s is in it:\n%s", tt.name, way, unwanted, got.Stack)
				}
			}
		}
		plain(mw(hf(h.ServeHTTP)), request("GET", "/", ""))
		check("plain")
		directly(t, mw(h), request("GET", "/", ""))
		check("direct")
		servers(t, mw(h), func(t *testing.T, url string, c *http.Client) {
			if res, err := c.Get(url); err == nil {
				res.Body.Close()
			}
			check(t.Name())
		})
	}
	for _, odd := range []string{"", "goroutine 1 [running]:\n", "x", "a\nb\nc\nd", "panic(1)\n"} {
		if got := string(ofHandler([]byte(odd))); got != odd {
			t.Errorf("%q became %q", odd, got)
		}
	}
	// Handle has all of it.
	var whole []byte
	plain(Recover(&RecoverOptions{Handle: func(_ any, stack []byte) { whole = stack }})(hf(func(http.ResponseWriter, *http.Request) { panic(1) })), request("GET", "/", ""))
	if !bytes.HasPrefix(whole, []byte("goroutine ")) {
		t.Errorf("Handle got %s", whole)
	}
}
