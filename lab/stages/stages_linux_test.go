package stages

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// most is how many lines a stage may have, with all that it imports from here.
const most = 200

func TestShort(t *testing.T) {
	shared := lines(t, "socket/socket_linux.go")
	for stage, files := range map[string][]string{"1": nil, "2": nil, "3": {"loop/loop_linux.go"}, "4": {"loop/loop_linux.go"}} {
		n := lines(t, stage+"/main_linux.go")
		for _, file := range files {
			n += lines(t, file)
		}
		if n >= most {
			t.Errorf("stage %s has %d lines, and %d that all share", stage, n, shared)
		}
		if _, err := os.Stat(filepath.Join(stage, "README.md")); err != nil {
			t.Error(err)
		}
	}
}

func lines(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func TestStages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds four programs")
	}
	for _, tt := range []struct {
		stage string
		keeps bool
	}{{"1", false}, {"2", false}, {"3", true}, {"4", true}} {
		t.Run(tt.stage, func(t *testing.T) {
			t.Parallel()
			spec := rival.Program("stage"+tt.stage, "stages/"+tt.stage)
			spec.Closes = !tt.keeps
			ready, err := rival.Ready(t.Context(), t.TempDir(), []rival.Spec{spec})
			if err != nil {
				t.Fatal(err)
			}
			s, err := rival.Start(t.Context(), ready[0], rival.Room{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			request := exchange.Get("/")
			for _, closes := range []bool{true, false} {
				if request.Close = closes; !closes && !tt.keeps {
					continue
				}
				answer, err := exchange.Fetch(t.Context(), s.Addr, request)
				if err == nil {
					err = answer.Differs(exchange.OK("text/plain", work.Hello))
				}
				if err != nil {
					t.Errorf("closing %t: %v", closes, err)
				}
			}
			inPieces(t, s.Addr)
			tooLarge(t, s.Addr)
			if tt.keeps {
				pipelined(t, s.Addr)
			}
		})
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// inPieces sends a request byte by byte.
func inPieces(t *testing.T, addr string) {
	t.Helper()
	c := dial(t, addr)
	for _, b := range []byte(exchange.Get("/").Text(addr)) {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	answered(t, bufio.NewReader(c), 200)
}

// tooLarge sends a head that does not end.
func tooLarge(t *testing.T, addr string) {
	t.Helper()
	c := dial(t, addr)
	const begin = "GET / HTTP/1.1\r\nX: "
	if _, err := io.WriteString(c, begin+strings.Repeat("x", 8<<10-len(begin))); err != nil {
		t.Fatal(err)
	}
	answered(t, bufio.NewReader(c), 431)
}

// pipelined sends so many requests, without reading, that the server's answers do not fit into the sockets.
func pipelined(t *testing.T, addr string) {
	t.Helper()
	const requests = 200_000
	c := dial(t, addr)
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", requests))
		sent <- err
	}()
	r := bufio.NewReaderSize(c, 64<<10)
	for range requests {
		answered(t, r, 200)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func answered(t *testing.T, r *bufio.Reader, status int) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != status {
		t.Fatalf("status %d, %v, want %d", resp.StatusCode, err, status)
	}
}
