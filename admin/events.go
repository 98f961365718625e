package admin

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/interval"
	"github.com/chert-http/chert/stats"
)

// maxViewers is how many event streams there may be. Each costs a connection and a
// goroutine, and all share the samples.
const maxViewers = 64

// stuck is how long a viewer may take to accept a report.
const stuck = 10 * time.Second

// events lets viewers watch what happens in each second. While there is one a goroutine
// takes samples; without any nothing is done.
type events struct {
	source stats.Source
	every  time.Duration

	mu      sync.Mutex
	viewers map[chan []byte]struct{} // each has room for one event
	last    []byte                   // the latest event; nil before the first
	stop    chan struct{}            // of the goroutine; nil without one
}

// watch adds a viewer. It returns false if there are too many.
func (e *events) watch() (viewer chan []byte, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.viewers) >= maxViewers {
		return nil, false
	}
	if e.viewers == nil {
		e.viewers = make(map[chan []byte]struct{})
	}
	viewer = make(chan []byte, 1)
	e.viewers[viewer] = struct{}{}
	if e.last != nil {
		viewer <- e.last
	}
	if e.stop == nil {
		e.stop = make(chan struct{})
		go e.sample(e.stop)
	}
	return viewer, true
}

func (e *events) leave(viewer chan []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.viewers, viewer)
	if len(e.viewers) == 0 {
		close(e.stop)
		e.stop, e.last = nil, nil
	}
}

// sample begins with the average since the server's start, so that a viewer need not
// wait for the first interval.
func (e *events) sample(stop chan struct{}) {
	tick := time.NewTicker(e.every)
	defer tick.Stop()
	before := interval.Take(e.source)
	report := interval.Average(before)
	for {
		e.publish(stop, report)
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := interval.Take(e.source)
		report = interval.Between(before, now)
		before = now
	}
}

// publish sends a report to all viewers. One that has not accepted the report before
// gets only the latest.
func (e *events) publish(stop chan struct{}, r *interval.Report) {
	data, err := json.Marshal(r)
	if err != nil {
		data = []byte("null") // a Report has nothing that cannot be encoded
	}
	event := append(append([]byte("data: "), data...), "\n\n"...)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stop != stop {
		return // the last viewer has left meanwhile
	}
	e.last = event
	for viewer := range e.viewers {
		select {
		case <-viewer:
		default:
		}
		viewer <- event
	}
}

// serve is the handler of the event stream.
func (e *events) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	viewer, ok := e.watch()
	if !ok {
		w.Header().Set("Retry-After", "10")
		plain(w, http.StatusServiceUnavailable, "too many viewers")
		return
	}
	defer e.leave(viewer)
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	event := []byte("retry: 1000\n\n") // milliseconds until a browser connects again
	for {
		// Not supported by all servers; they have limits of their own.
		c.SetWriteDeadline(time.Now().Add(stuck))
		if _, err := w.Write(event); err != nil {
			return
		}
		if err := c.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case event = <-viewer:
		}
	}
}
