package demo

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert"
)

// clocks counts the streams of Server-Sent Events that are open.
type clocks struct{ running atomic.Int64 }

// serve sends the time once a second, ?n= times or until the client leaves or the server stops.
func (c *clocks) serve(w http.ResponseWriter, r *http.Request) {
	left := -1 // no end
	if n := r.URL.Query().Get("n"); n != "" {
		var err error
		if left, err = strconv.Atoi(n); err != nil || left < 1 {
			http.Error(w, "n is how many events are wanted", http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead { // its client would not see an end
		return
	}
	c.running.Add(1)
	defer c.running.Add(-1)
	rc := http.NewResponseController(w)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for now := time.Now(); ; {
		if _, err := fmt.Fprintf(w, "data: %s\n\n", now.UTC().Format(time.RFC3339)); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
		if left--; left == 0 {
			return
		}
		select {
		case now = <-tick.C:
		case <-r.Context().Done():
			return
		case <-chert.Stopping(r.Context()):
			return
		}
	}
}
