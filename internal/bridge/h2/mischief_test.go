package h2_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"net"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// This file is the clients of TestChaos.

var chaosPaths = []string{"/", "/large", "/pieces", "/echo", "/ignore", "/panic", "/deadline", "/context", "/direct", "/file", "/slow"}

// mischief is a client that does anything at any time, legal or nearly so.
func (c *raw) mischief(rnd *rand.Rand, steps int) {
	id := uint32(1)
	open := map[uint32]bool{} // those that may be sent bodies
	some := func() uint32 { return uint32(rnd.Intn(int(id)+1)) | 1 }
	for range steps {
		for range 1 + rnd.Intn(12) {
			switch rnd.Intn(12) {
			case 0, 1, 2, 3:
				if id > 1 && rnd.Intn(2) == 0 {
					id += 2
				}
				p := chaosPaths[rnd.Intn(len(chaosPaths))]
				end := rnd.Intn(3) > 0
				f := path(get, fmt.Sprintf("%s?n=%d", p, rnd.Intn(100_000)))
				if !end {
					f[0] = ":method: POST"
				}
				if rnd.Intn(3) == 0 {
					f = with(f, fmt.Sprintf("priority: u=%d, i=?%d", rnd.Intn(8), rnd.Intn(2)))
				}
				c.headers(id, end, f...)
				if !end {
					open[id] = true
				}
				if p == "/context" {
					c.fr.WriteRSTStream(id, 8)
					delete(open, id)
				}
				id += 2
			case 4, 5:
				for st := range open {
					end := rnd.Intn(4) == 0
					c.fr.WriteData(st, end, make([]byte, rnd.Intn(2000)+1))
					if end {
						delete(open, st)
					}
					break
				}
			case 6:
				if st := some(); st < id {
					c.fr.WriteRSTStream(st, 8)
					delete(open, st)
				}
			case 7:
				c.fr.WriteWindowUpdate(0, uint32(1+rnd.Intn(60_000)))
			case 8:
				if st := some(); st < id {
					c.fr.WriteWindowUpdate(st, uint32(1+rnd.Intn(60_000)))
				}
			case 9:
				c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: []uint32{0, 1, 1000, 65535, 1 << 20}[rnd.Intn(5)]})
			case 10:
				var b []byte
				c.fr.WriteRawFrame(0x10, 0, 0, append(binary.BigEndian.AppendUint32(b, some()), fmt.Sprintf("u=%d", rnd.Intn(8))...))
			case 11:
				c.fr.WritePing(false, [8]byte{})
			}
		}
		p := append([]byte(nil), c.out.Bytes()...)
		c.out.Reset()
		for len(p) > 0 { // in pieces that end within frames
			n := min(len(p), 1+rnd.Intn(4000))
			if _, err := c.Write(p[:n]); err != nil {
				return
			}
			p = p[n:]
		}
	}
	if rnd.Intn(3) == 0 {
		c.fr.WriteGoAway(0, 0, nil)
		c.send()
	}
}

// vandal makes connections, one after the other, on which it breaks the protocol at some
// time, in any way: each ends by that, or by leaving in the middle.
func (r *running) vandal(rnd *rand.Rand, conns int) {
	for range conns {
		c := r.bare()
		read := make(chan bool)
		if rnd.Intn(3) > 0 {
			go func() { io.Copy(io.Discard, c.Conn); close(read) }()
		} else {
			close(read)
		}
		if rnd.Intn(20) > 0 {
			c.out.WriteString(http2.ClientPreface)
		}
		if rnd.Intn(20) > 0 {
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: []uint32{0, 1, 65535, 1 << 30}[rnd.Intn(4)]})
		}
		id, lawless := uint32(1), 3+rnd.Intn(60)
		for range 100 {
			if rnd.Intn(lawless) == 0 {
				c.breaks(rnd, id)
			} else {
				id = c.begins(rnd, id)
			}
			if rnd.Intn(4) > 0 {
				continue
			}
			p := append([]byte(nil), c.out.Bytes()...)
			c.out.Reset()
			if rnd.Intn(30) == 0 && len(p) > 1 {
				c.Write(p[:1+rnd.Intn(len(p)-1)]) // half a frame, perhaps
				break
			}
			if _, err := c.Write(p); err != nil {
				break
			}
		}
		if tcp, ok := c.Conn.(*net.TCPConn); ok && rnd.Intn(2) == 0 {
			tcp.SetLinger(0)
		}
		c.Close()
		<-read
	}
}

// begins writes what is allowed, and returns the next stream.
func (c *raw) begins(rnd *rand.Rand, id uint32) uint32 {
	f := path(get, fmt.Sprintf("%s?n=%d", chaosPaths[rnd.Intn(len(chaosPaths))], rnd.Intn(100_000)))
	end := rnd.Intn(2) == 0
	if !end {
		f[0] = ":method: POST"
		if rnd.Intn(2) == 0 {
			f = with(f, fmt.Sprint("content-length: ", rnd.Intn(3000)))
		}
	}
	c.headers(id, end, f...)
	if !end {
		c.fr.WriteData(id, rnd.Intn(2) == 0, make([]byte, rnd.Intn(2000)))
	}
	return id + 2
}

// breaks writes what is not.
func (c *raw) breaks(rnd *rand.Rand, id uint32) {
	streams := []uint32{0, 1, 2, id, id + 2, max(id, 3) - 2, uint32(rnd.Intn(int(id) + 1)), 1<<31 - 1}
	st := streams[rnd.Intn(len(streams))]
	junk := make([]byte, rnd.Intn(50))
	rnd.Read(junk)
	switch rnd.Intn(14) {
	case 0, 1, 2:
		types := []http2.FrameType{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0x10, 0xff}
		c.fr.WriteRawFrame(types[rnd.Intn(len(types))], http2.Flags(rnd.Intn(256)), st, junk)
	case 3:
		c.fr.WriteRawFrame(http2.FrameType(rnd.Intn(10)), http2.Flags(rnd.Intn(64)), st, junk[:min(len(junk), []int{0, 1, 4, 5, 6, 8}[rnd.Intn(6)])])
	case 4:
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: junk, EndHeaders: true, EndStream: rnd.Intn(2) == 0})
	case 5:
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(get...)})
		for range rnd.Intn(20) {
			c.fr.WriteContinuation(id, false, nil)
		}
	case 6:
		c.fr.WriteData(st, rnd.Intn(2) == 0, make([]byte, rnd.Intn(16384)))
	case 7:
		c.fr.WriteDataPadded(st, false, junk, make([]byte, rnd.Intn(255)))
	case 8:
		c.fr.WriteWindowUpdate(st, []uint32{0, 1, 1<<31 - 1}[rnd.Intn(3)])
	case 9:
		c.fr.WriteSettings(http2.Setting{ID: http2.SettingID(rnd.Intn(10)), Val: rnd.Uint32() >> rnd.Intn(32)})
	case 10:
		c.headers(st, rnd.Intn(2) == 0, "a: b") // trailers, or a request without pseudo-fields
	case 11:
		c.fr.WriteRSTStream(st, http2.ErrCode(rnd.Intn(20)))
	case 12:
		c.out.Write(binary.BigEndian.AppendUint32(nil, rnd.Uint32())) // no frame
	case 13:
		c.out.Write([]byte{0xff, 0xff, 0xff, byte(rnd.Intn(10)), 0, 0, 0, 0, 1})
	}
}

// lawful is a client that breaks nothing but its own requests: bodies without end, resets
// in the middle, and handlers that do not read. Its connection lives on.
type lawful struct {
	*raw
	window int // the connection's, for bodies
	err    error
}

func (c *lawful) run(rnd *rand.Rand, steps int) {
	c.window = 65535
	id := uint32(1)
	for range steps {
		p := chaosPaths[rnd.Intn(len(chaosPaths))]
		c.headers(id, false, path(post, fmt.Sprintf("%s?n=%d", p, rnd.Intn(100_000)))...)
		for range rnd.Intn(8) {
			data, pad := make([]byte, rnd.Intn(8000)), make([]byte, rnd.Intn(200))
			if n := 1 + len(data) + len(pad); n <= c.window {
				c.window -= n
				c.fr.WriteDataPadded(id, false, data, pad)
			}
		}
		c.send()
		if rnd.Intn(2) == 0 {
			c.roundTrip()
		}
		if p == "/context" || rnd.Intn(2) == 0 {
			c.fr.WriteRSTStream(id, http2.ErrCodeCancel)
		} else {
			c.fr.WriteData(id, true, nil)
		}
		id += 2
		c.roundTrip()
	}
	for i := uint32(1); i < id; i += 2 {
		c.fr.WriteRSTStream(i, http2.ErrCodeCancel) // those that wait
	}
	c.roundTrip()
}

// roundTrip reads what has come until a PING is answered.
func (c *lawful) roundTrip() {
	c.fr.WritePing(false, [8]byte{1})
	c.send()
	for c.err == nil && !c.takes() {
	}
}

// takes takes a frame, and reports whether it was the answer to a PING.
func (c *lawful) takes() bool {
	f, err := c.fr.ReadFrame()
	if err != nil {
		c.err = err
		return false
	}
	switch f := f.(type) {
	case *http2.GoAwayFrame:
		c.err = fmt.Errorf("GOAWAY %v %s", f.ErrCode, f.DebugData())
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.window += int(f.Increment)
		}
	case *http2.DataFrame:
		if n := f.Header().Length; n > 0 {
			c.fr.WriteWindowUpdate(0, n)
			c.fr.WriteWindowUpdate(f.StreamID, n)
			c.send()
		}
	case *http2.PingFrame:
		return f.IsAck()
	}
	return false
}

// refunded waits until the connection's window is whole again, but for what is too little
// to be given back at once.
func (c *lawful) refunded() error {
	c.SetDeadline(time.Now().Add(servertest.Patience))
	for c.err == nil && c.window < 1<<20-32<<10 {
		c.takes()
	}
	return c.err
}
