package websocket

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// fragmented is a message of n frames that have the payload p, the last of which ends it
// if it is to end.
func fragmented(op, n int, p string, ends bool) string {
	var b strings.Builder
	b.WriteString(frame(-op, p))
	next, last := frame(-middle, p), frame(0, p)
	for range n - 2 {
		b.WriteString(next)
	}
	if ends {
		next = last
	}
	b.WriteString(next)
	return b.String()
}

// TestFragments: messages of 4 MiB in fragments of each size that Autobahn's cases 9.3 and
// 9.4 have are accepted with the default of MaxFragments.
func TestFragments(t *testing.T) {
	sizes := []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
	if testing.Short() {
		sizes = []int{64, 1 << 10}
	}
	const total = 4 << 20
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onMessage := func(c *websocket.Conn, t websocket.Type, p []byte) {
			c.Send(websocket.TypeText, fmt.Appendf(nil, "%d of %d: %d", len(p), t, strings.Count(string(p), "*")))
		}
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: onMessage, MaxMessage: total})))
		c := open(ts)
		for op, typ := range map[int]websocket.Type{1: websocket.TypeText, 2: websocket.TypeBinary} {
			for _, size := range sizes {
				c.SendAside(fragmented(op, total/size, strings.Repeat("*", size), true))
				c.wants(fmt.Sprintf("%d of %d: %d", total, typ, total))
			}
		}
	})
}

// TestHugeMaxMessage: the largest MaxMessage is as good as none, for messages that are compressed, and for those in
// fragments on a stream of HTTP/2.
func TestHugeMaxMessage(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		const part = 40 << 10
		c := open(start(t, fresh(handler(t, &websocket.Options{
			OnMessage: func(c *websocket.Conn, _ websocket.Type, p []byte) {
				c.Send(websocket.TypeText, fmt.Append(nil, len(p)))
			},
			MaxMessage:  math.MaxInt64,
			Compression: new(websocket.Compression),
		}))), "Sec-WebSocket-Extensions: permessage-deflate")
		c.Send(fragmented(2, 2, strings.Repeat("*", part), true))
		c.wants(fmt.Sprint(2 * part))
		z := wsdeflate.Deflate(nil, make([]byte, part), nil, wsdeflate.MinBits)
		c.Send(masked(wsframe.Header{Fin: true, RSV1: true, Op: wsframe.Binary}, string(z)))
		c.wants(fmt.Sprint(part))
	})
}

// TestTinyFragments: frames of a message that bring next to nothing are bounded, also when
// their message never ends.
func TestTinyFragments(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: echo})))
		for _, tt := range []struct {
			payload string
			most    int // frames
		}{
			{"", 4096},
			{"x", 4096 + 4096/64 + 1},
			{strings.Repeat("x", 32), 2*4096 - 1},
		} {
			// What a frame brings counts for those after it.
			c := open(ts)
			c.SendAside(fragmented(2, tt.most, tt.payload, true))
			if h, p, err := c.read(); err != nil || h.Op != wsframe.Binary || len(p) != tt.most*len(tt.payload) {
				t.Fatalf("%d frames of %d bytes: %+v, %d bytes, %v", tt.most, len(tt.payload), h, len(p), err)
			}
			c.SendAside(fragmented(2, tt.most+64, tt.payload, false))
			c.closes(websocket.CodePolicy)
		}
	})
}
