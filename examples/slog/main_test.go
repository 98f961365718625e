package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
)

func TestMain(m *testing.M) { engines.Main(m) }

type hf = http.HandlerFunc

// entry is a line of the log.
type entry struct {
	Level, Msg, Method, Path, Pattern, From string
	Status                                  int
	Bytes                                   int64
	Took                                    time.Duration
}

// lines is a log that can be waited on.
type lines chan []byte

func (l lines) Write(p []byte) (int, error) { l <- append([]byte(nil), p...); return len(p), nil }

func logged(h http.Handler) (http.Handler, lines) {
	l := make(lines, 100)
	return logging(slog.New(slog.NewJSONHandler(l, nil)), h), l
}

func (l lines) next(t *testing.T) (e entry) {
	t.Helper()
	if err := json.Unmarshal(engines.Await(t, l, "a line of the log"), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLines(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		h, l := logged(handler())
		s := e.Start(t, h)
		for _, c := range []struct {
			method, path, answer string
			want                 entry
		}{
			{"GET", "/", "hello\n", entry{Level: "INFO", Pattern: "GET /{$}", Status: 200, Bytes: 6}},
			{"HEAD", "/", "", entry{Level: "INFO", Pattern: "GET /{$}", Status: 200, Bytes: 6}},
			{"GET", "/items/7", "item 7\n", entry{Level: "INFO", Pattern: "GET /items/{id}", Status: 200, Bytes: 7}},
			{"GET", "/nowhere", "404 page not found\n", entry{Level: "INFO", Status: 404, Bytes: 19}},
			{"PUT", "/", "Method Not Allowed\n", entry{Level: "INFO", Status: 405, Bytes: 19}},
		} {
			s.Expect(t, c.method, c.path, "", c.want.Status, c.answer)
			got := l.next(t)
			if !strings.HasPrefix(got.From, "127.0.0.1:") || got.Took <= 0 {
				t.Errorf("%s: %+v", c.path, got)
			}
			got.From, got.Took = "", 0
			c.want.Msg, c.want.Method, c.want.Path = "request", c.method, c.path
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		}
		if res, err := s.Client.Get(s.URL + "/panic"); err == nil {
			t.Errorf("panic: got %s", res.Status)
		}
		if got := l.next(t); got.Level != "ERROR" || got.Status != 0 || got.Path != "/panic" {
			t.Errorf("panic: %+v", got)
		}
	})
}

// The abilities of a ResponseWriter pass through the recorder.
func TestThrough(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		flushed := make(chan struct{})
		h, l := logged(hf(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			switch r.URL.Path {
			case "/flush":
				w.WriteHeader(http.StatusEarlyHints)
				if err := rc.Flush(); err != nil {
					t.Error(err)
				}
				<-flushed
				io.WriteString(w, "end")
			case "/hijack":
				c, rw, err := rc.Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				io.WriteString(rw, "HTTP/1.0 200 OK\r\n\r\nhijacked")
				rw.Flush()
			case "/file":
				http.ServeFile(w, r, "main.go")
			}
			if err := rc.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil && r.URL.Path != "/hijack" {
				t.Error(err)
			}
		}))
		s := e.Start(t, h)
		res, err := s.Client.Get(s.URL + "/flush")
		if err != nil {
			t.Fatal(err)
		}
		close(flushed) // the head has arrived, so Flush works
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if got := l.next(t); string(b) != "end" || got.Status != 200 || got.Bytes != 3 {
			t.Errorf("flush: %q, %+v", b, got)
		}
		s.Expect(t, "GET", "/hijack", "", 200, "hijacked")
		l.next(t)
		_, text := s.Do(t, "GET", "/file", nil)
		if got := l.next(t); got.Bytes != int64(len(text)) || len(text) == 0 {
			t.Errorf("file: %d bytes, %+v", len(text), got)
		}
	})
}

func TestSame(t *testing.T) {
	engines.Same(t, func() http.Handler {
		h, _ := logged(handler())
		return h
	}, nil,
		"GET / HTTP/1.1\nHost: h\n\n",
		"HEAD / HTTP/1.1\nHost: h\n\n",
		"GET /items/7 HTTP/1.0\n\n",
		"GET /nowhere HTTP/1.1\nHost: h\n\n",
		"PUT / HTTP/1.1\nHost: h\n\n",
		"GET /panic HTTP/1.1\nHost: h\n\n",
	)
}
