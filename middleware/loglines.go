package middleware

import (
	"bytes"
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

	mu      sync.Mutex
	turn    sync.Cond // the buffer was changed for another, or a write has ended
	buf     []byte
	spare   []byte
	armed   bool // the timer will come, or the flusher
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
	l.flusher = func() { l.flush() }
	l.timer = time.AfterFunc(time.Hour, l.flusher)
	l.timer.Stop()
}

// begin gives the buffer to append a line to, of room bytes. The caller has l
// until end.
func (l *lines) begin(room int) []byte {
	l.mu.Lock()
	// A full buffer is waited for, so that memory is bounded. Whoever filled it
	// has made the timer come.
	for !l.direct && len(l.buf) >= l.size {
		l.turn.Wait()
	}
	return slices.Grow(l.buf, room)
}

func (l *lines) end(buf []byte) {
	l.buf = buf
	if !l.direct && l.armed && len(buf) < l.size {
		l.mu.Unlock()
		return
	}
	l.note()
}

// note ends end where something is to be done about the buffer.
func (l *lines) note() {
	defer l.mu.Unlock() // also if out panics
	switch {
	case l.direct:
		l.writeOut()
	case len(l.buf) >= l.size:
		// Once: then begin holds up who comes.
		l.armed = true
		go l.flusher() // not here: the caller may be an event loop
	case !l.armed:
		l.armed = true
		l.timer.Reset(l.every)
	}
}

// Write implements io.Writer for slog's handlers, which write whole lines.
func (l *lines) Write(p []byte) (int, error) {
	b := l.begin(len(p))
	l.end(append(b, p...))
	return len(p), nil
}

func (l *lines) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
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
