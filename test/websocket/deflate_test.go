package websocket

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// peer is a client's side of permessage-deflate.
type peer struct {
	*client
	p       wsdeflate.Params
	out, in wsdeflate.Window
}

func (c *peer) compressed(s string) string {
	var w *wsdeflate.Window
	if !c.p.ClientNoTakeover {
		w = &c.out
	}
	z := wsdeflate.Deflate(nil, []byte(s), w, c.p.ClientBits)
	c.out.Add([]byte(s), c.p.ClientBits)
	return masked(wsframe.Header{Fin: true, RSV1: true, Op: wsframe.Text}, string(z))
}

// get reads a message, inflates it, and returns its size on the wire.
func (c *peer) get() (s string, size int) {
	c.T.Helper()
	h, p, err := c.read()
	if err != nil || h.Op != wsframe.Text {
		c.T.Fatal(h, p, err)
	}
	if !h.RSV1 {
		return p, len(p)
	}
	var w *wsdeflate.Window
	if !c.p.NoTakeover {
		w = &c.in
	}
	b, err := wsdeflate.Inflate(nil, []byte(p), w, 0)
	if err != nil {
		c.T.Fatal(err)
	}
	c.in.Add(b, c.p.Bits)
	return string(b), len(p)
}

func TestDeflate(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		var room websocket.Room
		var elsewhere atomic.Bool
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnOpen: func(c *websocket.Conn, _ *http.Request) { room.Join(c) },
			OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
				if len(p) > 100_000 {
					elsewhere.Store(!engines.OnDriver())
				}
				if strings.HasPrefix(string(p), "all") {
					room.Broadcast(typ, p)
					return
				}
				c.Send(typ, p)
			},
			MaxMessage:  1 << 20,
			Compression: &websocket.Compression{Threshold: 50},
		})))
		for _, tt := range []struct {
			offer, answer string
			p             wsdeflate.Params
		}{
			{"permessage-deflate; client_max_window_bits", "permessage-deflate; client_max_window_bits=12", wsdeflate.Params{Bits: 12, ClientBits: 12}},
			{"permessage-deflate; server_max_window_bits=9; client_max_window_bits=8", "permessage-deflate; server_max_window_bits=9; client_max_window_bits=8", wsdeflate.Params{Bits: 9, ClientBits: 8}},
			{"permessage-deflate", "permessage-deflate; client_no_context_takeover", wsdeflate.Params{Bits: 12, ClientBits: 15, ClientNoTakeover: true}},
			{"permessage-deflate; server_no_context_takeover; client_no_context_takeover", "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
				wsdeflate.Params{Bits: 12, ClientBits: 15, NoTakeover: true, ClientNoTakeover: true}},
		} {
			c := &peer{client: open(ts, "Sec-WebSocket-Extensions: "+tt.offer), p: tt.p}
			if got := c.header.Get("Sec-WebSocket-Extensions"); got != tt.answer {
				t.Fatalf("%q, want %q", got, tt.answer)
			}
			sizes := 0
			for i := range 50 {
				s := fmt.Sprintf(`{"n":%d,"words":"the quick brown fox jumps over the lazy dog %d"}`, i, i*i)
				if i%5 == 4 {
					s = "all" + s // without the window, but part of it
				}
				if i%7 == 6 {
					c.Send(text(s)) // uncompressed: not a part of it
				} else {
					c.Send(c.compressed(s))
				}
				got, size := c.get()
				if got != s {
					t.Fatalf("%q, want %q", got, s)
				}
				sizes += size
			}
			if !tt.p.NoTakeover && sizes > 50*45 {
				t.Errorf("%s: %d bytes for 50 messages", tt.offer, sizes)
			}
			c.Send(c.compressed("short"))
			if got, size := c.get(); got != "short" || size != 5 {
				t.Error(got, size)
			}
			long := strings.Repeat("long", 100_000)
			// A driver that a busy machine has stopped may have lost its loop, and then is elsewhere, too.
			for try := 0; try == 0 || !elsewhere.Load(); try++ {
				if try == 10 {
					t.Error("large messages were inflated on a loop")
					break
				}
				c.Send(c.compressed(long))
				if got, _ := c.get(); got != long {
					t.Error(len(got))
				}
			}
			c.Close()
			servertest.Eventually(t, "the room is empty", func() bool { return room.Len() == 0 })
		}
	})
}

// TestDeflateErrors: bombs, corrupt data and text that is none.
func TestDeflateErrors(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnMessage: echo, MaxMessage: 100 << 10, Compression: new(websocket.Compression),
		})))
		bomb := string(wsdeflate.Deflate(nil, make([]byte, 50<<20), nil, 15))
		compressed := func(p string) string { return masked(wsframe.Header{Fin: true, RSV1: true, Op: wsframe.Text}, p) }
		for _, tt := range []struct {
			name, in string
			code     websocket.Code
		}{
			{"bomb", compressed(bomb), websocket.CodeTooBig},
			{"corrupt", compressed("\xff\xff"), websocket.CodeInvalid},
			{"invalid text", compressed(string(wsdeflate.Deflate(nil, []byte("\xff"), nil, 15))), websocket.CodeInvalid},
			{"RSV1 on a continuation", masked(wsframe.Header{RSV1: true, Op: wsframe.Text}, "a") + masked(wsframe.Header{Fin: true, RSV1: true}, "b"), websocket.CodeProtocol},
		} {
			c := open(ts, "Sec-WebSocket-Extensions: permessage-deflate")
			c.Send(text("a") + tt.in)
			c.wants("a")
			c.closes(tt.code)
		}
		c := ts.Dial()
		c.Send(upgrade("Sec-WebSocket-Extensions: permessage-deflate;;"))
		if res, err := http.ReadResponse(c.R, nil); err != nil || res.StatusCode != 400 {
			t.Error(res, err)
		}
	})
}
