package attack

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"
)

// hostile is the address of attackers on Linux, which has all of 127.0.0.0/8: innocents have another. Elsewhere it is nil.
var hostile = func() net.IP {
	if runtime.GOOS == "linux" {
		return net.IPv4(127, 0, 0, 2)
	}
	return nil
}()

// dial connects from another address than innocent clients have, and closes the connection when ctx ends. What it sends waits in the server's buffers rather than in its
// own: with megabytes of its own a sender would be woken only every few seconds, and count nothing in between.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: hostile}}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if t, ok := c.(*net.TCPConn); ok {
		t.SetWriteBuffer(64 << 10)
	}
	context.AfterFunc(ctx, func() { c.Close() })
	return c, nil
}

// discard reads and drops what arrives.
func discard(c net.Conn) { go io.Copy(io.Discard, c) }

// send writes p again and again, and counts units for each.
func send(c net.Conn, p []byte, units int64, a *attacker) error {
	for {
		if _, err := c.Write(p); err != nil {
			return err
		}
		a.sent.Add(units)
	}
}

// repeat is b n times.
func repeat(b []byte, n int) []byte { return []byte(strings.Repeat(string(b), n)) }

// Frame types and flags of HTTP/2 (RFC 9113 section 6).
const (
	typeData         = 0
	typeHeaders      = 1
	typePriority     = 2
	typeReset        = 3
	typeSettings     = 4
	typePing         = 6
	typeWindow       = 8
	typeContinuation = 9

	endStream  = 1
	endHeaders = 4
)

// frame appends a frame of HTTP/2.
func frame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// openH2 opens a connection of HTTP/2 in plain text with SETTINGS, pairs of identifier and value.
func openH2(ctx context.Context, addr string, settings ...uint32) (net.Conn, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	var s []byte
	for i := 0; i < len(settings); i += 2 {
		s = binary.BigEndian.AppendUint16(s, uint16(settings[i]))
		s = binary.BigEndian.AppendUint32(s, settings[i+1])
	}
	b := frame([]byte(preface), typeSettings, 0, 0, s)
	_, err = c.Write(frame(b, typeSettings, 1, 0, nil)) // and the acknowledgement of the server's, in advance
	return c, err
}

// literal appends a field without indexing (RFC 7541 section 6.2.2), or with (6.2.1). Names and values are shorter
// than 127 bytes or of exactly the lengths that a prefix of 7 bits and two more bytes have.
func literal(b []byte, indexed bool, name, value string) []byte {
	if indexed {
		b = append(b, 0x40)
	} else {
		b = append(b, 0)
	}
	return text(text(b, name), value)
}

func text(b []byte, s string) []byte {
	if n := len(s); n < 127 {
		b = append(b, byte(n))
	} else {
		b = append(b, 127)
		for n -= 127; n >= 128; n >>= 7 {
			b = append(b, byte(n)|128)
		}
		b = append(b, byte(n))
	}
	return append(b, s...)
}

// get is the block of a GET.
func get(path string) []byte {
	// :method GET, :scheme http of the static table; literals with its names for the others.
	b := []byte{0x82, 0x86}
	b = text(append(b, 0x01), "target")
	return text(append(b, 0x04), path)
}

// extended is the block of an extended CONNECT for a WebSocket (RFC 8441).
func extended(path string) []byte {
	b := text([]byte{0x02}, "CONNECT")
	b = literal(b, false, ":protocol", "websocket")
	b = append(b, 0x86)
	b = text(append(b, 0x04), path)
	b = text(append(b, 0x01), "target")
	return literal(b, false, "sec-websocket-version", "13")
}

// header has a WebSocket frame's first bytes (RFC 6455 section 5.2), masked with zeros.
func header(opcode byte, fin bool, n int) []byte {
	b := []byte{opcode, 0x80}
	if fin {
		b[0] |= 0x80
	}
	switch {
	case n < 126:
		b[1] |= byte(n)
	case n < 1<<16:
		b[1] |= 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b[1] |= 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return append(b, 0, 0, 0, 0)
}

// openWS opens a WebSocket.
func openWS(ctx context.Context, addr string) (net.Conn, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	fmt.Fprint(c, "GET /ws HTTP/1.1\r\nHost: target\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReaderSize(c, 4<<10)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		c.Close()
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		c.Close()
		return nil, errors.New(res.Status)
	}
	return c, nil
}
