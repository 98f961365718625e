package request

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net/http"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/websocket"
)

// Hello is the body of each response, and each WebSocket message.
const Hello = "Hello, World!"

// A Path is a way through chert that requests take.
type Path struct {
	Name  string
	About string
	// Handler serves the requests.
	Handler func() http.Handler
	// Client makes what one client sends.
	Client func() *Client
}

// A Client is what a client sends over one connection, and how it knows that a response is complete.
type Client struct {
	open []byte // sent before the first request
	ask  []byte // one request
	next func(ask []byte)
	// opened ends the response to open; nil: there is none.
	opened []byte
}

// Open returns what is sent first, and how the response to it ends; nothing if requests are sent immediately.
func (c *Client) Open() (send, end []byte) { return c.open, c.opened }

// Next returns the next request. It is valid until the next call.
func (c *Client) Next() []byte {
	if c.next != nil {
		c.next(c.ask)
	}
	return c.ask
}

// Paths returns all of them.
func Paths() []Path {
	return []Path{
		{"plain", "GET over HTTP/1.1, http.Handler", plain, http1},
		{"direct", "GET over HTTP/1.1, direct.Response", fixed, http1},
		{"h2", "GET over HTTP/2 without TLS, http.Handler", plain, http2},
		{"h2direct", "GET over HTTP/2 without TLS, direct.Response", fixed, http2},
		{"websocket", "a binary message and its echo", echo, webSocket},
	}
}

// Find returns the path with the name.
func Find(name string) (Path, bool) {
	for _, p := range Paths() {
		if p.Name == name {
			return p, true
		}
	}
	return Path{}, false
}

// Server returns a server with default settings for the path.
func (p Path) Server() *chert.Server {
	var all http.Protocols
	all.SetHTTP1(true)
	all.SetUnencryptedHTTP2(true)
	return &chert.Server{Handler: p.Handler(), Protocols: &all, Engine: chert.EngineLoops}
}

func plain() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, Hello)
	})
}

func fixed() http.Handler {
	return direct.NewResponse(http.StatusOK, http.Header{"Content-Type": {"text/plain"}}, []byte(Hello))
}

func echo() http.Handler {
	h, err := websocket.New(&websocket.Options{
		OnMessage: func(c *websocket.Conn, t websocket.Type, p []byte) { c.Send(t, p) },
	})
	if err != nil {
		panic(err) // the options are right
	}
	return h
}

func http1() *Client {
	return &Client{ask: []byte("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")}
}

// http2 makes a client of RFC 9113 with prior knowledge. Windows are as large as they can be.
func http2() *Client {
	const window = 1<<31 - 1
	c := &Client{open: []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}
	settings := binary.BigEndian.AppendUint32([]byte{0, 4}, window) // SETTINGS_INITIAL_WINDOW_SIZE
	c.open = append(frame(c.open, 4, 0, 0, settings...), frame(nil, 4, 1, 0)...)
	c.open = frame(c.open, 8, 0, 0, binary.BigEndian.AppendUint32(nil, window-65535)...)
	c.opened = frame(nil, 4, 1, 0) // the acknowledgement of the settings
	const authority = "127.0.0.1:8080"
	// GET, http and / of the static table, and a name of it with a value that is not indexed.
	block := append([]byte{0x82, 0x86, 0x84, 0x01, byte(len(authority))}, authority...)
	const endStreamAndHeaders = 1 | 4
	c.ask = frame(nil, 1, endStreamAndHeaders, 0, block...)
	stream := uint32(1)
	c.next = func(ask []byte) {
		binary.BigEndian.PutUint32(ask[5:], stream)
		stream += 2
	}
	return c
}

// frame appends a frame of RFC 9113, section 4.1.
func frame(to []byte, kind, flags byte, stream uint32, payload ...byte) []byte {
	n := len(payload)
	to = append(to, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	return append(binary.BigEndian.AppendUint32(to, stream), payload...)
}

func webSocket() *Client {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 16))
	c := &Client{
		open: []byte("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + "\r\n\r\n"),
		opened: []byte("\r\n\r\n"),
	}
	mask := [4]byte{0x12, 0x34, 0x56, 0x78}
	c.ask = append([]byte{0x82, 0x80 | byte(len(Hello))}, mask[:]...) // RFC 6455, section 5.2: final, binary, masked
	for i := range len(Hello) {
		c.ask = append(c.ask, Hello[i]^mask[i%4])
	}
	return c
}
