package servertest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Client is a client that sends and reads raw bytes. Its methods fail the test.
type Client struct {
	net.Conn
	R       *bufio.Reader
	T       testing.TB
	patient atomic.Bool
}

// Wrap makes a Client of nc without changing it.
func Wrap(t testing.TB, nc net.Conn) *Client {
	return &Client{Conn: nc, R: bufio.NewReader(nc), T: t}
}

// NewClient makes a Client of nc, each of whose methods has Patience, unless the test sets
// deadlines of its own, and closes it at the end of the test.
func NewClient(t testing.TB, nc net.Conn) *Client {
	t.Cleanup(func() { nc.Close() })
	c := Wrap(t, nc)
	c.patient.Store(true)
	c.renew()
	return c
}

// renew sets the deadline of what is next: a whole test may take longer on a busy machine.
func (c *Client) renew() {
	if c.patient.Load() {
		c.Conn.SetDeadline(time.Now().Add(Patience))
	}
}

// SetDeadline sets the deadline of all that follows, as do SetReadDeadline and SetWriteDeadline.
func (c *Client) SetDeadline(t time.Time) error {
	c.patient.Store(false)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *Client) SetReadDeadline(t time.Time) error {
	c.patient.Store(false)
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *Client) SetWriteDeadline(t time.Time) error {
	c.patient.Store(false)
	return c.Conn.SetWriteDeadline(t)
}

// Dial connects to a TCP address.
func Dial(t testing.TB, addr string) *Client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(t, nc)
}

// DialSmall is Dial with a small receive buffer.
func DialSmall(t testing.TB, addr string, size int) *Client {
	t.Helper()
	d := net.Dialer{Control: SetBuffer(syscall.SO_RCVBUF, size)}
	nc, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(t, nc)
}

// Send writes s.
func (c *Client) Send(s string) {
	c.T.Helper()
	c.renew()
	if _, err := io.WriteString(c, s); err != nil {
		c.T.Fatalf("send: %v", err)
	}
}

// SendSlowly writes s in pieces of n bytes, each in a segment of its own. A server that has refused
// an earlier one may have closed the connection before the last: what comes back tells.
func (c *Client) SendSlowly(s string, n int) {
	c.T.Helper()
	for len(s) > 0 {
		k := min(n, len(s))
		c.renew()
		_, err := io.WriteString(c, s[:k])
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
			return
		}
		if err != nil {
			c.T.Fatalf("send: %v", err)
		}
		s = s[k:]
	}
}

// SendAside writes s while the test goes on: a pipe accepts no byte before it
// is read. Bytes that a server does not read any more are lost.
func (c *Client) SendAside(s string) { go io.WriteString(c.Conn, s) }

// Trickle sends head and then bytes of tail one at a time until the connection
// fails. The test waits for its end.
func (c *Client) Trickle(head, tail string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := io.WriteString(c, head); err != nil {
			return
		}
		for i := 0; ; i = (i + 1) % len(tail) {
			if _, err := io.WriteString(c, tail[i:i+1]); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond) // a slow client
		}
	}()
	c.T.Cleanup(func() {
		c.Close()
		<-done
	})
}

// Want reads s.
func (c *Client) Want(s string) {
	c.T.Helper()
	c.renew()
	b := make([]byte, len(s))
	n, err := io.ReadFull(c.R, b)
	if string(b) == s {
		return
	}
	i := 0
	for i < n && b[i] == s[i] {
		i++
	}
	c.T.Fatalf("at byte %d of %d: got %.100q (%v), want %.100q", i, len(s), b[i:n], err, s[i:])
}

// Line reads up to and including the next LF.
func (c *Client) Line() string {
	c.T.Helper()
	c.renew()
	s, err := c.R.ReadString('\n')
	if err != nil {
		c.T.Fatalf("line: %v (got %q)", err, s)
	}
	return s
}

// Rest reads to the end of the stream.
func (c *Client) Rest() string {
	c.T.Helper()
	c.renew()
	b, err := io.ReadAll(c.R)
	if err != nil {
		c.T.Fatalf("rest: %v (got %q)", err, b)
	}
	return string(b)
}

// UpToEnd is Rest for streams that a reset may end.
func (c *Client) UpToEnd() string {
	c.T.Helper()
	c.renew()
	b, err := io.ReadAll(c.R)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		c.T.Fatalf("up to the end: %v (got %q)", err, b)
	}
	return string(b)
}

// Ended waits for the end of the stream, or a reset, and expects no bytes
// before it.
func (c *Client) Ended() {
	c.T.Helper()
	c.renew()
	if b, err := io.ReadAll(c.R); errors.Is(err, os.ErrDeadlineExceeded) || len(b) > 0 {
		c.T.Fatalf("got %.100q (%v), want the end", b, err)
	}
}

// Cut waits for the end of the stream, or a reset, after any bytes.
func (c *Client) Cut() {
	c.T.Helper()
	c.renew()
	if b, err := io.ReadAll(c.R); IsTimeout(err) {
		c.T.Errorf("the connection is open after %q", b)
	}
}

// TCP returns the connection.
func (c *Client) TCP() *net.TCPConn { return c.Conn.(*net.TCPConn) }

// CloseWrite sends FIN. That the server has reset the connection already is no
// error here: reads find it.
func (c *Client) CloseWrite() {
	c.T.Helper()
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil && !errors.Is(err, syscall.ENOTCONN) {
		c.T.Fatal(err)
	}
}

// Reset closes the connection by a reset, which only TCP has.
func (c *Client) Reset() {
	c.TCP().SetLinger(0)
	c.Close()
}

// Head reads the raw head of a response.
func (c *Client) Head() string {
	c.T.Helper()
	var b strings.Builder
	for {
		l := c.Line()
		b.WriteString(l)
		if l == "\r\n" {
			return b.String()
		}
	}
}

// Response reads one response to a request of the given method, body included.
func (c *Client) Response(method string) (*http.Response, string) {
	c.T.Helper()
	c.renew()
	res, err := http.ReadResponse(c.R, &http.Request{Method: method})
	if err != nil {
		c.T.Fatalf("response: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.T.Fatalf("response body: %v (got %q)", err, body)
	}
	res.Body.Close()
	return res, string(body)
}

// Get sends a GET with further header lines and reads the response.
func (c *Client) Get(path string, lines ...string) (*http.Response, string) {
	c.T.Helper()
	c.Send("GET " + path + " HTTP/1.1\r\nHost: h\r\n" + strings.Join(append(lines, "\r\n"), "\r\n"))
	return c.Response("GET")
}

// Status reads a response to a GET, checks its status, and returns its body.
func (c *Client) Status(want int) string {
	c.T.Helper()
	res, body := c.Response("GET")
	if res.StatusCode != want {
		c.T.Fatalf("got %v %q, want %d", res.Status, body, want)
	}
	return body
}

// Refused waits until the server has sent a response with the given status and
// closed, in this order and with nothing after the response, and closes c.
func (c *Client) Refused(status int) {
	c.T.Helper()
	res, body := c.Response("GET")
	if res.StatusCode != status {
		c.T.Fatalf("got %v %q, want %d", res.Status, body, status)
	}
	if !res.Close {
		c.T.Errorf("the response does not announce the close: %v", res.Header)
	}
	c.Ended()
	c.Close() // or the server would linger
}
