package servertest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// Client is a peer that speaks lines. Its methods fail the test.
type Client struct {
	net.Conn
	R *bufio.Reader
	t testing.TB
}

// NewClient makes one over nc, which is closed at the test's end.
func NewClient(t testing.TB, nc net.Conn) *Client {
	nc.SetDeadline(time.Now().Add(Patience))
	t.Cleanup(func() { nc.Close() })
	return &Client{nc, bufio.NewReader(nc), t}
}

// Send writes s.
func (c *Client) Send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// Want reads s.
func (c *Client) Want(s string) {
	c.t.Helper()
	b := make([]byte, len(s))
	n, err := io.ReadFull(c.R, b)
	if string(b) == s {
		return
	}
	i := 0
	for i < n && b[i] == s[i] {
		i++
	}
	c.t.Fatalf("at byte %d of %d: got %.100q (%v), want %.100q", i, len(s), b[i:n], err, s[i:])
}

// Ended waits for the end of the stream, or a reset, with nothing before it.
func (c *Client) Ended() {
	c.t.Helper()
	if b, err := io.ReadAll(c.R); errors.Is(err, os.ErrDeadlineExceeded) || len(b) > 0 {
		c.t.Fatalf("got %.100q (%v), want the end", b, err)
	}
}

// CloseWrite sends FIN.
func (c *Client) CloseWrite() { c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Reset closes the connection by a reset, which only TCP has.
func (c *Client) Reset() {
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
}
