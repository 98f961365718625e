//go:build linux

package sim

import (
	"strings"
	"sync"
	"syscall"

	"github.com/chert-http/chert/eventstream"
)

// slowness knows which streams the server may end because their clients read too slowly
// (eventstream.SlowClose): those of which the topic's history no longer has the next event,
// and those to which Send did not fit.
type slowness struct {
	events int // that the topic's history keeps

	mu sync.Mutex
	// sizes has at n an upper bound of what the history keeps of the events 1 to n, in
	// bytes. It has the event that Publish is called with, published those for which it
	// has returned.
	sizes     []int
	published int
	next      map[uint64]int  // by key of an open stream, the first event it may have got
	full      map[uint64]bool // a Send has found no room
}

func newSlowness(history int) *slowness {
	if history == 0 {
		history = 1000 // the default
	}
	return &slowness{events: history, sizes: []int{0}, next: make(map[uint64]int), full: make(map[uint64]bool)}
}

// publish calls f, which publishes an event with this data.
func (w *slowness) publish(data string, f func()) {
	// A line becomes a field; there are the ID, the end and the frame of a chunk besides.
	// The compressed form is at most a little longer than the other.
	size := 2 * (len(data) + 8*strings.Count(data, "\n") + 100)
	w.mu.Lock()
	w.sizes = append(w.sizes, w.sizes[len(w.sizes)-1]+size)
	w.mu.Unlock()
	f()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published++
}

// open is called before a stream joins the topic. fresh: it gets no history.
func (w *slowness) open(key uint64, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next[key] = w.published + 1
	if !fresh {
		w.next[key] = max(w.published-w.events, 0) + 1
	}
}

// sent takes what Send has returned.
func (w *slowness) sent(key uint64, err error) {
	if err == eventstream.ErrSlow {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.full[key] = true
	}
}

// mayEnd reports whether the server may have ended the stream of a client that has received
// the events up to last.
func (w *slowness) mayEnd(key uint64, last int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	next, opened := w.next[key]
	if !opened || w.full[key] {
		return opened
	}
	last = max(last, next-1)
	now := len(w.sizes) - 1
	return now-last > w.events || w.sizes[now]-w.sizes[last] > 1<<20 // the default of HistoryBytes
}

// slow reports whether the server may have ended the stream because the client reads too
// slowly. It does so by a reset and drops what the client has not accepted. Like any reset
// that may destroy what has arrived and was not read: events, and the head before them.
func (c *sseClient) slow(err error) bool {
	e := c.v.sse
	return e.limited && !e.skips && !c.final && err == syscall.ECONNRESET && e.slow.mayEnd(c.key, int(c.last))
}
