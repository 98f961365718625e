//go:build linux

package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/websocket"
)

// Messages of clients, and the answers: a kind, an ID of 8 bytes, a number of 4, and the
// bytes that wsBody returns for them. Texts are echoed as they are.
const (
	wsEcho      = 'e'
	wsSlow      = 's' // the same, later
	wsWrite     = 'w' // the same, by Write
	wsMany      = 'm' // as many answers as the number says
	wsLate      = 'l' // the answer is of another goroutine, out of order
	wsBroadcast = 'b' // the number is that of the client's broadcasts
	wsSync      = 'y'
	wsClose     = 'c' // the server closes with wsCode
	wsPanic     = 'p'
	wsHello     = 'h' // of the server, when a connection has joined the room

	wsHeader = 13
	wsCode   = 4000
)

// wsServer is what the server knows of its WebSockets, for their clients to compare. A
// connection is known by the number that its client gives it.
type wsServer struct {
	v    *served
	room websocket.Room
	// limited: messages to those who read slowly may be dropped. feeds: they get others
	// than answers in order. slowClose: instead, their connections end.
	limited, feeds, slowClose bool

	mu      sync.Mutex
	dropped map[wsID]bool
	opened  int
	closed  int
	slow    []uint32
	codes   map[uint32]websocket.Code // of OnClose
	// begun and ended are the last broadcasts of connections that have begun and have
	// ended; known is what begun, or ended, was for a message to a client.
	begun, ended map[uint32]uint32
	known        map[uint64]map[uint32]uint32
}

// wsID is a message of the server's.
type wsID struct {
	id  uint64
	num uint32
}

func newWS(v *served) http.Handler {
	w := &wsServer{v: v, dropped: make(map[wsID]bool), codes: make(map[uint32]websocket.Code),
		begun: make(map[uint32]uint32), ended: make(map[uint32]uint32), known: make(map[uint64]map[uint32]uint32)}
	o := websocket.Options{OnOpen: w.open, OnMessage: w.message, OnClose: w.over,
		MaxUnsent: -1, MaxMessage: maxBody + 1000}
	w.feeds = v.dice.IntN(2) == 0
	if v.dice.IntN(2) == 0 {
		w.limited = true
		o.MaxUnsent = 64 << 10
		if w.slowClose = v.dice.IntN(2) == 0; !w.slowClose {
			o.Slow = websocket.SlowDrop
		}
	}
	switch v.dice.IntN(4) {
	case 0, 1:
		o.Compression = &websocket.Compression{Threshold: 1 + v.dice.IntN(300), Window: 9 + v.dice.IntN(7)}
	case 2:
		o.Compression = &websocket.Compression{NoTakeover: true}
	}
	byLoop, err := websocket.New(&o)
	if err != nil {
		panic(err)
	}
	o.OnOpen, o.OnMessage, o.Serve = nil, nil, w.serve
	byRead, err := websocket.New(&o)
	if err != nil {
		panic(err)
	}
	v.ws = w
	v.ends = append(v.ends, w.end)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		v.running.Add(1)
		defer v.running.Add(-1)
		if strings.HasPrefix(r.URL.Path, "/serve/") {
			byRead.ServeHTTP(rw, r)
		} else {
			byLoop.ServeHTTP(rw, r)
		}
	})
}

func (w *wsServer) open(c *websocket.Conn, r *http.Request) {
	_, no, _ := strings.Cut(r.URL.Path[1:], "/")
	n, _ := strconv.ParseUint(no, 10, 32)
	key := uint32(n)
	c.SetValue(key)
	w.room.Join(c)
	id := uint64(key) << 32
	w.mu.Lock()
	w.opened++
	w.known[id] = maps.Clone(w.begun)
	w.mu.Unlock()
	w.answer(c, wsHello, id, 0, 0)
}

func (w *wsServer) over(c *websocket.Conn, code websocket.Code, _ string) {
	key := c.Value().(uint32)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed++
	w.codes[key] = code
	delete(w.begun, key)
	delete(w.ended, key)
}

// code returns what OnClose was told of a connection; 0 if it was not called.
func (w *wsServer) code(key uint32) websocket.Code {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.codes[key]
}

// tooSlow records that a connection seems to have ended because its client is too slow;
// end checks whether it has. OnClose may come later than the reset.
func (w *wsServer) tooSlow(key uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow = append(w.slow, key)
}

// isDropped reports whether the server knows that it has not sent a message.
func (w *wsServer) isDropped(id uint64, num uint32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped[wsID{id, num}]
}

// takeKnown returns what was known when a message was sent.
func (w *wsServer) takeKnown(id uint64) map[uint32]uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.known[id]
	delete(w.known, id)
	return k
}

// wsBody is the same for some numbers in a row, so that compressed messages refer to those
// before them.
func wsBody(id uint64, num uint32, size int) []byte { return body(id+uint64(num/8), size) }

func wsMessage(kind byte, id uint64, num uint32, size int) []byte {
	b := make([]byte, 0, wsHeader+size)
	b = binary.BigEndian.AppendUint64(append(b, kind), id)
	b = binary.BigEndian.AppendUint32(b, num)
	return append(b, wsBody(id, num, size)...)
}

func (w *wsServer) answer(c *websocket.Conn, kind byte, id uint64, num uint32, size int) {
	if c.Send(websocket.TypeBinary, wsMessage(kind, id, num, size)) != nil {
		w.drop(id, num)
	}
}

func (w *wsServer) drop(id uint64, num uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped[wsID{id, num}] = true
}

func (w *wsServer) message(c *websocket.Conn, t websocket.Type, p []byte) {
	w.v.running.Add(1)
	defer w.v.running.Add(-1)
	if t == websocket.TypeText {
		if c.Send(t, p) != nil {
			id, _ := strconv.ParseUint(string(p[1:17]), 16, 64)
			w.drop(id, 0)
		}
		return
	}
	kind, id, num := p[0], binary.BigEndian.Uint64(p[1:]), binary.BigEndian.Uint32(p[9:])
	size := len(p) - wsHeader
	if string(p[wsHeader:]) != string(wsBody(id, num, size)) {
		w.v.wrong(fmt.Errorf("message %c %x %d of a client is another", kind, id, num))
	}
	key := uint32(id >> 32)
	switch kind {
	case wsEcho:
		w.answer(c, kind, id, num, size)
	case wsSlow:
		w.v.world.Point(id)
		time.Sleep(time.Duration(num) * time.Microsecond)
		w.v.world.Point(id)
		w.answer(c, kind, id, num, size)
	case wsWrite:
		if c.Write(context.Background(), websocket.TypeBinary, p) != nil {
			w.drop(id, num)
		}
	case wsMany:
		for i := range num {
			w.answer(c, kind, id, i, size)
			if i%4 == 3 {
				w.v.world.Point(id)
			}
		}
	case wsLate:
		w.v.running.Add(1)
		go func() {
			defer w.v.running.Add(-1)
			w.v.world.Point(id)
			w.answer(c, kind, id, num, size)
		}()
	case wsBroadcast:
		w.mu.Lock()
		w.begun[key] = num
		w.mu.Unlock()
		w.room.Broadcast(websocket.TypeBinary, p)
		w.mu.Lock()
		w.ended[key] = num
		w.mu.Unlock()
	case wsSync:
		w.mu.Lock()
		w.known[id] = maps.Clone(w.ended)
		w.mu.Unlock()
		w.answer(c, kind, id, num, size)
	case wsClose:
		c.Close(wsCode, "bye")
	case wsPanic:
		panic(http.ErrAbortHandler)
	}
}

// serve is Options.Serve.
func (w *wsServer) serve(c *websocket.Conn, r *http.Request) {
	w.open(c, r)
	for {
		t, p, err := c.Read(context.Background())
		if err != nil {
			if !errors.As(err, new(*websocket.CloseError)) {
				w.v.wrong(fmt.Errorf("Read: %w", err))
			}
			return
		}
		w.v.world.Point(2<<40 | uint64(c.Value().(uint32))) // beside the loop that has passed the message on
		w.message(c, t, p)
	}
}

// end checks that all connections have ended, once.
func (w *wsServer) end() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.room.Len(); n != 0 || w.opened != w.closed {
		return fmt.Errorf("%d connections have opened and %d closed; %d are in the room at the end", w.opened, w.closed, n)
	}
	for _, key := range w.slow {
		if w.codes[key] != websocket.CodePolicy {
			return fmt.Errorf("WebSocket %d was reset, and OnClose has code %d", key, w.codes[key])
		}
	}
	return nil
}
