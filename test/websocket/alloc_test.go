//go:build !race

// With the race detector a sync.Pool drops some of what it is given.

package websocket

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/websocket"
)

// TestAllocations: on a loop, a message and its answer cost no memory.
func TestAllocations(t *testing.T) {
	if !sys.HavePoller {
		t.Skip("no loops here")
	}
	var h http.Handler = handler(t, &websocket.Options{OnMessage: echo})
	ts := start(t, &chert.Server{Engine: chert.EngineLoops, Placement: chert.PlacementInline, Handler: h})
	c := open(ts)
	burst := []byte(strings.Repeat(text(strings.Repeat("x", 64)), 16))
	answer := make([]byte, 16*(2+64))
	turn := func() {
		c.Conn.Write(burst)
		if _, err := io.ReadFull(c.R, answer); err != nil {
			t.Fatal(err)
		}
	}
	const turns = 500
	var before, after runtime.MemStats
	best := ^uint64(0)
	for range 5 { // the runtime and others allocate now and then
		runtime.ReadMemStats(&before)
		for range turns {
			turn()
		}
		runtime.ReadMemStats(&after)
		best = min(best, after.Mallocs-before.Mallocs)
	}
	if best > turns/2 {
		t.Errorf("%d allocations for %d messages", best, 16*turns)
	}
}
