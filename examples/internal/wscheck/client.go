package wscheck

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/gobwas/ws"
)

// maxFrame is more than any test sends.
const maxFrame = 16 << 20

// Client is one connection.
type Client struct {
	net.Conn
	t *testing.T
	r io.Reader // the connection after the bytes that came with the handshake

	op   ws.OpCode // of the message that is being received
	part []byte    // received so far
}

// Dial opens a WebSocket on a server's path.
func Dial(t *testing.T, s *engines.Server, path string) *Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), engines.Patience)
	defer cancel()
	nc, br, _, err := ws.Dial(ctx, s.WS(path))
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(engines.Patience))
	t.Cleanup(func() { nc.Close() })
	c := &Client{Conn: nc, t: t, r: nc}
	if br != nil {
		c.r = br
	}
	return c
}

// DialEarly sends a frame in one write with the handshake, before the response.
// RFC 6455 section 4.1 forbids it, but clients do it.
func DialEarly(t *testing.T, s *engines.Server, path string, early ws.Frame) *Client {
	t.Helper()
	nc := s.Dial(t)
	handshake := "GET " + path + " HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	if _, err := nc.Write(append([]byte(handshake), ws.MustCompileFrame(ws.MaskFrame(early))...)); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(nc)
	for first := true; ; first = false {
		line, err := br.ReadString('\n')
		if err != nil || first && !strings.HasPrefix(line, "HTTP/1.1 101 ") {
			t.Fatalf("handshake: %q, %v", line, err)
		}
		if line == "\r\n" {
			return &Client{Conn: nc, t: t, r: br}
		}
	}
}

// Send writes one frame.
func (c *Client) Send(op ws.OpCode, fin bool, payload string) {
	c.t.Helper()
	if err := ws.WriteFrame(c, ws.MaskFrame(ws.NewFrame(op, fin, []byte(payload)))); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// Receive reads a control frame, or a message with all its frames. A control
// frame may come between those.
func (c *Client) Receive() (op ws.OpCode, payload string) {
	c.t.Helper()
	for {
		h, err := ws.ReadHeader(c.r)
		if err != nil {
			c.t.Fatalf("receive: %v", err)
		}
		if h.Masked || h.Length > maxFrame {
			c.t.Fatalf("a frame with the head %+v", h)
		}
		p := make([]byte, h.Length)
		if _, err := io.ReadFull(c.r, p); err != nil {
			c.t.Fatalf("receive: %v", err)
		}
		if h.OpCode.IsControl() {
			return h.OpCode, string(p)
		}
		if h.OpCode != ws.OpContinuation {
			c.op = h.OpCode
		}
		c.part = append(c.part, p...)
		if h.Fin {
			payload, c.part = string(c.part), nil
			return c.op, payload
		}
	}
}

// Expect reads a message or control frame and compares it.
func (c *Client) Expect(op ws.OpCode, payload string) {
	c.t.Helper()
	if o, p := c.Receive(); o != op || p != payload {
		c.t.Fatalf("got %x %d bytes %.100q, want %x %d bytes %.100q", o, len(p), p, op, len(payload), payload)
	}
}

// ExpectClose reads a close frame with the code.
func (c *Client) ExpectClose(code ws.StatusCode) {
	c.t.Helper()
	op, p := c.Receive()
	if got, _ := ws.ParseCloseFrameData([]byte(p)); op != ws.OpClose || got != code {
		c.t.Fatalf("got opcode %x, close code %d, want %d", op, got, code)
	}
}

// ExpectEnd waits for the end of the stream.
func (c *Client) ExpectEnd() {
	c.t.Helper()
	if b, err := io.ReadAll(c.r); err != nil || len(b) > 0 {
		c.t.Fatalf("at the end: %q, %v", b, err)
	}
}
