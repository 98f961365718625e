//go:build linux

package sim

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
)

// What a client of WebSockets sends.

// finish ends the connection in one of the orderly ways, or breaks the protocol; the server
// must answer all that was sent before.
func (c *wsClient) finish() bool {
	if len(c.late) > 0 && c.d.OneIn(2) {
		c.forgetDropped()
		if len(c.late) > 0 {
			return false // awaits the answers
		}
	}
	c.closing = true
	switch c.d.IntN(8) {
	default:
		c.note("close", 0, 0)
		c.said, c.ends = true, true
		code := []byte{3, 232, 'e', 'n', 'd'}
		want := uint32(1000)
		if c.d.OneIn(4) {
			code, want = nil, wsNoCode
		}
		c.frame(0x80|opClose, code)
		c.expect(due{op: opClose, num: want})
	case 4:
		c.note("half-closes", 0, 0)
		c.fin, c.ends = true, true
	case 5:
		c.note("asks for a close", 0, 0)
		c.send(opBinary, wsMessage(wsClose, c.id(), 0, 0), due{op: opClose, num: wsCode})
	case 6:
		c.note("asks for a panic", 0, 0)
		c.send(opBinary, wsMessage(wsPanic, c.id(), 0, 0), due{op: opClose, num: wsInternal})
	case 7:
		c.violate()
	}
	return true
}

// violate sends what the server must refuse.
func (c *wsClient) violate() {
	n := c.d.IntN(7)
	c.note("violates", n, 0)
	c.ends = true
	code := uint32(wsProtocol)
	switch n {
	case 0:
		c.out = append(c.out, 0x80|opBinary, 3, 'a', 'b', 'c') // not masked
	case 1:
		c.frame(0xa0|opBinary, []byte("abc"))
	case 2:
		c.frame(0x80|3, nil)
	case 3:
		c.said = true
		c.frame(0x80|opClose, []byte{3})
	case 4:
		c.said = true
		c.frame(0x80|opClose, []byte{3, 237}) // 1005
	case 5:
		c.frame(0x80|opText, []byte("ab\xffcd"))
		code = wsInvalid
	case 6:
		c.out = binary.BigEndian.AppendUint64(append(c.out, 0x80|opBinary, 0x80|127), 10<<20)
		c.out = append(c.out, 1, 2, 3, 4)
		code = wsBig
	}
	c.expect(due{op: opClose, num: code})
}

func (c *wsClient) id() uint64 {
	c.next++
	return uint64(c.key)<<32 | uint64(c.next)
}

func (c *wsClient) size() int {
	if c.v.ws.limited && c.d.OneIn(20) {
		return c.d.IntN(40_000)
	}
	switch n := c.d.IntN(1000); {
	case n == 0:
		return c.d.IntN(maxBody)
	case n < 4:
		return 1<<16 - wsHeader - 2 + c.d.IntN(4)
	case n < 30:
		return c.d.IntN(12_000)
	case n < 80:
		return 125 - wsHeader - 1 + c.d.IntN(4)
	case n < 150:
		return 0
	}
	return c.d.IntN(120)
}

func (c *wsClient) message() {
	c.left--
	m := due{op: opBinary, kind: wsEcho, id: c.id(), size: c.size()}
	feeds := c.v.ws.feeds
	switch n := c.d.IntN(100); {
	case n < 15:
		m.op, m.kind, m.size = opText, 't', m.size%(maxBody/2)
		c.send(opText, textMessage(m.id, m.size), m)
		return
	case n < 18:
		m.kind, m.num = wsSlow, uint32(c.d.IntN(3000))
	case n < 22:
		m.kind = wsWrite
	case n < 24 && feeds:
		m.kind, m.size = wsMany, c.d.IntN(4096)
		parts := make([]due, 1+c.d.IntN(20))
		for i := range parts {
			m.num = uint32(i)
			parts[i] = m
		}
		c.send(opBinary, wsMessage(m.kind, m.id, uint32(len(parts)), m.size), parts...)
		return
	case n < 27 && feeds:
		c.late[m.id] = m.size
		c.send(opBinary, wsMessage(wsLate, m.id, 0, m.size))
		return
	case n < 32 && feeds:
		c.sent++
		m.kind, m.num = wsBroadcast, c.sent
	case n < 34:
		m.kind, m.size = wsSync, 0
	}
	c.send(opBinary, wsMessage(m.kind, m.id, m.num, m.size), m)
}

// textMessage is UTF-8 with characters of one, two and three bytes.
func textMessage(id uint64, size int) []byte {
	b := fmt.Appendf(nil, "t%016x", id)
	for _, x := range body(id, size) {
		switch {
		case x < 200:
			b = append(b, 'a'+x%26)
		case x < 230:
			b = append(b, "é"...)
		default:
			b = append(b, "漢"...)
		}
	}
	return b
}

// send sends a message that is to be answered by others: in one frame or in several, with
// Pings between them, compressed or not.
func (c *wsClient) send(op byte, p []byte, answers ...due) {
	first := op
	if c.zip && c.d.IntN(2) == 0 {
		p = c.deflate(p)
		first |= 0x40
	}
	for c.d.OneIn(4) {
		n := c.d.IntN(len(p) + 1)
		c.frame(first, p[:n])
		first, p = opMore, p[n:]
		if c.d.OneIn(3) {
			c.ping()
		}
	}
	c.frame(0x80|first, p)
	c.waiting = append(c.waiting, answers...)
	if c.d.OneIn(30) {
		c.ping()
	}
}

func (c *wsClient) ping() {
	m := due{op: opPing, id: c.id()}
	c.frame(0x80|opPing, binary.BigEndian.AppendUint64(make([]byte, c.d.IntN(126-8)), m.id))
	m.op = opPong
	c.expect(m)
}

// frame sends a masked frame.
func (c *wsClient) frame(first byte, p []byte) {
	b := append(c.out, first)
	switch n := len(p); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	key := c.d.Uint32()
	if c.d.OneIn(10) {
		key = 0
	}
	b = binary.LittleEndian.AppendUint32(b, key)
	for i, x := range p {
		b = append(b, x^byte(key>>(8*(i%4))))
	}
	c.out = b
}

// deflate compresses a message without a window (RFC 7692 section 7.2.1).
func (c *wsClient) deflate(p []byte) []byte {
	var b bytes.Buffer
	if c.deflater == nil {
		c.deflater, _ = flate.NewWriter(&b, 1)
	} else {
		c.deflater.Reset(&b)
	}
	c.deflater.Write(p)
	c.deflater.Flush()
	return bytes.TrimSuffix(b.Bytes(), []byte{0, 0, 0xff, 0xff})
}
