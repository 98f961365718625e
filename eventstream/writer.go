package eventstream

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/takeover"
)

// writeStall is how long a client may take to accept writePiece bytes of what is written.
const (
	writeStall = 30 * time.Second
	writePiece = 64 << 10
)

// writer is a takeover.Stream over an http.ResponseWriter: the handler's goroutine
// writes, and so cannot return.
type writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	source  takeover.Source
	gone    <-chan struct{} // when the client is
	stop    <-chan struct{} // when the server stops; nil if the server does not report it
	addr    net.Addr
	wake    chan struct{} // capacity 1: there is something to do
	out     outbox.Box
	clock   outbox.Clock // of a write

	mu     sync.Mutex
	ended  bool // by End
	closed bool
	abort  atomic.Bool // set with mu held
}

func newWriter(w http.ResponseWriter, r *http.Request, s takeover.Source) *writer {
	l := &writer{
		w: w, control: http.NewResponseController(w), source: s,
		gone: r.Context().Done(), addr: takeover.Addr(r.RemoteAddr), wake: make(chan struct{}, 1),
	}
	l.stop, _ = r.Context().Value(takeover.StoppingKey{}).(<-chan struct{})
	l.out.InitCarried(l)
	l.clock.After, l.clock.Cut = writeStall, l.cut
	l.control.SetWriteDeadline(time.Time{}) // the server's
	return l
}

// cut ends a Write.
func (l *writer) cut() { l.control.SetWriteDeadline(time.Unix(1, 0)) }

// run writes until the stream ends.
func (l *writer) run() {
	takeover.FreeSlot(l.w)
	returned := false
	defer func() {
		l.over()
		l.control.SetWriteDeadline(time.Time{}) // the connection may be used again
		if returned && l.abort.Load() {
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
		sched.Point(l.addr.String(), 0) // a simulation chooses when the handler goes on, which has waited
	}
	returned = true
}

// write writes what is queued, and reports whether there will be more.
func (l *writer) write() bool {
	l.mu.Lock()
	ended := l.ended // before: all has been offered then
	l.mu.Unlock()
	for l.out.Carry() {
		if l.out.HasRoom() {
			l.source.Writable()
		}
	}
	return !ended && l.out.Err() == nil
}

func (l *writer) over() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.out.Drop()
	l.clock.End()
	l.source.Closed()
}

func (l *writer) Offer(p []byte, _, limit int) (much bool, err error) {
	return l.out.Offer(p, nil, limit)
}

func (l *writer) End(abort bool) {
	l.out.Close(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended = true; abort && !l.closed {
		l.abort.Store(true)
		l.out.Drop()
		l.cut()
	}
	l.Wake()
}

// Wake and Push implement outbox.Sink. Wake wakes the goroutine that writes.
func (l *writer) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *writer) Push(p, _ []byte, more bool) (n int, err error) {
	defer l.clock.Done()
	l.clock.Progress()
	k := min(len(p), writePiece)
	if n, err = l.w.Write(p[:k]); err == nil && k == len(p) && !more {
		err = l.control.Flush()
	}
	return n, err
}

func (l *writer) RemoteAddr() net.Addr { return l.addr }
