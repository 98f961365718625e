package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/quic-go/quic-go"
)

// IdleH3 is a set of connections of HTTP/3 on which nothing happens.
type IdleH3 struct {
	by      []*quic.Transport // a few sockets, over which all connections go
	conns   []quicConn        // the zero value where opening failed
	request []byte
	events  [][]*bufio.Reader // of each connection, if there are streams of events
}

// OpenIdleH3 opens n connections to addr, and makes one request on each. The last argument is not used: they speak TLS in any
// case.
func OpenIdleH3(ctx context.Context, addr string, n int, _ *tls.Config) (*IdleH3, error) {
	return openIdleH3(ctx, addr, "/", n, func(i *IdleH3, k int, r *bufio.Reader) error {
		_, err := i.conns[k].get(ctx, i.request, r)
		return err
	})
}

// OpenEventsH3 returns a function like OpenIdleH3 for n streams of events, so many on each connection.
func OpenEventsH3(streams int) func(ctx context.Context, addr string, n int, cfg *tls.Config) (*IdleH3, error) {
	return func(ctx context.Context, addr string, n int, _ *tls.Config) (*IdleH3, error) {
		conns := (n + streams - 1) / streams
		return openIdleH3(ctx, addr, "/debug/events", conns, func(i *IdleH3, k int, _ *bufio.Reader) error {
			for range min(streams, n-k*streams) {
				str, err := i.conns[k].ask(ctx, i.request)
				if err != nil {
					return err
				}
				r := bufio.NewReaderSize(str, 512)
				if err := h3Head(r); err != nil {
					return err
				}
				body := bufio.NewReaderSize(&h3Body{r: r}, 512)
				if err := lines(body, "retry: ", 1); err != nil {
					return err
				}
				i.events[k] = append(i.events[k], body)
			}
			return nil
		})
	}
}

func openIdleH3(ctx context.Context, addr, path string, n int, first func(i *IdleH3, k int, r *bufio.Reader) error) (*IdleH3, error) {
	request, err := h3Get(addr, path)
	if err != nil {
		return nil, err
	}
	i := &IdleH3{conns: make([]quicConn, n), request: request, events: make([][]*bufio.Reader, n)}
	for range workers {
		socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			i.Close()
			return nil, err
		}
		i.by = append(i.by, &quic.Transport{Conn: socket})
	}
	err = each(ctx, n, func(k int, r *bufio.Reader) (err error) {
		if i.conns[k], err = quicDial(ctx, i.by[k%workers], addr); err != nil {
			return err
		}
		return first(i, k, r)
	})
	if err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// Ask makes a request on every connection. It fails if any of them was closed.
func (i *IdleH3) Ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return each(ctx, len(i.conns), func(k int, r *bufio.Reader) error {
		_, err := i.conns[k].get(ctx, i.request, r)
		return err
	})
}

// Receive publishes n events and reads them on all streams.
func (i *IdleH3) Receive(ctx context.Context, addr string, n, size int) error {
	published := make(chan error, 1)
	go func() { published <- Publish(ctx, addr, n, size) }()
	err := each(ctx, len(i.conns), func(k int, _ *bufio.Reader) error {
		for _, r := range i.events[k] {
			if err := lines(r, "data: ", n); err != nil {
				return fmt.Errorf("events: %w", err)
			}
		}
		return nil
	})
	if err2 := <-published; err == nil {
		err = err2
	}
	return err
}

// Close closes the connections.
func (i *IdleH3) Close() {
	for _, c := range i.conns {
		if c.Conn != nil {
			c.close()
		}
	}
	for _, t := range i.by {
		t.Close()
		t.Conn.Close()
	}
}
