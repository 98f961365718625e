package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/chert-http/chert/lab/exchange"
)

// Idle is a set of keep-alive connections on which nothing happens.
type Idle struct {
	asks  func(c net.Conn, r *bufio.Reader) error // makes an exchange on a connection
	conns []net.Conn                              // nil where opening failed
	// reads reads count events on connection k, if they are streams of events.
	reads func(c net.Conn, k int, r *bufio.Reader, count int) error
}

// workers open connections and ask at the same time: enough to keep a server busy, far below its backlog.
const workers = 16

// perSource bounds the connections from one address: Linux has 28,000 ephemeral ports for each by default, some of
// which are taken or wait for reuse. All of 127.0.0.0/8 is local, so there is no lack of addresses. A variable for tests.
var perSource = 20000

// OpenIdle opens n connections to addr, and sends one request on each, so that the server has allocated
// everything that it keeps for one. With cfg they speak TLS.
func OpenIdle(ctx context.Context, addr string, n int, cfg *tls.Config) (*Idle, error) {
	request := exchange.Get("/").Text(addr)
	asks := func(c net.Conn, r *bufio.Reader) error { return ask(c, r, request) }
	return openIdle(ctx, addr, n, cfg, asks, asks)
}

// openIdle opens connections, and makes a first exchange on each.
func openIdle(ctx context.Context, addr string, n int, cfg *tls.Config, first, asks func(net.Conn, *bufio.Reader) error) (*Idle, error) {
	i, err := openIdleAt(ctx, addr, n, cfg, func(c net.Conn, _ int, r *bufio.Reader) error { return first(c, r) })
	if err == nil {
		i.asks = asks
	}
	return i, err
}

// openIdleAt is openIdle for a first exchange that differs from connection to connection.
func openIdleAt(ctx context.Context, addr string, n int, cfg *tls.Config, first func(c net.Conn, k int, r *bufio.Reader) error) (*Idle, error) {
	i := &Idle{conns: make([]net.Conn, n)}
	err := each(ctx, n, func(k int, r *bufio.Reader) error {
		dialer := net.Dialer{Timeout: 5 * time.Second}
		if source := k / perSource; source > 0 {
			dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+source))}
			dialer.Control = portAtConnect
		}
		c, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		if i.conns[k] = c; cfg != nil {
			i.conns[k] = tls.Client(c, cfg)
		}
		r.Reset(i.conns[k])
		return first(i.conns[k], k, r)
	})
	if err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// Ask makes a request on every connection. It fails if any of them was closed.
func (i *Idle) Ask(ctx context.Context) error {
	return each(ctx, len(i.conns), i.ask)
}

func (i *Idle) ask(k int, r *bufio.Reader) error {
	r.Reset(i.conns[k])
	return i.asks(i.conns[k], r)
}

// Close closes the connections with a reset: ten thousand of them in TIME_WAIT would hinder the next run.
func (i *Idle) Close() {
	for _, c := range i.conns {
		if c == nil {
			continue
		}
		if tc, ok := c.(*tls.Conn); ok {
			c = tc.NetConn()
		}
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

// each calls f for 0 to n-1 from a few goroutines, each with a reader of its own, until one call fails.
func each(ctx context.Context, n int, f func(k int, r *bufio.Reader) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := bufio.NewReader(nil)
			for k := w; k < n && ctx.Err() == nil; k += workers {
				if err := f(k, r); err != nil {
					fail(fmt.Errorf("connection %d of %d: %w", k+1, n, err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
