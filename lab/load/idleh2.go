package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// OpenIdleH2 is OpenIdle for connections over TLS that speak HTTP/2.
func OpenIdleH2(ctx context.Context, addr string, n int, cfg *tls.Config) (*Idle, error) {
	cfg = cfg.Clone()
	cfg.NextProtos = []string{"h2"}
	var last sync.Map // the newest stream of each connection
	asks := func(c net.Conn, _ *bufio.Reader) error {
		id := uint32(1)
		if v, ok := last.Load(c); ok {
			id = v.(uint32) + 2
		}
		last.Store(c, id)
		return askFrames(c, addr, id)
	}
	first := func(c net.Conn, r *bufio.Reader) error {
		if _, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+string(frame(frameSettings, 0, 0, nil))+string(frame(frameSettings, 1, 0, nil))); err != nil {
			return err
		}
		return asks(c, r)
	}
	return openIdle(ctx, addr, n, cfg, first, asks)
}

// Types and flags of frames (RFC 9113 section 6).
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7
	endStream, endHeaders                                           = 1, 4
)

func frame(kind, flags byte, id uint32, payload []byte) []byte {
	b := []byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return append(binary.BigEndian.AppendUint32(b, id), payload...)
}

// askFrames makes a GET of "/" on a stream. It reads frames of the connection without a buffer, which another one would
// get next.
func askFrames(c net.Conn, addr string, id uint32) error {
	c.SetDeadline(time.Now().Add(10 * time.Second))
	block := append([]byte{0x82, 0x87, 0x84, 0x41, byte(len(addr))}, addr...) // RFC 7541 appendix A: GET, https, /, and the authority
	if _, err := c.Write(frame(frameHeaders, endStream|endHeaders, id, block)); err != nil {
		return err
	}
	ok := false
	for {
		var h [9]byte
		if _, err := io.ReadFull(c, h[:]); err != nil {
			return err
		}
		payload := make([]byte, int(h[0])<<16|int(h[1])<<8|int(h[2]))
		if _, err := io.ReadFull(c, payload); err != nil {
			return err
		}
		switch kind := h[3]; {
		case kind == frameGoAway, kind == frameReset:
			return fmt.Errorf("the server sends a frame of type %d: %x", kind, payload)
		case binary.BigEndian.Uint32(h[5:]) != id:
			continue
		case kind == frameHeaders:
			ok = len(payload) > 0 && payload[0] == 0x88 // :status 200
		}
		if h[4]&endStream != 0 && (h[3] == frameData || h[3] == frameHeaders) {
			if !ok {
				return errors.New("the status is not 200")
			}
			return nil
		}
	}
}
