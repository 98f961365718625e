//go:build linux

package sim

import (
	"bytes"
	"compress/flate"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sim"
)

// Opcodes (RFC 6455 section 5.2).
const (
	opMore, opText, opBinary     = 0, 1, 2
	opClose, opPing, opPong      = 8, 9, 10
	wsGoingAway, wsInternal      = 1001, 1011
	wsProtocol, wsInvalid, wsBig = 1002, 1007, 1009
	wsNoCode, wsPolicy           = 1005, 1008
)

// due is a message, a Pong or a Close frame that is to arrive.
type due struct {
	op   byte
	kind byte
	id   uint64
	num  uint32 // also the code of a Close frame
	size int
}

// wsClient plays a client of WebSockets.
type wsClient struct {
	peer
	conns int // connections so far
	next  uint32

	key     uint32 // the connection's
	byServe bool   // by Options.Serve
	open    bool   // 101 has arrived
	refused bool
	zip     bool
	keeps   bool // the server's window lasts
	window  []byte
	// waiting has what is to arrive, in order, and late what may arrive at any time.
	waiting  []due
	late     map[uint64]int
	skipped  uint64 // the last Ping whose Pong has not come in its turn
	msg      []byte // of a message that is not complete
	msgOp    byte
	msgZip   bool
	closed   bool  // a Close frame has arrived
	until    int64 // when the connection must have ended; 0 for never
	said     bool  // one was sent
	fin      bool  // the client half-closes when all is sent
	ends     bool  // with what the client has sent, the server ends without waiting
	sent     uint32
	hello    map[uint32]uint32 // the broadcasts of others that had begun, as this connection joined
	first    map[uint32]uint32 // the first of each other that has arrived
	last     map[uint32]uint32
	deflater *flate.Writer
}

func (c *wsClient) state() string {
	s := fmt.Sprintf("open %v, Serve %v, %d due, %d late, Close sent %v, received %v",
		c.open, c.byServe, len(c.waiting), len(c.late), c.said, c.closed)
	if len(c.waiting) > 0 {
		s += fmt.Sprintf(", first %+v", c.waiting[0])
	}
	return s
}

// Next implements sim.Actor.
func (c *wsClient) Next() int64 {
	if next := c.peer.Next(); next != poll.Never || c.over || c.s == nil || c.until == 0 {
		return next
	}
	return c.until
}

// Step implements sim.Actor.
func (c *wsClient) Step() (did bool) {
	if c.over || c.paused() {
		return false
	}
	if c.s != nil && c.until != 0 && c.v.world.Now() >= c.until {
		c.fail("the server has sent a Close frame and awaits the answer for ever; %s", c.state())
		return true
	}
	if c.s == nil {
		return c.connect()
	}
	if !c.calm && c.d.OneIn(3000) {
		return c.misbehave()
	}
	if c.ask() {
		did = true
	}
	if c.push() {
		did = true
	}
	if c.arrive() {
		did = true
	}
	if c.receive() {
		did = true
	}
	if did {
		c.maybePause()
	}
	return did
}

func (c *wsClient) connect() bool {
	if c.left <= 0 {
		c.over = true
		return false
	}
	if !c.dial() {
		return true
	}
	c.conns++
	*c = wsClient{peer: c.peer, conns: c.conns, next: c.next, deflater: c.deflater, key: uint32(c.no*100_000 + c.conns),
		late: make(map[uint64]int), first: make(map[uint32]uint32), last: make(map[uint32]uint32)}
	c.byServe = c.d.OneIn(3)
	c.civil = c.byServe
	path := "loop"
	if c.byServe {
		path = "serve"
	}
	c.out = fmt.Appendf(nil, "GET /%s/%d HTTP/1.1\r\nHost: sim\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", path, c.key, c.nonce())
	if c.d.IntN(2) == 0 {
		c.out = append(c.out, "Sec-WebSocket-Extensions: permessage-deflate\r\n"...)
	}
	c.out = append(c.out, "\r\n"...)
	c.expect(due{op: opBinary, kind: wsHello, id: uint64(c.key) << 32})
	return true
}

// nonce is the connection's Sec-WebSocket-Key.
func (c *wsClient) nonce() string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%016d", c.key))
}

func (c *wsClient) expect(m due) { c.waiting = append(c.waiting, m) }

func (c *wsClient) misbehave() bool {
	switch c.d.IntN(3) {
	case 0, 1:
		c.leave()
		c.s = nil
	case 2:
		c.note("silent", 0, 0)
		c.excused, c.until = "silent", 0
		c.pause(4 * time.Minute)
	}
	return true
}

// ask sends messages, Pings among them, and ends the connection at last.
func (c *wsClient) ask() bool {
	if c.closing || len(c.out) > 64<<10 || len(c.waiting) >= 32 || len(c.waiting) > 0 && c.d.OneIn(4) {
		return false
	}
	if !c.open && !c.d.OneIn(8) { // RFC 6455 section 4.1 has clients wait, and attackers do not
		return false
	}
	if c.left <= 0 || c.d.OneIn(300) {
		return c.finish()
	}
	for range 1 + c.d.IntN(3) {
		c.message()
	}
	return true
}

func (c *wsClient) receive() bool {
	if c.fin && len(c.out) == 0 && !c.half {
		c.half = true
		c.s.CloseWrite()
	}
	did, err := c.pull()
	if !did {
		return false
	}
	for len(c.in) > 0 && !c.over {
		used, perr := c.parse(c.in)
		if perr == errPartial {
			break
		}
		if perr != nil {
			c.fail("%v; %s; in %.300q", perr, c.state(), c.in)
			return true
		}
		c.in = c.in[used:]
	}
	if len(c.in) == 0 {
		c.in = nil
	}
	if err != nil && !c.over {
		c.ended(err)
	}
	return true
}

// parse reads one frame, or the response to the opening handshake.
func (c *wsClient) parse(b []byte) (used int, err error) {
	switch {
	case c.refused:
		return len(b), nil
	case !c.open:
		return c.opened(b)
	}
	if len(b) < 2 {
		return 0, errPartial
	}
	n, at := int(b[1]), 2
	switch {
	case b[0]&0x30 != 0 || b[0]&0x40 != 0 && !c.zip || n&0x80 != 0:
		return 0, errors.New("a frame with reserved bits or masked")
	case n == 126 && len(b) < 4, n == 127 && len(b) < 10:
		return 0, errPartial
	case n == 126:
		n, at = int(binary.BigEndian.Uint16(b[2:])), 4
	case n == 127:
		n, at = int(binary.BigEndian.Uint64(b[2:])), 10
	}
	if len(b) < at+n {
		return 0, errPartial
	}
	p := b[at : at+n]
	op := b[0] & 15
	switch {
	case c.closed:
		return 0, errors.New("a frame after the Close frame")
	case op == opClose:
		err = c.closes(p)
	case op == opPing:
		if c.excused != "silent" && !c.fin {
			c.frame(0x80|opPong, p)
		}
	case op == opPong:
		err = c.pong(p)
	case op == opMore && c.msgOp == 0, op != opMore && c.msgOp != 0, op > opBinary:
		err = fmt.Errorf("opcode %d out of place", op)
	default:
		if op != opMore {
			c.msgOp, c.msgZip = op, b[0]&0x40 != 0
		}
		c.msg = append(c.msg, p...)
		if b[0]&0x80 != 0 {
			err = c.complete()
			c.msg, c.msgOp = nil, 0
		}
	}
	return at + n, err
}

// opened reads the response to the opening handshake.
func (c *wsClient) opened(b []byte) (used int, err error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, errPartial
	}
	head := string(b[:end+2])
	if !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		if len(head) > 13 && (head[9:12] == "503" && c.v.mayRefuse() || head[9:12] == "408") {
			c.note("refused", 0, 0)
			c.refused, c.excused, c.closing, c.fin = true, "refused", true, true
			return len(b), nil
		}
		return 0, errors.New("no status 101")
	}
	// RFC 6455 section 4.2.2.
	sum := sha1.Sum([]byte(c.nonce() + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if !strings.Contains(head, "\r\nSec-Websocket-Accept: "+base64.StdEncoding.EncodeToString(sum[:])+"\r\n") {
		return 0, errors.New("a wrong Sec-WebSocket-Accept")
	}
	c.open = true
	c.zip = strings.Contains(head, "permessage-deflate")
	c.keeps = !strings.Contains(head, "server_no_context_takeover")
	c.note("open", 0, 0)
	return end + 4, nil
}

// closes takes a Close frame.
func (c *wsClient) closes(p []byte) error {
	c.closed = true
	code := uint32(wsNoCode)
	if len(p) >= 2 {
		code = uint32(binary.BigEndian.Uint16(p))
	}
	c.note("Close frame", int(code), len(c.waiting))
	c.skip(true)
	for len(c.waiting) > 0 && c.waiting[0].op == opPong { // the client reads slowly: see pong
		c.waiting = c.waiting[1:]
		c.skip(true)
	}
	switch {
	case len(c.waiting) > 0 && c.waiting[0].op == opClose && c.waiting[0].num == code:
		c.waiting = nil
	case code == wsGoingAway && c.v.inside.Ending():
		c.excused = "going away"
	case code == wsPolicy && c.excused == "silent":
	default:
		return fmt.Errorf("a Close frame with %d", code)
	}
	c.closing = true
	if !c.said && !c.fin && c.excused != "silent" {
		c.said = true
		if c.d.OneIn(4) {
			c.excused = "silent" // does not answer, and the server gives up
			c.until = c.v.world.Now() + int64(30*time.Second)
		} else {
			c.frame(0x80|opClose, p[:min(2, len(p))])
		}
	}
	return nil
}

// pong takes a Pong: it must be that of the oldest Ping that has none, unless the client
// reads slowly. RFC 6455 section 5.5.3 permits to answer only the last.
func (c *wsClient) pong(p []byte) error {
	if len(p) < 8 {
		return errors.New("a Pong without a Ping")
	}
	id := binary.BigEndian.Uint64(p[len(p)-8:])
	if id == c.skipped {
		c.skipped = 0
		return nil
	}
	c.skip(true)
	for len(c.waiting) > 0 && c.waiting[0].op == opPong {
		m := c.waiting[0]
		if c.waiting = c.waiting[1:]; m.id == id {
			c.skipped = 0
			return nil
		}
		c.skipped = m.id
	}
	return fmt.Errorf("a Pong of Ping %x; not answered is %x", id, c.skipped)
}

// skip drops messages from the front that the server knows that it has not sent, or may not
// have: later is whether something has come that the server sends after them.
func (c *wsClient) skip(later bool) {
	for len(c.waiting) > 0 {
		m := c.waiting[0]
		message := m.op == opBinary || m.op == opText
		dropped := m.kind == wsBroadcast && later && c.v.ws.feeds || m.kind != wsBroadcast && c.v.ws.isDropped(m.id, m.num)
		if !message || !c.v.ws.limited || !dropped {
			return
		}
		c.note("dropped", int(m.id&0xffffffff), int(m.num))
		c.waiting = c.waiting[1:]
	}
}

func (c *wsClient) forgetDropped() {
	for id := range c.late {
		if c.v.ws.isDropped(id, 0) {
			delete(c.late, id)
		}
	}
}

// complete takes a message.
func (c *wsClient) complete() (err error) {
	p := c.msg
	if c.msgZip {
		if p, err = c.inflate(p); err != nil {
			return fmt.Errorf("inflating: %w", err)
		}
	}
	c.done++
	if c.msgOp == opText {
		return c.inOrder(p, due{op: opText}, func(m due) []byte { return textMessage(m.id, m.size) })
	}
	if len(p) < wsHeader {
		return errors.New("a short message")
	}
	got := due{op: opBinary, kind: p[0], size: len(p) - wsHeader,
		id: binary.BigEndian.Uint64(p[1:]), num: binary.BigEndian.Uint32(p[9:])}
	if !bytes.Equal(p[wsHeader:], wsBody(got.id, got.num, got.size)) {
		return fmt.Errorf("message %+v is another", got)
	}
	switch from := uint32(got.id >> 32); {
	case got.kind == wsBroadcast && from != c.key:
		return c.broadcast(from, got.num)
	case got.kind == wsLate:
		if size, ok := c.late[got.id]; !ok || size != got.size {
			return fmt.Errorf("message %+v was not to come", got)
		}
		delete(c.late, got.id)
		return nil
	}
	return c.inOrder(p, got, func(m due) []byte { return wsMessage(m.kind, m.id, m.num, m.size) })
}

// inOrder compares a message with the next that is to come.
func (c *wsClient) inOrder(p []byte, got due, make func(m due) []byte) error {
	for len(c.waiting) > 0 {
		m := c.waiting[0]
		switch {
		case m.op == opPong:
			c.skipped = m.id
		case m.op == got.op && (m.op == opText || m.id == got.id && m.num == got.num) && bytes.Equal(p, make(m)):
			c.waiting = c.waiting[1:]
			c.note(string(m.kind), int(m.id&0xffffffff), m.size)
			return c.arrived(m)
		case c.v.ws.limited && (m.kind == wsBroadcast && c.v.ws.feeds || c.v.ws.isDropped(m.id, m.num)):
			c.note("dropped", int(m.id&0xffffffff), int(m.num))
		default:
			return fmt.Errorf("message %+v %.40q instead of %+v", got, p, m)
		}
		c.waiting = c.waiting[1:]
	}
	return fmt.Errorf("message %+v %.40q where none is due", got, p)
}

// arrived judges, after a message that says how far others' broadcasts had come, which of
// them should have arrived.
func (c *wsClient) arrived(m due) error {
	switch m.kind {
	case wsHello:
		c.hello = c.v.ws.takeKnown(m.id)
		for from, n := range c.first {
			if n > c.hello[from]+1 && !c.v.ws.limited {
				return fmt.Errorf("broadcast %d of %d is the first; %d had begun", n, from, c.hello[from])
			}
		}
	case wsSync:
		for from, n := range c.v.ws.takeKnown(m.id) {
			if from != c.key && n > c.hello[from] && n > c.last[from] && !c.v.ws.limited {
				return fmt.Errorf("of %d's broadcasts the last is %d, and %d was before", from, c.last[from], n)
			}
		}
	}
	return nil
}

// broadcast takes one of another connection.
func (c *wsClient) broadcast(from, n uint32) error {
	last, ok := c.last[from]
	c.last[from] = n
	switch {
	case !ok:
		c.first[from] = n
		if c.hello != nil && n > c.hello[from]+1 && !c.v.ws.limited {
			return fmt.Errorf("broadcast %d of %d is the first; %d had begun", n, from, c.hello[from])
		}
	case n <= last || n > last+1 && !c.v.ws.limited:
		return fmt.Errorf("broadcast %d of %d follows %d", n, from, last)
	}
	return nil
}

// ended judges the end of the connection.
func (c *wsClient) ended(err error) {
	c.noteEnd("ended with due messages and bytes", err, len(c.waiting), len(c.in))
	for c.skip(true); c.fin && len(c.waiting) > 0 && c.waiting[0].op == opPong; c.skip(true) {
		c.waiting = c.waiting[1:] // the client reads slowly: see pong
	}
	whole := len(c.in) == 0 && c.msgOp == 0
	switch {
	case whole && c.closing && len(c.waiting) == 0 && (err == io.EOF || c.closed): // nothing is lost with a reset
	case c.excused != "":
	case !c.open && c.mayEndUnanswered(err):
	case c.byServe && c.v.tight && c.hello == nil && whole: // no descriptor for Hijack
	case err == syscall.ECONNRESET && c.v.inside.Ending() && c.v.setup.faults[sim.Jump] > 0:
		// The clock has jumped past the time that the client had to accept what waits and a Close frame.
	case c.v.ws.slowClose && (err == syscall.ECONNRESET || err == io.EOF && whole && c.ends && !c.closed):
		// What another goroutine sends finds the client too slow, and posts the reset. SlowClose
		// promises the end and code 1008, not how: the owner may first read what ends the
		// connection too, and then sends what was accepted, but no Close frame any more.
		c.v.ws.tooSlow(c.key)
	default:
		c.fail("the connection ends: %v; %s; OnClose has code %d", err, c.state(), c.v.ws.code(c.key))
		return
	}
	c.s.Close()
	c.s = nil
}

// inflate inflates a message of the server's, with its window (RFC 7692 section 7.2.2).
func (c *wsClient) inflate(p []byte) ([]byte, error) {
	tail := "\x00\x00\xff\xff\x01\x00\x00\xff\xff"
	r := flate.NewReaderDict(io.MultiReader(bytes.NewReader(p), strings.NewReader(tail)), c.window)
	m, err := io.ReadAll(r)
	if c.keeps {
		c.window = append(c.window, m...)
		c.window = c.window[max(0, len(c.window)-1<<15):]
	}
	return m, err
}
