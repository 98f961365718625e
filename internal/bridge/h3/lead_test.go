package h3

import (
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// The lead passes on from handlers that stay, wait for the client, panic or end their goroutines, and each request is
// answered or reset. The handlers are quick before, so that the leader runs them.
func TestLeaders(t *testing.T) {
	t.Parallel()
	large := make([]byte, 2*maxKept)
	var n atomic.Int64
	unruly := func(w func([]byte)) {
		switch n.Add(1) % 40 {
		case 7:
			time.Sleep(3 * time.Millisecond) // it overstays
		case 17:
			panic(http.ErrAbortHandler)
		case 27:
			runtime.Goexit()
		case 33:
			time.Sleep(3 * time.Millisecond)
			runtime.Goexit()
		case 37:
			w(large)
			return
		}
		w(hello)
	}
	for _, tt := range []struct {
		name string
		h    http.Handler
	}{
		{"plain", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { unruly(func(p []byte) { w.Write(p) }) })},
		{"direct", direct.HandlerFunc(func(x *direct.Exchange) { unruly(func(p []byte) { x.Write(p) }) })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := served(t, tt.h)
			var id atomic.Uint64
			var answered atomic.Int64
			var clients sync.WaitGroup
			for range 8 {
				clients.Go(func() {
					for range 250 {
						str := c.get(4 * id.Add(1))
						c.streams <- str
						if servertest.Await(t, str.done, "the end of a stream") > 0 {
							answered.Add(1)
						}
					}
				})
			}
			clients.Wait()
			if k := answered.Load(); k < 1800 || k >= 2000 {
				t.Errorf("%d of 2000 requests were answered", k)
			}
		})
	}
}
