package rival

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chert-http/chert/lab/child"
)

func TestFetch(t *testing.T) {
	const raw = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, raw)
		io.Copy(io.Discard, c)
	}()
	got, err := Fetch(t.Context(), l.Addr().String(), "/")
	want := Answer{Status: 200, Type: "text/plain", Length: 13, Body: "Hello, World!", Size: len(raw)}
	if err != nil || got != want {
		t.Errorf("Fetch = %+v, %v, want %+v", got, err, want)
	}
}

func TestFetchRefusesClose(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
	}))
	defer s.Close()
	if _, err := Fetch(t.Context(), s.Listener.Addr().String(), "/"); err == nil || !strings.Contains(err.Error(), "closes") {
		t.Errorf("Fetch = %v", err)
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
}

func TestOpenUnknown(t *testing.T) {
	if _, err := Open(t.Context(), t.TempDir(), []string{"apache"}); err == nil || !strings.Contains(err.Error(), "nethttp, nginx") {
		t.Errorf("Open = %v", err)
	}
}

// A server that cannot start must tell why and leave nothing behind.
func TestStartFailure(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	spec := Spec{Name: "broken", command: func(dir, addr string) (child.Command, error) {
		return child.Command{Args: []string{"sh", "-c", "echo no such option >&2; exit 2"}}, nil
	}}
	_, err := Start(context.Background(), spec, child.AnyCore)
	if err == nil || !strings.Contains(err.Error(), "no such option") {
		t.Errorf("Start = %v", err)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
