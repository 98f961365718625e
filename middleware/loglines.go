package middleware

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lines gathers whole lines and writes them in their order. There are two
// buffers: one is filled while the other is written. It holds no goroutine: a
// timer is armed when a line comes into an empty buffer, and who fills one begins
// a goroutine that writes it.
type lines struct {
	out   io.Writer
	size  int // of a buffer; not positive: each line is written at once
	every time.Duration
	timer *time.Timer
	// flusher is flush, as a value that is made once.
	flusher func()
	lost    atomic.Int64
	full    atomic.Bool // len(buf) >= bound()

	mu      sync.Mutex
	turn    sync.Cond // the buffer was changed for another, or a write has ended
	buf     []byte
	spare   []byte
	armed   bool // the timer will come, or the flusher
	called  bool // the flusher will come
	writing bool // out is somebody's, who does not hold mu
	direct  bool // each line is written at once
	err     error
}

func (l *lines) init(out io.Writer, size int, every time.Duration) {
	l.out, l.size, l.every, l.direct = out, size, every, size <= 0
	l.turn.L = &l.mu
	if !l.direct {
		// Room for the line that makes it full.
		l.buf, l.spare = make([]byte, 0, size+2<<10), make([]byte, 0, size+2<<10)
	}
	l.flusher = func() {
		defer func() { // the server cannot recover here
			if v := recover(); v != nil {
				l.failed(fmt.Errorf("middleware: the log's Output panicked: %v", v), nil)
			}
		}()
		l.flush()
	}
	l.timer = time.AfterFunc(time.Hour, l.flusher)
	l.timer.Stop()
}

// begin gives the buffer to append a line to, of room bytes. The caller has l
// until end. It waits while the buffer is full, so that memory is bounded, unless
// the caller must not wait: then admit has.
func (l *lines) begin(room int, noWait bool) []byte {
	l.mu.Lock()
	// Whoever has filled it has called the flusher.
	for !l.direct && !noWait && len(l.buf) >= l.size {
		l.turn.Wait()
	}
	return slices.Grow(l.buf, room)
}

func (l *lines) end(buf []byte, noWait bool) {
	l.buf = buf
	if !l.direct && l.armed && len(buf) < l.size {
		l.mu.Unlock()
		return
	}
	l.note(noWait)
}

// note ends end where something is to be done about the buffer.
func (l *lines) note(noWait bool) {
	defer l.mu.Unlock() // also if out panics
	if len(l.buf) >= l.bound() {
		l.full.Store(true)
	}
	switch {
	case l.direct && !noWait:
		l.writeOut()
	case l.direct || len(l.buf) >= l.size:
		if l.armed = true; !l.called {
			l.called = true
			go l.flusher() // not here: the caller may be an event loop
		}
	case !l.armed:
		l.armed = true
		l.timer.Reset(l.every)
	}
}

// bound is what admit keeps the buffer below.
func (l *lines) bound() int { return max(l.size, 64<<10) }

// admit waits while the buffer is full.
func (l *lines) admit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.buf) >= l.bound() {
		l.turn.Wait()
	}
}

// Write implements io.Writer for slog's handlers, which write whole lines.
func (l *lines) Write(p []byte) (int, error) {
	b := l.begin(len(p), false)
	l.end(append(b, p...), false)
	return len(p), nil
}

// keptLines is lines for those who must not wait.
type keptLines struct{ *lines }

// Write implements io.Writer.
func (l keptLines) Write(p []byte) (int, error) {
	b := l.begin(len(p), true)
	l.end(append(b, p...), true)
	return len(p), nil
}

func (l *lines) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed, l.called = false, false
	l.writeOut()
	return l.err
}

func (l *lines) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.direct = true
	l.writeOut()
	return l.err
}

// writeOut writes the buffer, behind what is being written. l.mu is held, but
// not during the write.
func (l *lines) writeOut() {
	for l.writing {
		l.turn.Wait()
	}
	if len(l.buf) == 0 {
		return
	}
	b := l.buf
	l.buf, l.spare, l.writing = l.spare[:0], nil, true
	l.full.Store(false)
	l.turn.Broadcast()
	l.mu.Unlock()
	defer func() { // also if out panics
		l.mu.Lock()
		l.writing = false
		if cap(b) <= 2*max(l.size, 4<<10) { // one with huge lines is not kept
			l.spare = b[:0]
		}
		l.turn.Broadcast()
	}()
	n, err := l.out.Write(b)
	if n = max(n, 0); n < len(b) && err == nil {
		err = io.ErrShortWrite
	}
	if err != nil {
		l.failed(err, b[min(n, len(b)):])
	}
}

func (l *lines) failed(err error, rest []byte) {
	l.lost.Add(int64(bytes.Count(rest, []byte{'\n'})))
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
}
