package main

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/chert-http/chert/park"
)

// parked calls echo for each message of c, as it arrives; no goroutine waits.
func parked(c net.Conn, echo func() error) {
	var readable func(net.Conn)
	park := func() {
		if park.Park(c, readable) != nil {
			c.Close()
		}
	}
	readable = func(net.Conn) {
		if echo() != nil {
			c.Close()
			return
		}
		park()
	}
	park()
}

// parkedGobwas reads with that package. The lab's clients send nothing before the answer to the handshake, so nothing
// is in the buffer.
func parkedGobwas(echo func(io.ReadWriter) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, _, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			return
		}
		parked(c, func() error { return echo(c) })
	}
}

// parkedGorilla reads with gorilla's ReadMessage, when there is something to read.
func parkedGorilla(w http.ResponseWriter, r *http.Request) {
	h := &hijacker{ResponseWriter: w}
	c, err := upgrader.Upgrade(h, r, nil)
	if err != nil {
		return
	}
	parked(h.conn, func() error {
		kind, message, err := c.ReadMessage()
		if err != nil {
			return err
		}
		return c.WriteMessage(kind, message)
	})
}

// hijacker keeps the connection that gorilla hijacks, and the reader that it reads by.
type hijacker struct {
	http.ResponseWriter
	conn *buffered
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err == nil {
		h.conn = &buffered{c, rw.Reader}
	}
	return c, rw, err
}

// buffered tells park.Park what gorilla has read ahead.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

// Buffered is called by park.Park, as is NetConn.
func (b *buffered) Buffered() int     { return b.r.Buffered() }
func (b *buffered) NetConn() net.Conn { return b.Conn }

// maxMessage bounds what is kept of a message.
const maxMessage = 1 << 20

func frameEcho(c io.ReadWriter) error {
	h, err := ws.ReadHeader(c)
	if err != nil {
		return err
	}
	if h.OpCode == ws.OpClose || h.Length > maxMessage {
		return io.EOF
	}
	payload := make([]byte, h.Length)
	if _, err := io.ReadFull(c, payload); err != nil {
		return err
	}
	ws.Cipher(payload, h.Mask, 0)
	return ws.WriteFrame(c, ws.NewFrame(h.OpCode, h.Fin, payload))
}

func wsutilEcho(c io.ReadWriter) error {
	message, op, err := wsutil.ReadClientData(c)
	if err != nil {
		return err
	}
	return wsutil.WriteServerMessage(c, op, message)
}
