// Package proof tests that a small server of the lab is correct enough to be measured: that it answers requests in pieces,
// refuses heads that do not end, and survives a client that sends many requests before it reads an answer.
package proof

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/stages/socket"
	"github.com/chert-http/chert/lab/work"
)

// Server tests the one at addr, which keeps connections or does not.
func Server(t *testing.T, addr string, keeps bool) {
	t.Helper()
	request := exchange.Get("/")
	for _, closes := range []bool{true, false} {
		if request.Close = closes; !closes && !keeps {
			continue
		}
		answer, err := exchange.Fetch(t.Context(), addr, request)
		if err == nil {
			err = answer.Differs(exchange.OK("text/plain", work.Hello))
		}
		if err != nil {
			t.Errorf("closing %t: %v", closes, err)
		}
	}
	inPieces(t, addr)
	tooLarge(t, addr)
	if keeps {
		pipelined(t, addr)
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
	if _, err := io.WriteString(c, begin+strings.Repeat("x", socket.MaxHead-len(begin))); err != nil {
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
