package chert

import (
	"runtime"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/buf"
)

// Idle connections on loops hold no goroutine and no buffer.
func TestFaultsIdleConnsAreSmall(t *testing.T) {
	const n = 500
	fs := faultStart(t, &Server{Engine: EngineLoops, Handler: faultOK})
	if buf.Live() != 0 {
		t.Fatalf("%d buffers are taken before the test", buf.Live())
	}
	before := runtime.NumGoroutine()
	conns := make([]*faultConn, n)
	for round := range 2 {
		for i := range conns {
			if round == 0 {
				conns[i] = fs.dial()
				conns[i].SetDeadline(time.Now().Add(4 * patience)) // workers take their time to end
			}
			conns[i].send(faultGet)
		}
		for _, c := range conns {
			c.status(200)
		}
		eventually(t, "no buffer is held", func() bool { return buf.Live() == 0 })
		// Workers stay a while, as many as handlers have run at once.
		eventually(t, "few goroutines are left", func() bool { return runtime.NumGoroutine()-before < 50 })
	}
	if open := fs.opened.Load() - fs.ended.Load(); open != n {
		t.Errorf("%d connections are open, want %d", open, n)
	}
	// A partial head takes a buffer, and gives it back.
	for _, c := range conns[:50] {
		c.send("GET / HT")
	}
	eventually(t, "the partial heads are held", func() bool { return buf.Live() == 50 })
	for _, c := range conns[:25] {
		c.Close()
	}
	for _, c := range conns[25:50] {
		c.send("TP/1.1\r\nHost: h\r\n\r\n")
		c.status(200)
	}
	eventually(t, "no buffer is held", func() bool { return buf.Live() == 0 })
}
