package middleware

import (
	"bytes"
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
		x.SetField("Etag", `"of what is not there"`)
		x.WriteString("half")
		if string(x.Path) == "/panic" {
			panic(errors.New("on\npurpose"))
		}
		if string(x.Path) == "/abort" {
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
	// What the handler had set for its answer is not the 500's.
	a := plain(mw(hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Content-Encoding", "br")
		w.Header().Set("X-Other", "stays")
		panic(1)
	})), request("GET", "/", ""))
	if a.Status != 500 || a.Header.Get("Content-Encoding") != "" || a.Header.Get("Content-Length") != "22" || a.Header.Get("X-Other") != "stays" || len(seen) != 1 {
		t.Errorf("got %v, %v", a, seen)
	}
	// nil is a panic of its own.
	if a := plain(mw(hf(func(http.ResponseWriter, *http.Request) { panic(nil) })), request("GET", "/", "")); a.Status != 500 {
		t.Errorf("got %v", a)
	}
	// An answer that has begun cannot be taken back: the client must be able to tell.
	mw = Recover(&RecoverOptions{Handle: func(any, []byte) {}})
	servers(t, mw(hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hijack" {
			c, rw, _ := http.NewResponseController(w).Hijack()
			defer c.Close()
			rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
			rw.Flush()
			panic("after Hijack")
		}
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		panic("late")
	})), func(t *testing.T, url string, c *http.Client) {
		res, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("%d %q looks whole", res.StatusCode, b)
		}
		res, err = c.Get(url + "/hijack")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "ok" {
			t.Errorf("%q, %v", b, err)
		}
	})
}
