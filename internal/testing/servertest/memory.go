package servertest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Memory is a listener whose connections are net.Pipes.
type Memory struct {
	Conns chan net.Conn // what Accept returns
	once  sync.Once
	done  chan struct{}
}

func NewMemory() *Memory { return &Memory{Conns: make(chan net.Conn), done: make(chan struct{})} }

func (m *Memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.Conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *Memory) Close() error   { m.once.Do(func() { close(m.done) }); return nil }
func (m *Memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

// Dial returns a client's end, with Patience as its deadline.
func (m *Memory) Dial(t *testing.T) net.Conn {
	client, server := net.Pipe()
	client.SetDeadline(time.Now().Add(Patience))
	t.Cleanup(func() { client.Close() })
	select {
	case m.Conns <- server:
	case <-time.After(Patience):
		t.Fatal("nothing accepts")
	}
	return client
}

// Patient dials without a deadline, for a synctest bubble, where Patience may
// be a short time.
func (m *Memory) Patient(t *testing.T) *Client {
	nc := m.Dial(t)
	nc.SetDeadline(time.Time{})
	return Wrap(t, nc)
}

// DialContext is for http.Transport, which may dial after the last Accept.
func (m *Memory) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.Conns <- server:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Took runs f and returns how long it took, which is exact in a bubble.
func Took(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}
