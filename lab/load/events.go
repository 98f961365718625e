package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// OpenEvents opens n streams of events, for Receive.
func OpenEvents(ctx context.Context, addr string, n int, cfg *tls.Config) (*Idle, error) {
	first := func(c net.Conn, r *bufio.Reader) error {
		c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := fmt.Fprintf(c, "GET /debug/events HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", addr); err != nil {
			return err
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("a stream of events: %s", res.Status)
		}
		return lines(r, "retry: ", 1) // not the next bytes, which come later
	}
	i, err := openIdle(ctx, addr, n, cfg, first, nil)
	if err == nil {
		i.reads = func(c net.Conn, _ int, r *bufio.Reader, count int) error { return events(c, r, count) }
	}
	return i, err
}

// events reads n events.
func events(c net.Conn, r *bufio.Reader, n int) error {
	c.SetDeadline(time.Now().Add(time.Minute))
	return lines(r, "data: ", n)
}

// lines reads until there have been n lines that begin like this.
func lines(r *bufio.Reader, begin string, n int) error {
	for n > 0 {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte(begin)) {
			n--
		}
	}
	return nil
}

// Publish publishes events by a connection of its own.
func Publish(ctx context.Context, addr string, n, size int) error {
	req, err := http.NewRequestWithContext(ctx, "POST", fmt.Sprintf("http://%s/debug/publish?n=%d&size=%d", addr, n, size), nil)
	if err != nil {
		return err
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body)
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("publishing: %s", res.Status)
	}
	return nil
}

// Receive publishes n events and reads them on all connections.
func (i *Idle) Receive(ctx context.Context, addr string, n, size int) error {
	published := make(chan error, 1)
	go func() { published <- Publish(ctx, addr, n, size) }()
	err := each(ctx, len(i.conns), func(k int, r *bufio.Reader) error {
		r.Reset(i.conns[k])
		return i.reads(i.conns[k], k, r, n)
	})
	if err2 := <-published; err == nil {
		err = err2
	}
	return err
}
