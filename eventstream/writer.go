package eventstream

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/takeover"
)

// writeStall is how long a client may accept nothing of what is written.
const writeStall = 30 * time.Second

// writer is a takeover.Stream over an http.ResponseWriter: the handler's goroutine
// writes, and so cannot return.
type writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	source  takeover.Source
	gone    <-chan struct{} // when the client is
	stop    <-chan struct{} // when the server stops; nil if that is not told
	addr    net.Addr
	wake    chan struct{} // capacity 1: there is something to do

	mu      sync.Mutex
	pending []byte
	writing int // bytes that are being written
	owed    bool
	ended   bool // by End
	abort   bool
	closed  bool
}

func newWriter(w http.ResponseWriter, r *http.Request, s takeover.Source) *writer {
	l := &writer{
		w: w, control: http.NewResponseController(w), source: s,
		gone: r.Context().Done(), addr: addr(r.RemoteAddr), wake: make(chan struct{}, 1),
	}
	l.stop, _ = r.Context().Value(takeover.StoppingKey{}).(<-chan struct{})
	return l
}

// addr is a client's address as a request has it.
type addr string

func (a addr) Network() string { return "tcp" }
func (a addr) String() string  { return string(a) }

// run writes until the stream ends.
func (l *writer) run() {
	returned := false
	defer func() {
		l.over()
		l.control.SetWriteDeadline(time.Time{}) // the connection may be used again
		if returned && l.aborted() {
			panic(http.ErrAbortHandler)
		}
	}()
	for l.write() {
		select {
		case <-l.wake:
		case <-l.gone:
			returned = true
			return
		case <-l.stop:
			l.stop = nil
			l.source.Stop()
		}
		l.point()
	}
	returned = true
}

// point lets a simulation choose when the handler goes on, which has waited.
func (l *writer) point() {
	if sched.On() {
		sched.Point(l.addr.String(), 0)
	}
}

func (l *writer) aborted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.abort
}

// write writes what is pending, and reports whether there will be more.
func (l *writer) write() bool {
	for {
		l.mu.Lock()
		p := l.pending
		l.pending, l.writing = nil, len(p)
		abort, ended := l.abort, l.ended
		if !abort { // End sets it under mu
			l.control.SetWriteDeadline(time.Now().Add(writeStall))
		}
		l.mu.Unlock()
		if abort || len(p) == 0 {
			return !abort && !ended
		}
		_, err := l.w.Write(p)
		if err == nil {
			err = l.control.Flush()
		}
		l.mu.Lock()
		owed := l.owed
		l.writing, l.owed = 0, false
		l.mu.Unlock()
		if err != nil {
			return false
		}
		if owed {
			l.source.Writable()
		}
	}
}

// over is the end.
func (l *writer) over() {
	l.mu.Lock()
	l.closed, l.pending = true, nil
	l.mu.Unlock()
	l.source.Closed()
}

// Offer implements takeover.Stream.
func (l *writer) Offer(p []byte, _, limit int) (much bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	have, n := len(l.pending)+l.writing, len(p)
	switch {
	case l.closed || l.ended:
		return false, net.ErrClosed
	case limit >= 0 && len(l.pending) > 0 && have+n > limit:
		l.owed = true
		return true, takeover.ErrFull
	}
	l.pending = append(l.pending, p...)
	l.signal()
	much = limit >= 0 && have+n > limit/2
	l.owed = l.owed || much
	return much, nil
}

// End implements takeover.Stream.
func (l *writer) End(abort bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended = true; abort && !l.closed {
		l.abort = true
		l.control.SetWriteDeadline(time.Unix(1, 0)) // ends a Write
	}
	l.signal()
}

// signal wakes the goroutine that writes. mu is held.
func (l *writer) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// RemoteAddr implements takeover.Stream.
func (l *writer) RemoteAddr() net.Addr { return l.addr }
