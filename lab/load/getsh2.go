package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// getterH2 is a connection of HTTP/2.
type getterH2 struct {
	c     *tls.Conn
	r     *bufio.Reader
	block []byte // a request's fields
	out   []byte // what is to be sent when nothing more has come

	next    uint32 // stream
	streams []getH2
	unread  int64 // bytes of DATA that no WINDOW_UPDATE has returned yet
}

// getH2 is a request under way.
type getH2 struct {
	id     uint32
	begin  time.Time
	ok     bool // the status was 200
	length int64
}

// getsWindow is that of each stream and of the connection: it does not limit the server.
const getsWindow = 8 << 20

func openGetterH2(ctx context.Context, addr, path string) (getter, error) {
	const most = 126 // a length in one byte
	if len(path) > most || len(addr) > most {
		return nil, fmt.Errorf("the path %q is too long", path)
	}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	g := &getterH2{c: c.(*tls.Conn), r: bufio.NewReaderSize(c, 64<<10), next: 1}
	if p := g.c.ConnectionState().NegotiatedProtocol; p != "h2" {
		c.Close()
		return nil, fmt.Errorf("the server speaks %q, not HTTP/2", p)
	}
	// RFC 7541 appendix A: GET, https, a path and the authority without an index.
	g.block = append([]byte{0x82, 0x87, 0x04, byte(len(path))}, path...)
	g.block = append(append(g.block, 0x01, byte(len(addr))), addr...)
	window := binary.BigEndian.AppendUint32([]byte{0, 4}, getsWindow) // SETTINGS_INITIAL_WINDOW_SIZE
	begin := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + string(frame(frameSettings, 0, 0, window)) + string(windowUpdate(0, getsWindow))
	if _, err := io.WriteString(c, begin); err != nil {
		c.Close()
		return nil, err
	}
	return g, nil
}

// Two more types of frames than package load has (RFC 9113 sections 6.7 and 6.9).
const framePing, frameWindowUpdate = 6, 8

func windowUpdate(id uint32, n int64) []byte {
	return frame(frameWindowUpdate, 0, id, binary.BigEndian.AppendUint32(nil, uint32(n)))
}

func (g *getterH2) close() { g.c.NetConn().Close() }

// converse implements getter. Requests that become due while more has come already leave in one write.
func (g *getterH2) converse(_ context.Context, plan Gets, end time.Time) (took []time.Duration, err error) {
	for range plan.Streams {
		g.send(time.Now())
	}
	for len(g.streams) > 0 {
		if g.r.Buffered() == 0 && len(g.out) > 0 {
			if _, err := g.c.Write(g.out); err != nil {
				return took, err
			}
			g.out = g.out[:0]
		}
		done, err := g.frame()
		if err != nil {
			return took, err
		}
		if done < 0 {
			continue
		}
		s := g.streams[done]
		if !s.ok {
			return took, errors.New("the status is not 200")
		}
		if err := plan.checkLength(s.length); err != nil {
			return took, err
		}
		now := time.Now()
		took = append(took, now.Sub(s.begin))
		g.streams = slices.Delete(g.streams, done, done+1)
		if now.Before(end) {
			g.send(now)
		}
	}
	return took, nil
}

// send begins a request.
func (g *getterH2) send(now time.Time) {
	g.out = append(g.out, frame(frameHeaders, endStream|endHeaders, g.next, g.block)...)
	g.streams = append(g.streams, getH2{id: g.next, begin: now})
	g.next += 2
}

// frame reads a frame. done is the stream that it ends, or -1.
func (g *getterH2) frame() (done int, err error) {
	h, err := g.r.Peek(9)
	if err != nil {
		return -1, err
	}
	n, kind, flags, id := int(h[0])<<16|int(h[1])<<8|int(h[2]), h[3], h[4], binary.BigEndian.Uint32(h[5:])
	g.r.Discard(9)
	i := slices.IndexFunc(g.streams, func(s getH2) bool { return s.id == id })
	switch {
	case kind == frameData && i >= 0:
		g.streams[i].length += int64(n)
		g.consumed(id, n, flags&endStream != 0)
	case kind == frameHeaders && i >= 0:
		b, err := g.r.Peek(min(n, 1))
		if err != nil {
			return -1, err
		}
		g.streams[i].ok = n > 0 && b[0] == 0x88 // :status 200
	case kind == framePing && flags == 0:
		b, err := g.r.Peek(8)
		if err != nil {
			return -1, err
		}
		g.out = append(g.out, frame(framePing, 1, 0, b)...)
	case kind == frameSettings && flags == 0:
		g.out = append(g.out, frame(frameSettings, 1, 0, nil)...)
	case kind == frameReset, kind == frameGoAway:
		return -1, fmt.Errorf("the server sends a frame of type %d for stream %d", kind, id)
	}
	if _, err := g.r.Discard(n); err != nil {
		return -1, err
	}
	if flags&endStream == 0 || kind != frameData && kind != frameHeaders {
		return -1, nil
	}
	return i, nil
}

// consumed returns credit for DATA, that of a stream that goes on at once with the connection's.
func (g *getterH2) consumed(id uint32, n int, last bool) {
	if g.unread += int64(n); g.unread < getsWindow/4 && last {
		return
	}
	if !last {
		g.out = append(g.out, windowUpdate(id, int64(n))...)
	}
	if g.unread >= getsWindow/4 {
		g.out = append(g.out, windowUpdate(0, g.unread)...)
		g.unread = 0
	}
}
