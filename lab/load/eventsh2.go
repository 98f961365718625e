package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// OpenEventsH2 returns an Opener's function for n streams of events over HTTP/2, so many on each connection. Without cfg the
// connections speak HTTP/2 at once (RFC 9113 section 3.3).
func OpenEventsH2(streams int) func(ctx context.Context, addr string, n int, cfg *tls.Config) (*Idle, error) {
	return func(ctx context.Context, addr string, n int, cfg *tls.Config) (*Idle, error) {
		scheme := byte(0x86) // RFC 7541 appendix A
		if cfg != nil {
			cfg = cfg.Clone()
			cfg.NextProtos = []string{"h2"}
			scheme = 0x87
		}
		// GET, the scheme, a path without an index, and the authority.
		const path = "/debug/events"
		block := append([]byte{0x82, scheme, 0x04, byte(len(path))}, path...)
		block = append(append(block, 0x41, byte(len(addr))), addr...)
		on := func(k int) int { return min(streams, n-k*streams) }
		first := func(c net.Conn, k int) error {
			b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + string(frame(frameSettings, 0, 0, nil)) + string(frame(frameSettings, 1, 0, nil)))
			for i := range on(k) {
				b = append(b, frame(frameHeaders, endStream|endHeaders, uint32(2*i+1), block)...)
			}
			c.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := c.Write(b); err != nil {
				return err
			}
			return dataFrames(c, "retry: ", on(k))
		}
		conns := (n + streams - 1) / streams
		i, err := openIdleAt(ctx, addr, conns, cfg, func(c net.Conn, k int, _ *bufio.Reader) error { return first(c, k) })
		if err != nil {
			return nil, err
		}
		i.reads = func(c net.Conn, k int, _ *bufio.Reader, count int) error {
			c.SetDeadline(time.Now().Add(time.Minute))
			return dataFrames(c, "data: ", on(k)*count)
		}
		return i, nil
	}
}

// dataFrames reads frames of a connection, without a buffer, until DATA has had n lines that begin like this. No line is
// in two frames.
func dataFrames(c net.Conn, begin string, n int) error {
	for n > 0 {
		var h [9]byte
		if _, err := io.ReadFull(c, h[:]); err != nil {
			return err
		}
		payload := make([]byte, int(h[0])<<16|int(h[1])<<8|int(h[2]))
		if _, err := io.ReadFull(c, payload); err != nil {
			return err
		}
		id := binary.BigEndian.Uint32(h[5:])
		switch {
		case h[3] == frameGoAway, h[3] == frameReset, h[4]&endStream != 0 && h[3] != frameSettings:
			return fmt.Errorf("the server ends stream %d by a frame of type %d: %q", id, h[3], payload)
		case h[3] == frameHeaders && (len(payload) == 0 || payload[0] != 0x88):
			return fmt.Errorf("the status of stream %d is not 200", id)
		case h[3] == frameData:
			n -= bytes.Count(payload, []byte(begin))
		}
	}
	return nil
}
