package websocket

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// each runs f on loops with all placements, on goroutines and on net/http's server, and
// over HTTP/2 on loops and goroutines.
func each(t *testing.T, f func(t *testing.T, fresh func(h http.Handler) *chert.Server)) {
	t.Parallel()
	eachAlone(t, func(t *testing.T, fresh func(h http.Handler) *chert.Server) {
		t.Parallel()
		f(t, fresh)
	})
}

// eachHTTP1 is each without HTTP/2.
func eachHTTP1(t *testing.T, f func(t *testing.T, fresh func(h http.Handler) *chert.Server)) {
	each(t, func(t *testing.T, fresh func(h http.Handler) *chert.Server) {
		if fresh(nil).ExtendedConnect {
			t.Skip("for HTTP/1")
		}
		f(t, fresh)
	})
}

// eachAlone is each for tests that measure the process.
func eachAlone(t *testing.T, f func(t *testing.T, fresh func(h http.Handler) *chert.Server)) {
	run := func(name string, e chert.Engine, p chert.Placement) {
		t.Run(name, func(t *testing.T) {
			f(t, func(h http.Handler) *chert.Server { return &chert.Server{Engine: e, Placement: p, Handler: h} })
		})
	}
	engines.Placements(run)
	run("nethttp", engines.NetHTTP, chert.PlacementAdaptive)
	run2 := func(name string, e chert.Engine, p chert.Placement) {
		t.Run("http2"+name, func(t *testing.T) {
			f(t, func(h http.Handler) *chert.Server {
				s := &chert.Server{Engine: e, Placement: p, Handler: h, ExtendedConnect: true, Protocols: new(http.Protocols)}
				s.Protocols.SetUnencryptedHTTP2(true)
				return s
			})
		})
	}
	if strings.Contains(os.Getenv("GODEBUG"), "http2xconnect=1") {
		run2("nethttp", engines.NetHTTP, chert.PlacementAdaptive)
	}
	engines.Placements(run2)
}

// handler makes a Handler.
func handler(t testing.TB, o *websocket.Options) *websocket.Handler {
	t.Helper()
	h, err := websocket.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// echo returns what it gets.
func echo(c *websocket.Conn, t websocket.Type, p []byte) { c.Send(t, p) }

const (
	key    = "dGhlIHNhbXBsZSBub25jZQ=="
	accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// upgrade is a correct opening handshake with further fields.
func upgrade(fields ...string) string {
	return servertest.RawHead(append([]string{
		"GET / HTTP/1.1", "Host: example.com", "Connection: keep-alive, Upgrade", "Upgrade: WebSocket",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + key,
	}, fields...)...)
}

// client speaks frames as bytes.
type client struct {
	*servertest.Client
	header http.Header // of the response
}

// open makes a connection.
func open(ts *engines.Server, fields ...string) *client {
	ts.T.Helper()
	return opened(ts.Dial(), fields...)
}

func opened(sc *servertest.Client, fields ...string) *client {
	sc.T.Helper()
	c := &client{Client: sc}
	c.Send(upgrade(fields...))
	res, err := http.ReadResponse(c.R, nil)
	if err != nil {
		c.T.Fatal(err)
	}
	if c.header = res.Header; res.StatusCode != 101 || c.header.Get("Sec-WebSocket-Accept") != accept {
		c.T.Fatalf("status %d, %v", res.StatusCode, res.Header)
	}
	return c
}

// frame is a client's frame: op, or -op for one that is not the last of its message.
func frame(op int, payload string) string {
	fin := op >= 0 && op < 100
	if op < 0 {
		op = -op
	}
	return masked(wsframe.Header{Fin: fin, Op: wsframe.Opcode(op % 100)}, payload)
}

// middle stands, as -middle, for a continuation that is not the last frame.
const middle = 100

func masked(h wsframe.Header, payload string) string {
	h.Masked, h.Key, h.Length = true, 0xa1b2c3d4, int64(len(payload))
	b := h.Append(nil)
	n := len(b)
	b = append(b, payload...)
	wsframe.Mask(b[n:], h.Key)
	return string(b)
}

func text(s string) string { return frame(1, s) }

// read returns the next frame.
func (c *client) read() (wsframe.Header, string, error) { return readFrame(c.R) }

func readFrame(r *bufio.Reader) (h wsframe.Header, payload string, err error) {
	for n := 2; ; n++ {
		b, err := r.Peek(n)
		if err != nil {
			return h, "", err
		}
		var k int
		if h, k, err = wsframe.ParseHeader(b); err != nil {
			return h, "", err
		} else if k > 0 {
			r.Discard(k)
			break
		}
	}
	p := make([]byte, h.Length)
	_, err = io.ReadFull(r, p)
	return h, string(p), err
}

// wants reads frames with these payloads, of text.
func (c *client) wants(payloads ...string) {
	c.T.Helper()
	for _, want := range payloads {
		h, got, err := c.read()
		if err != nil || h.Op != wsframe.Text || !h.Fin || h.Masked || got != want {
			c.T.Fatalf("%+v %.100q %v, want %.100q", h, got, err, want)
		}
	}
}

// closes reads a Close frame with code, and the end of the connection.
func (c *client) closes(code websocket.Code) {
	c.T.Helper()
	for {
		h, p, err := c.read()
		if err != nil {
			c.T.Fatalf("%v before a Close frame", err)
		}
		if h.Op != wsframe.Close {
			continue
		}
		if got, reason, err := wsframe.ParseClose([]byte(p)); websocket.Code(got) != code || err != nil {
			c.T.Fatalf("code %d %q %v, want %d", got, reason, err, code)
		}
		break
	}
	c.Ended()
	c.Close()
}

// closing is a Close frame of the client.
func closing(code websocket.Code, reason string) string {
	return frame(8, string(binary.BigEndian.AppendUint16(nil, uint16(code)))+reason)
}

// ended is what OnClose was called with.
type ended struct {
	code   websocket.Code
	reason string
}

// ends makes an OnClose that sends on the channel.
func ends() (func(*websocket.Conn, websocket.Code, string), chan ended) {
	ch := make(chan ended, 100)
	return func(_ *websocket.Conn, code websocket.Code, reason string) { ch <- ended{code, reason} }, ch
}

func numbered(n int) (s []string) {
	for i := range n {
		s = append(s, fmt.Sprintf("message %d", i))
	}
	return s
}

func frames(messages []string) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(text(m))
	}
	return b.String()
}

const soon = 20 * time.Millisecond
