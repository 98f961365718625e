package main

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// upgrader has no ReadBufferSize: then gorilla reads by the reader that Hijack has
// returned, which hijacker keeps. The pool saves each silent connection a buffer of 4 KiB
// for writing.
var upgrader = websocket.Upgrader{WriteBufferPool: new(sync.Pool)}

// hijacker keeps what Hijack has returned. gorilla may have read more than one message:
// what is left is in the reader, not in the socket, and would not wake a parked
// connection.
type hijacker struct {
	http.ResponseWriter
	conn *buffered
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err == nil {
		h.conn = &buffered{nc, rw.Reader}
	}
	return nc, rw, err
}

// gorilla is a connection of that package, read when there is something to read.
type gorilla struct {
	*websocket.Conn
	r *bufio.Reader
}

func (s *sockets) byGorilla(w http.ResponseWriter, r *http.Request) {
	h := &hijacker{ResponseWriter: w}
	c, err := upgrader.Upgrade(h, r, nil)
	if err != nil {
		return // Upgrade has responded
	}
	c.SetReadLimit(maxMessage)
	s.start(h.conn, gorilla{c, h.conn.r}.message)
}

// message reads one message and answers it.
func (g gorilla) message() error {
	if done, err := g.control(); done || err != nil {
		return err
	}
	kind, p, err := g.ReadMessage()
	if err != nil {
		return err
	}
	g.SetWriteDeadline(time.Now().Add(inTime))
	return g.WriteMessage(kind, p)
}

// control answers a ping and skips a pong, if one comes next: ReadMessage would do that
// too, and then wait for a message. It leaves everything else to ReadMessage, also what
// is malformed.
func (g gorilla) control() (done bool, err error) {
	head, err := g.r.Peek(2)
	if err != nil {
		return false, err
	}
	const ping, pong = 0x80 | websocket.PingMessage, 0x80 | websocket.PongMessage
	n := int(head[1] & 0x7f)
	if op := head[0]; op != ping && op != pong || head[1]&0x80 == 0 || n > 125 {
		return false, nil
	}
	frame, err := g.r.Peek(6 + n)
	if err != nil {
		return false, err
	}
	mask, p := frame[2:6], frame[6:]
	for i := range p {
		p[i] ^= mask[i%4]
	}
	if frame[0] == ping {
		err = g.WriteControl(websocket.PongMessage, p, time.Now().Add(inTime))
	}
	g.r.Discard(len(frame))
	return true, err
}

// inLoop is gorilla's usual way: a goroutine for each connection.
func (s *sockets) inLoop(w http.ResponseWriter, r *http.Request) {
	c, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.add(c.NetConn())
	defer s.end(c.NetConn())
	c.SetReadLimit(maxMessage)
	for {
		c.SetReadDeadline(time.Now().Add(silence))
		kind, p, err := c.ReadMessage()
		if err != nil {
			return
		}
		c.SetWriteDeadline(time.Now().Add(inTime))
		if err := c.WriteMessage(kind, p); err != nil {
			return
		}
	}
}
