package wscheck

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Bounded returns h, which opens WebSockets, and reports frames that it writes without a
// deadline: a client that does not read would hold a goroutine.
func Bounded(t *testing.T, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(boundedWriter{w, t}, r) })
}

type boundedWriter struct {
	http.ResponseWriter
	t *testing.T
}

func (w boundedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	return &bounded{Conn: nc, t: w.t}, rw, err
}

type bounded struct {
	net.Conn
	t *testing.T

	mu     sync.Mutex
	opened bool // the handshake was written
	until  time.Time
}

func (c *bounded) SetDeadline(u time.Time) error {
	c.note(u)
	return c.Conn.SetDeadline(u)
}

func (c *bounded) SetWriteDeadline(u time.Time) error {
	c.note(u)
	return c.Conn.SetWriteDeadline(u)
}

func (c *bounded) note(u time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = u
}

func (c *bounded) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.opened && c.until.IsZero() {
		c.t.Errorf("%d bytes are written without a deadline", len(p))
	}
	c.opened = true
	c.mu.Unlock()
	return c.Conn.Write(p)
}
