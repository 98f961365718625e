package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// OpenSockets opens n WebSocket connections to a path of addr that echoes messages, and sends one message on each.
// With cfg they speak TLS.
func OpenSockets(ctx context.Context, addr, path string, n int, cfg *tls.Config) (*Idle, error) {
	first := func(c net.Conn, r *bufio.Reader) error {
		if err := upgrade(c, r, handshake(addr, path)); err != nil {
			return err
		}
		return echo(c, r)
	}
	return openIdle(ctx, addr, n, cfg, first, echo)
}

func handshake(addr, path string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", path, addr)
}

func upgrade(c net.Conn, r *bufio.Reader, handshake string) error {
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, handshake); err != nil {
		return err
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("WebSocket handshake: %s", resp.Status)
	}
	return nil
}

// A text message of four bytes: RFC 6455, section 5.2, with a mask of zeros from the client and none from the server.
var (
	message = []byte("\x81\x84\x00\x00\x00\x00ping")
	echoed  = []byte("\x81\x04ping")
)

// echo sends a message and reads it back.
func echo(c net.Conn, r *bufio.Reader) error {
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(message); err != nil {
		return err
	}
	got := make([]byte, len(echoed))
	if _, err := io.ReadFull(r, got); err != nil {
		return err
	}
	if !bytes.Equal(got, echoed) {
		return fmt.Errorf("WebSocket echo %q, want %q", got, echoed)
	}
	return nil
}
