package middleware

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// LineWriterOptions are the options of NewLineWriter.
type LineWriterOptions struct {
	// BufferSize is the number of bytes that are buffered; twice that is allocated.
	// Default 256 KiB, or none if the output is a terminal; negative: none.
	// Without a buffer each line is written at once, by one Write.
	BufferSize int
	// FlushInterval is how long a line may stay in the buffer. Default 1 s; negative: no
	// limit, until the buffer is full.
	FlushInterval time.Duration
	// Failed, if not nil, is called when the output has failed, with the number
	// of lines that it did not accept. Other lines do not wait for it, so it may be
	// called concurrently. It may use the LineWriter, whose output may fail again.
	Failed func(lost int64, err error)
}

// A LineWriter buffers the lines of one or several loggers and writes them in
// order, many at a time, so that loggers do not wait for a program that reads
// them slowly:
//
//	out := middleware.NewLineWriter(os.Stderr, nil)
//	defer out.Close()
//	access := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: out})
//	srv := &chert.Server{Handler: access.Wrap(mux), ErrorLog: log.New(out, "", 0)}
//
// Each Write must have whole lines. It waits only while the buffer is full and
// the previous one is still being written, so memory is bounded and no line is
// dropped, except by an output that fails; see Lost. The rest of a line that an
// output has accepted in part is dropped, and the next begins a new one. Close must
// be called at the end, or the last lines are lost. OpenLog makes a LineWriter to a
// file. A LineWriter holds no goroutine while
// there is nothing to write. It is safe for concurrent use.
type LineWriter struct {
	out   io.Writer // guarded by mu; see writing
	path  string    // of the file that OpenLog has opened, else ""
	size  int       // of a buffer; not positive: each line is written at once
	every time.Duration
	timer *time.Timer
	// flusher flushes in a goroutine of its own.
	flusher func()
	lost    atomic.Int64
	full    atomic.Bool // len(buf) >= bound()

	// There are two buffers: one is filled while the other is written. A line
	// that enters an empty buffer starts a timer; the line that fills one
	// starts a goroutine that writes it.
	mu         sync.Mutex
	changed    sync.Cond // the buffers were swapped, or a write has ended
	buf        []byte
	spare      []byte
	armed      bool // the timer or the flusher is running
	flushing   bool // the flusher was started and has not begun
	writing    bool // a goroutine that does not hold mu uses out
	unbuffered bool // each line is written at once
	torn       bool // out has accepted a part of a line; used by who is writing
	err        error

	report func(lost int64, err error) // may be nil
}

// NewLineWriter returns a LineWriter to out, which one goroutine at a time uses
// and which is not closed. o may be nil.
func NewLineWriter(out io.Writer, o *LineWriterOptions) *LineWriter {
	opts := options(o)
	if opts.BufferSize == 0 && isTerminal(out) {
		opts.BufferSize = -1 // other loggers write there too, and the order matters
	}
	size := cmp.Or(opts.BufferSize, 256<<10)
	l := &LineWriter{out: out, size: size, every: cmp.Or(opts.FlushInterval, time.Second), unbuffered: size <= 0,
		report: opts.Failed}
	l.changed.L = &l.mu
	if !l.unbuffered {
		// With room for the line that fills it.
		l.buf, l.spare = make([]byte, 0, size+2<<10), make([]byte, 0, size+2<<10)
	}
	l.flusher = func() {
		defer func() { // no caller could recover
			if v := recover(); v != nil {
				err := fmt.Errorf("middleware: the log's output panicked: %v", v)
				l.mu.Lock()
				l.err = cmp.Or(l.err, err)
				l.mu.Unlock()
				l.tell(&loss{0, err})
			}
		}()
		l.Flush()
	}
	l.timer = time.AfterFunc(time.Hour, l.flusher)
	l.timer.Stop()
	return l
}

// Write implements io.Writer. It never fails: see Lost.
func (l *LineWriter) Write(p []byte) (int, error) {
	l.end(append(l.begin(false), p...), false)
	return len(p), nil
}

// Flush writes all lines so far, and returns the output's first error.
func (l *LineWriter) Flush() error {
	lost, err := l.flush()
	l.tell(lost)
	return err
}

func (l *LineWriter) flush() (*loss, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed, l.flushing = false, false
	lost := l.writeOut()
	return lost, l.err
}

// Close flushes, and makes every later line be written at once. It does not
// close the output, except for the file of OpenLog, which is opened for each line that
// comes later.
func (l *LineWriter) Close() error {
	lost, err := l.shut()
	l.tell(lost)
	return err
}

func (l *LineWriter) shut() (*loss, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.unbuffered = true
	lost := l.writeOut()
	return lost, errors.Join(l.err, l.closeFile())
}

// Lost returns the number of lines that the output failed to accept.
func (l *LineWriter) Lost() int64 { return l.lost.Load() }

// Full reports whether the buffer is full, so that Write would wait.
func (l *LineWriter) Full() bool { return l.full.Load() }

// begin returns the buffer to append a line to, which the caller owns until
// end. It waits while the buffer is full, unless noWait is set: admit bounds
// those lines.
func (l *LineWriter) begin(noWait bool) []byte {
	l.mu.Lock()
	// The line that filled the buffer has started the flusher.
	for !l.unbuffered && !noWait && len(l.buf) >= l.size {
		l.changed.Wait()
	}
	return l.buf
}

func (l *LineWriter) end(buf []byte, noWait bool) {
	l.buf = buf
	if !l.unbuffered && l.armed && len(buf) < l.size {
		l.mu.Unlock()
		return
	}
	l.tell(l.arm(noWait))
}

// arm completes end if the timer or the flusher must be started.
func (l *LineWriter) arm(noWait bool) *loss {
	defer l.mu.Unlock() // also if out panics
	if len(l.buf) >= l.bound() {
		l.full.Store(true)
	}
	switch {
	case l.unbuffered && !noWait:
		return l.writeOut()
	case l.unbuffered || len(l.buf) >= l.size:
		if l.armed = true; !l.flushing {
			l.flushing = true
			go l.flusher() // not on this goroutine: the caller may be an event loop
		}
	case !l.armed:
		l.armed = true
		if l.every > 0 {
			l.timer.Reset(l.every)
		}
	}
	return nil
}

// bound is the size below which admit keeps the buffer.
func (l *LineWriter) bound() int { return max(l.size, 64<<10) }

// admit waits while the buffer is full.
func (l *LineWriter) admit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.buf) >= l.bound() {
		l.changed.Wait()
	}
}

// unwaited is a LineWriter whose Write does not wait.
type unwaited struct{ *LineWriter }

// Write implements io.Writer.
func (l unwaited) Write(p []byte) (int, error) {
	l.end(append(l.begin(true), p...), true)
	return len(p), nil
}

// writeOut writes the buffer, after the one that is being written. l.mu is
// held, but not during the write. The caller tells what was lost when it no longer holds it.
func (l *LineWriter) writeOut() (lost *loss) {
	for l.writing {
		l.changed.Wait()
	}
	if len(l.buf) == 0 {
		return nil
	}
	b := l.buf
	l.buf, l.spare, l.writing = l.spare[:0], nil, true
	l.full.Store(false)
	l.changed.Broadcast()
	out := l.out
	l.mu.Unlock()
	defer func() { // also if out panics
		l.mu.Lock()
		l.writing = false
		if cap(b) <= 2*max(l.size, 4<<10) { // a buffer with huge lines is not kept
			l.spare = b[:0]
		}
		if lost != nil {
			l.err = cmp.Or(l.err, lost.err)
		}
		l.changed.Broadcast()
	}()
	n, err := l.writeTo(out, b)
	if err == nil {
		return nil
	}
	lost = &loss{int64(bytes.Count(b[n:], []byte{'\n'})), err}
	l.lost.Add(lost.lines)
	return lost
}

// writeTo writes b, and returns how much of it out has accepted.
func (l *LineWriter) writeTo(out io.Writer, b []byte) (n int, err error) {
	if l.torn {
		if _, err := out.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		l.torn = false
	}
	n, err = out.Write(b)
	if n = min(max(n, 0), len(b)); n < len(b) {
		l.torn = n > 0 && b[n-1] != '\n'
		if err == nil {
			err = io.ErrShortWrite
		}
	}
	return n, err
}

// A loss is what an output did not accept.
type loss struct {
	lines int64
	err   error
}

// tell reports a loss, if there is one. l.mu is not held.
func (l *LineWriter) tell(lost *loss) {
	if lost != nil && l.report != nil {
		l.report(lost.lines, lost.err)
	}
}
