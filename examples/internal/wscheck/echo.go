package wscheck

import (
	"strings"
	"testing"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/gobwas/ws"
)

// Echo checks a server whose path echoes messages.
func Echo(t *testing.T, s *engines.Server, path string) {
	t.Run("sizes", func(t *testing.T) {
		c := Dial(t, s, path)
		// Around the lengths at which a frame's head grows, and more than any
		// socket buffer.
		for _, n := range []int{0, 1, 125, 126, 4095, 4096, 65535, 65536, 8 << 20} {
			c.echoed(ws.OpText, strings.Repeat("x", n))
			c.echoed(ws.OpBinary, string(engines.Random(n)))
		}
	})
	t.Run("fragments", func(t *testing.T) {
		c := Dial(t, s, path)
		c.Send(ws.OpText, false, "cry")
		c.Send(ws.OpPing, true, "between") // control frames may come between
		c.Expect(ws.OpPong, "between")
		c.Send(ws.OpContinuation, false, "")
		c.Send(ws.OpContinuation, true, "stal")
		c.Expect(ws.OpText, "crystal")
	})
	t.Run("byte by byte", func(t *testing.T) {
		c := Dial(t, s, path)
		for _, b := range ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte("slow")))) {
			if _, err := c.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		c.Expect(ws.OpText, "slow")
	})
	t.Run("many in one write", func(t *testing.T) {
		c := Dial(t, s, path)
		var all []byte
		for range 100 {
			all = append(all, ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte("one of many"))))...)
		}
		if _, err := c.Write(all); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			c.Expect(ws.OpText, "one of many")
		}
	})
	t.Run("ping", func(t *testing.T) {
		c := Dial(t, s, path)
		c.Send(ws.OpPing, true, "")
		c.Expect(ws.OpPong, "")
		c.Send(ws.OpPing, true, "abc")
		c.Expect(ws.OpPong, "abc")
	})
	t.Run("close", func(t *testing.T) {
		c := Dial(t, s, path)
		c.Send(ws.OpText, true, "last")
		c.Expect(ws.OpText, "last")
		c.Send(ws.OpClose, true, string(ws.NewCloseFrameBody(ws.StatusNormalClosure, "bye")))
		c.ExpectClose(ws.StatusNormalClosure)
		c.ExpectEnd()
	})
}

// echoed sends a message and reads it back concurrently: a server may echo the
// beginning before it has read the end.
func (c *Client) echoed(op ws.OpCode, payload string) {
	c.t.Helper()
	sent := make(chan error, 1)
	go func() { sent <- ws.WriteFrame(c, ws.MaskFrame(ws.NewFrame(op, true, []byte(payload)))) }()
	c.Expect(op, payload)
	if err := <-sent; err != nil {
		c.t.Fatal(err)
	}
}

// Early checks that a message sent before the response to the handshake is
// echoed.
func Early(t *testing.T, s *engines.Server, path string) {
	for name, n := range map[string]int{"small": 5, "beyond the reader's buffer": 20000} {
		t.Run("early, "+name, func(t *testing.T) {
			early := string(engines.Random(n))
			c := DialEarly(t, s, path, ws.NewBinaryFrame([]byte(early)))
			c.Expect(ws.OpBinary, early)
			c.Send(ws.OpText, true, "later")
			c.Expect(ws.OpText, "later")
		})
	}
}
