package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// requestLine is what a line of the access log holds, in both formats.
type requestLine struct {
	Time, Level, Msg           string
	Method, Host, Path, Remote string
	Status                     int
	Bytes                      int64
	Duration                   float64
}

// parseJSON is strict: a field this test does not know is an error.
func parseJSON(line string) (requestLine, error) {
	var r requestLine
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r)
	return r, err
}

// parseText reads key=value pairs whose values may be quoted as in Go, by way of JSON.
func parseText(line string) (requestLine, error) {
	fields := make(map[string]any)
	for line != "" {
		key, rest, ok := strings.Cut(line, "=")
		if !ok {
			return requestLine{}, fmt.Errorf("no = in %q", line)
		}
		value, after, _ := strings.Cut(rest, " ")
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return requestLine{}, err
			}
			value, _ = strconv.Unquote(quoted)
			after = strings.TrimPrefix(rest[len(quoted):], " ")
		}
		fields[key], line = value, after
		if key == "status" || key == "bytes" || key == "duration" {
			fields[key] = json.Number(value)
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return requestLine{}, err
	}
	return parseJSON(string(b))
}

func TestLogFormats(t *testing.T) {
	needSignals(t)
	parsers := map[string]func(string) (requestLine, error){"json": parseJSON, "text": parseText}
	for format, parse := range parsers {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			p := start(t, folder(t, map[string]string{"f": "12345"}), "--listen", "127.0.0.1:0", "--log", format)
			c := newClient(t, "")
			get(t, c, p.urls[0]+"f?secret=1")
			get(t, c, p.urls[0]+"a%0amsg=forged%20%22b")
			res, err := c.Head(p.urls[0] + "f")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			p.signal(syscall.SIGTERM)
			p.waitFor(exitOK)

			want := []requestLine{
				{Method: "GET", Path: "/f", Status: 200, Bytes: 5},
				{Method: "GET", Path: "/a\nmsg=forged \"b", Status: 404, Bytes: 19},
				{Method: "HEAD", Path: "/f", Status: 200},
			}
			lines := strings.Split(strings.TrimSuffix(p.stderr.String(), "\n"), "\n")
			if len(lines) != len(want) {
				t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), p.stderr.String())
			}
			for i, line := range lines {
				got, err := parse(line)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if got.Time == "" || got.Level != "INFO" || got.Msg != "request" ||
					got.Duration <= 0 || got.Duration > patience.Seconds() || !strings.HasPrefix(got.Remote, "127.0.0.1:") {
					t.Errorf("%s: a common field is wrong", line)
				}
				got.Time, got.Level, got.Msg, got.Remote, got.Duration = "", "", "", "", 0
				if "http://"+got.Host+"/" != p.urls[0] {
					t.Errorf("%s: the host is not that of %s", line, p.urls[0])
				}
				got.Host = ""
				if got != want[i] {
					t.Errorf("got  %+v\nwant %+v", got, want[i])
				}
			}
		})
	}
}

// logged is h behind a front that logs to l.
func logged(l *slog.Logger, h http.Handler) *front {
	f := &front{}
	f.replace(newGeneration(h, l))
	return f
}

// logOf serves one request through h and returns its line.
func logOf(t *testing.T, w http.ResponseWriter, h http.HandlerFunc) requestLine {
	t.Helper()
	var out bytes.Buffer
	func() {
		defer func() { recover() }() // of the panics that h is about
		logged(slog.New(slog.NewJSONHandler(&out, nil)), h).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}()
	line, err := parseJSON(out.String())
	if err != nil {
		t.Fatalf("%s: %v", out.String(), err)
	}
	return line
}

func TestLoggedStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		bytes  int64
		h      http.HandlerFunc
	}{
		{"nothing written", 200, 0, func(http.ResponseWriter, *http.Request) {}},
		{"body only", 200, 2, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }},
		{"first status counts", 404, 0, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			w.WriteHeader(200)
		}},
		{"informational first", 204, 0, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(204)
		}},
		{"panic before an answer", 0, 0, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"panic after", 200, 2, func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "ok")
			panic(http.ErrAbortHandler)
		}},
	}
	for _, tt := range tests {
		line := logOf(t, httptest.NewRecorder(), tt.h)
		if line.Status != tt.status || line.Bytes != tt.bytes {
			t.Errorf("%s: %d, %d bytes; want %d, %d", tt.name, line.Status, line.Bytes, tt.status, tt.bytes)
		}
	}
}

// fastWriter stands for a connection that can send a file by itself.
type fastWriter struct {
	*httptest.ResponseRecorder
	from io.Reader
}

func (w *fastWriter) ReadFrom(r io.Reader) (int64, error) {
	w.from = r
	return io.Copy(w.ResponseRecorder, r)
}

func TestLogKeepsReadFrom(t *testing.T) {
	t.Parallel()
	w := &fastWriter{ResponseRecorder: httptest.NewRecorder()}
	src := io.LimitReader(strings.NewReader("0123456789"), 4)
	line := logOf(t, w, func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, src) })
	if w.from != src {
		t.Error("the connection did not get the source itself")
	}
	if line.Bytes != 4 || line.Status != 200 {
		t.Errorf("%d, %d bytes", line.Status, line.Bytes)
	}
}

func TestLogKeepsFlushAndHijack(t *testing.T) {
	t.Parallel()
	flushed := make(chan struct{})
	h := http.NewServeMux()
	h.HandleFunc("/flush", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-flushed // the client has the first line before the handler is done
	})
	h.HandleFunc("/hijack", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(c, "HTTP/1.1 299 Mine\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		c.Close()
	})
	srv := httptest.NewServer(logged(slog.New(slog.DiscardHandler), h))
	defer srv.Close()
	c := newClient(t, "")
	res, err := c.Get(srv.URL + "/flush")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "a\n" {
		t.Errorf("%q %v", line, err)
	}
	close(flushed)
	if status, _ := get(t, c, srv.URL+"/hijack"); status != 299 {
		t.Errorf("status %d", status)
	}
}
