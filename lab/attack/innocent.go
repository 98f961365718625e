package attack

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// patience is how long an innocent client waits for an answer; one that waits longer counts with that.
const patience = 5 * time.Second

// latency is what the innocent clients of one kind have seen.
type latency struct {
	mu     sync.Mutex
	all    []time.Duration
	failed int
	fault  string // the first
}

func (l *latency) add(d time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if l.failed++; l.fault == "" {
			l.fault = err.Error()
		}
	}
	l.all = append(l.all, min(d, patience))
}

func (l *latency) quantile(q float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return patience
	}
	slices.Sort(l.all)
	return l.all[min(int(q*float64(len(l.all))), len(l.all)-1)]
}

// innocents are two kinds of clients that do no harm: "kept" has one connection, "new" makes one for each request. Each
// asks every pause, or as soon as it has an answer if that takes longer. The last request counts too, however long it
// takes beyond ctx: it may be the one that the attack has stopped.
func innocents(ctx context.Context, addr string, f front) (kept, fresh *latency, wait func()) {
	kept, fresh = new(latency), new(latency)
	lasting := context.WithoutCancel(ctx) // a deadline of ctx would be that of connecting
	var all sync.WaitGroup
	all.Go(func() {
		var c innocent
		every(ctx, 5*time.Millisecond, func() {
			began := time.Now()
			var err error
			if c == nil {
				c, err = f.connect(lasting, addr)
			}
			if err == nil {
				err = c.ask(false)
			}
			if kept.add(time.Since(began), err); err != nil && c != nil {
				c.Close()
				c = nil
			}
		})
		if c != nil {
			c.Close()
		}
	})
	all.Go(func() {
		every(ctx, 10*time.Millisecond, func() {
			began := time.Now()
			c, err := f.connect(lasting, addr)
			if err == nil {
				err = c.ask(true)
				c.Close()
			}
			fresh.add(time.Since(began), err)
		})
	})
	return kept, fresh, all.Wait
}

func every(ctx context.Context, pause time.Duration, do func()) {
	t := time.NewTicker(pause)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			do()
		}
	}
}

// innocent has a connection on which it asks for the shortest page.
type innocent interface {
	// ask makes a request, which is the last one or not, and checks the answer.
	ask(last bool) error
	Close() error
}

func (f front) connect(ctx context.Context, addr string) (innocent, error) {
	if f == withH3 {
		return connectH3(ctx, addr), nil
	}
	c, err := connect(ctx, addr, f != plain)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// client is an innocent one of HTTP/1.
type client struct {
	net.Conn
	r *bufio.Reader
}

func connect(ctx context.Context, addr string, secure bool) (*client, error) {
	c, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(patience))
	if secure {
		t := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
		if err := t.Handshake(); err != nil {
			c.Close()
			return nil, err
		}
		c = t
	}
	return &client{c, bufio.NewReaderSize(c, 1<<10)}, nil
}

var errAnswer = errors.New("another answer than expected")

// ask implements innocent.
func (c *client) ask(last bool) error {
	fields := ""
	if last {
		fields = "Connection: close\r\n"
	}
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: target\r\n"+fields+"\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return err
	}
	return check(res)
}

// check reads an answer.
func check(res *http.Response) error {
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || string(b) != "Hello, World!" {
		return errAnswer
	}
	return nil
}

// clientH3 is an innocent one of HTTP/3.
type clientH3 struct {
	http3.Transport
	ctx context.Context
	url string
}

// connectH3 returns a client that connects with its first request.
func connectH3(ctx context.Context, addr string) *clientH3 {
	return &clientH3{Transport: http3.Transport{TLSClientConfig: clientTLS()}, ctx: ctx, url: "https://" + addr + "/"}
}

func clientTLS() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http3.NextProtoH3}}
}

// ask implements innocent.
func (c *clientH3) ask(bool) error {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return err
	}
	res, err := c.RoundTrip(req)
	if err != nil {
		return err
	}
	return check(res)
}
