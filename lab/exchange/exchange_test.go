package exchange

import (
	"io"
	"net"
	"strings"
	"testing"
)

// serve answers every connection with raw as soon as it has read all of want, and then ends its side if it is to.
func serve(t *testing.T, want, raw string, closing bool) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		want := strings.ReplaceAll(want, "HOST", l.Addr().String())
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
			return
		}
		io.WriteString(c, raw)
		if !closing {
			io.Copy(io.Discard, c)
		}
	}()
	return l.Addr().String()
}

func TestFetch(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n"
	const raw = head + "\r\nHello, World!"
	const closing = head + "Connection: close\r\n\r\nHello, World!"
	const get = "GET / HTTP/1.1\r\nHost: HOST\r\n"
	tests := []struct {
		name      string
		request   Request
		want, raw string
		size      int
	}{
		{"get", Get("/"), get + "\r\n", raw, len(raw)},
		{"post", Request{Method: "POST", Path: "/form?id=7", Type: "text/plain", Body: "flint"},
			"POST /form?id=7 HTTP/1.1\r\nHost: HOST\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nflint", raw, len(raw)},
		{"close", Request{Method: "GET", Path: "/", Close: true}, get + "Connection: close\r\n\r\n", closing, len(closing)},
		{"pipelined", Request{Method: "GET", Path: "/", Pipeline: 3}, strings.Repeat(get+"\r\n", 3), strings.Repeat(raw, 3), len(raw)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Fetch(t.Context(), serve(t, tt.want, tt.raw, tt.request.Close), tt.request)
			want := OK("text/plain", "Hello, World!")
			want.Size = tt.size
			if err != nil || got != want {
				t.Errorf("Fetch = %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestFetchRefuses(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: HOST\r\n"
	const empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
	tests := []struct {
		name      string
		request   Request
		want, raw string
		message   string
	}{
		{"closes", Get("/"), get + "\r\n", empty + "Connection: close\r\n\r\n", "after its answer: true, want false"},
		{"does not close", Request{Method: "GET", Path: "/", Close: true}, get + "Connection: close\r\n\r\n", empty + "\r\n", "after its answer: false, want true"},
		{"a second answer that differs", Request{Method: "GET", Path: "/", Pipeline: 2}, strings.Repeat(get+"\r\n", 2),
			empty + "\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answer 2 of 2 is not the first one"},
		{"one answer too few", Request{Method: "GET", Path: "/", Pipeline: 2}, strings.Repeat(get+"\r\n", 2), empty + "\r\n", "answer 2 of 2: unexpected EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Fetch(t.Context(), serve(t, tt.want, tt.raw, true), tt.request)
			if err == nil || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("Fetch = %v, want %q", err, tt.message)
			}
		})
	}
}

func TestDiffers(t *testing.T) {
	want := Answer{Status: 200, Type: "text/plain", Length: 13, Body: "Hello, World!", Size: 150}
	tests := []struct {
		name   string
		change func(*Answer)
		same   bool
	}{
		{"equal", func(*Answer) {}, true},
		{"another size", func(a *Answer) { a.Size = 120 }, true},
		{"status", func(a *Answer) { a.Status = 404 }, false},
		{"type", func(a *Answer) { a.Type = "text/html" }, false},
		{"no type", func(a *Answer) { a.Type = "" }, false},
		{"length unknown", func(a *Answer) { a.Length = -1 }, false},
		{"body", func(a *Answer) { a.Body = "hello, world!" }, false},
	}
	for _, tt := range tests {
		a := want
		tt.change(&a)
		if err := a.Differs(want); (err == nil) != tt.same {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	any := want
	any.Type = ""
	if err := want.Differs(any); err != nil {
		t.Errorf("whichever type: %v", err)
	}
	long := want
	long.Body = strings.Repeat("x", 10<<20)
	if err := long.Differs(want); err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "(10485760 bytes)") {
		t.Errorf("a long body: %.1000v", err)
	}
}
