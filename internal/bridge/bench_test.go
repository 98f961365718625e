package bridge

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
)

// idleTransport is a conn.Transport whose peer takes everything and sends
// nothing.
type idleTransport struct {
	now  int64
	sent int
	most int64 // of a file in one go, if not 0
}

func (t *idleTransport) Buffered() []byte           { return nil }
func (t *idleTransport) Discard(int)                {}
func (t *idleTransport) Unread([]byte)              {}
func (t *idleTransport) Fill() error                { return io.EOF }
func (t *idleTransport) Read([]byte) (int, error)   { return 0, io.EOF }
func (t *idleTransport) CanRelay() bool             { return false }
func (t *idleTransport) SetReadDeadline(time.Time)  {}
func (t *idleTransport) SetWriteDeadline(time.Time) {}
func (t *idleTransport) Outcome() conn.Outcome      { return conn.RanInline }
func (t *idleTransport) WatchPeer()                 {}
func (t *idleTransport) LocalAddr() net.Addr        { return nil }
func (t *idleTransport) RemoteAddr() net.Addr       { return nil }
func (t *idleTransport) NetConn() net.Conn          { return nil }
func (t *idleTransport) Peer() string               { return "127.0.0.1:1" }
func (t *idleTransport) Now() int64                 { return t.now }
func (t *idleTransport) Hijack() (net.Conn, []byte, error) {
	return nil, nil, net.ErrClosed
}
func (t *idleTransport) SendRelay(*conn.Relay) (int, error) { return 0, net.ErrClosed }
func (t *idleTransport) SendFile(conn.File, int64, int64) (int64, bool, error) {
	return 0, false, nil
}
func (t *idleTransport) Write2(a, b []byte) error {
	t.sent += len(a) + len(b)
	return nil
}
func (t *idleTransport) WriteLast(p []byte) error { return t.Write2(p, nil) }
func (t *idleTransport) TryWrite(a, b []byte, more bool) (int, error) {
	return len(a) + len(b), t.Write2(a, b)
}
func (t *idleTransport) TrySendFile(f *os.File, offset, n int64) (int64, bool, error) {
	if t.most > 0 {
		n = min(n, t.most)
	}
	return n, true, nil
}

// exchangeOf makes a function that has h answer the given head once, as a quick
// handler on a loop.
func exchangeOf(h http.Handler, head string, opts ...func(*Config)) (run func(), t *idleTransport) {
	cfg := &Config{
		Handler:     &h,
		Places:      place.New(),
		Routes:      place.NewRoutes(),
		BaseContext: context.Background(),
		KeepAlives:  func() bool { return true },
		Logf:        func(string, ...any) {},
	}
	for _, o := range opts {
		o(cfg)
	}
	t = &idleTransport{now: sys.Nanotime()}
	c := cfg.New(t)
	c.onLoop, c.learning = true, cfg.Placement == Adaptive
	b := []byte(head)
	return func() {
		n, v, _ := c.Feed(b, false)
		if n != len(b) || v != conn.Run && v != conn.RunWhole {
			panic("the head was not taken")
		}
		v = c.Serve()
		for v == conn.Stalled {
			v = c.Serve()
		}
		if v != conn.More {
			panic("the connection was not kept")
		}
	}, t
}

const wrkGET = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, "Hello, World!")
}

// BenchmarkExchange is a request and its answer without system calls.
func BenchmarkExchange(b *testing.B) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", hello)
	fixed := direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}}, []byte("Hello, World!"))
	for _, h := range []struct {
		name string
		h    http.Handler
	}{{"func", http.HandlerFunc(hello)}, {"mux", mux}, {"direct", fixed}} {
		for _, r := range []struct{ name, head string }{{"wrk", wrkGET}, {"browser", browserGET}} {
			b.Run(h.name+"/"+r.name, func(b *testing.B) {
				run, _ := exchangeOf(h.h, r.head)
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
			})
		}
	}
}
