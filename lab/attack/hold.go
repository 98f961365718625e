package attack

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
)

// holders cost memory by what they do not finish, or do not read.
var holders = []attack{
	{
		name: "ws-pongs", attackers: 100, heap: 100 * 0.3,
		about: "WebSocket Pings whose Pongs are not read (docs/limits.md)",
		run: func(ctx context.Context, a *attacker) error {
			c, err := openWS(ctx, a.addr[plain])
			if err != nil {
				return err
			}
			defer c.Close()
			unread(c)
			return send(c, repeat(append(header(9, true, 125), make([]byte, 125)...), 100), 100, a)
		},
	},
	{
		name: "h2-heads", attackers: 10, heap: 200, // 160 of it are the handlers' own fields, as with net/http
		about: "250 requests on each connection for 64 KB of fields, and no response is read",
		run: func(ctx context.Context, a *attacker) error {
			c, err := openH2(ctx, a.addr[plain])
			if err != nil {
				return err
			}
			defer c.Close()
			unread(c)
			return hold(ctx, c, a, 250, func(b []byte, id uint32) []byte {
				return frame(b, typeHeaders, endHeaders|endStream, id, get("/fields?kb=64"))
			})
		},
	},
	{
		name: "h2-references", attackers: 20, heap: 60,
		about: "240 requests on each connection of 16 references to an entry of 3.8 KB, with closed windows",
		run: func(ctx context.Context, a *attacker) error {
			c, err := openH2(ctx, a.addr[plain], 4, 0) // SETTINGS_INITIAL_WINDOW_SIZE
			if err != nil {
				return err
			}
			defer c.Close()
			discard(c)
			large := literal(nil, true, "x-large", strings.Repeat("x", 3800))
			first := true
			return hold(ctx, c, a, 240, func(b []byte, id uint32) []byte {
				block := get("/")
				if first {
					first = false
					block = append(block, large...)
				}
				block = append(block, repeat([]byte{0x80 | 62}, 16)...)
				return frame(b, typeHeaders, endHeaders|endStream, id, block)
			})
		},
	},
	{
		name: "h2-messages", attackers: 1, heap: 40, chertOnly: true,
		about: "all but the last byte of a WebSocket message of 1 MB on each of 240 streams of one connection",
		run: func(ctx context.Context, a *attacker) error {
			c, err := openH2(ctx, a.addr[plain])
			if err != nil {
				return err
			}
			defer c.Close()
			return unfinished(c, a, 240, 1<<20-1)
		},
	},
	{
		name: "slow-readers", attackers: 40,
		about: "responses of 4 MiB that are not read (docs/limits.md: what a response may have waiting)",
		run: func(ctx context.Context, a *attacker) error {
			c, err := dial(ctx, a.addr[plain])
			if err != nil {
				return err
			}
			defer c.Close()
			unread(c)
			if _, err := fmt.Fprint(c, "GET /large HTTP/1.1\r\nHost: target\r\n\r\n"); err != nil {
				return err
			}
			a.sent.Add(1)
			<-ctx.Done()
			return nil
		},
	},
}

// hold opens n streams and keeps the connection.
func hold(ctx context.Context, c net.Conn, a *attacker, n int, make func(b []byte, id uint32) []byte) error {
	for i := range n {
		if _, err := c.Write(make(nil, uint32(2*i+1))); err != nil {
			return err
		}
		a.sent.Add(1)
	}
	<-ctx.Done()
	return nil
}

// unfinished sends size bytes of a message of one more on each of n streams, as the windows allow.
func unfinished(c net.Conn, a *attacker, n, size int) error {
	var b []byte
	left := make(map[uint32]int)
	window := make(map[uint32]int)
	for i := range n {
		id := uint32(2*i + 1)
		b = frame(b, typeHeaders, endHeaders, id, extended("/ws"))
		b = frame(b, typeData, 0, id, header(2, true, size+1))
		left[id], window[id] = size, 65535-14
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	conn, initial := 65535-14*n, 65535
	piece := make([]byte, 16<<10)
	var head [9]byte
	for {
		for id, l := range left {
			for m := min(l, window[id], conn, len(piece)); m > 0; m = min(l, window[id], conn, len(piece)) {
				if _, err := c.Write(frame(nil, typeData, 0, id, piece[:m])); err != nil {
					return err
				}
				l, window[id], conn = l-m, window[id]-m, conn-m
				a.sent.Add(int64(m))
			}
			if left[id] = l; l == 0 {
				delete(left, id)
			}
		}
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return err
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c, payload); err != nil {
			return err
		}
		id := binary.BigEndian.Uint32(head[5:])
		switch head[3] {
		case typeWindow:
			if n := int(binary.BigEndian.Uint32(payload)); id == 0 {
				conn += n
			} else {
				window[id] += n
			}
		case typeReset:
			delete(left, id)
		case typeSettings:
			for ; len(payload) >= 6; payload = payload[6:] {
				if binary.BigEndian.Uint16(payload) == 4 {
					more := int(binary.BigEndian.Uint32(payload[2:])) - initial
					initial += more
					for id := range window {
						window[id] += more
					}
				}
			}
		}
	}
}
