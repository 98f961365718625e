package main

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// lines gathers the lines of the log and writes many at a time, from a goroutine of its own: a handler on the direct
// way must not wait for a terminal or a pipe. Who writes waits only when maxLines bytes wait already.
//
// A line is written within linger. What was not, when the process is killed, is lost.
type lines struct {
	out     io.Writer
	mu      sync.Mutex
	changed sync.Cond // buf has got its first line, or has been taken, or closed is set
	buf     []byte
	closed  bool
	much    atomic.Bool // len(buf) >= maxLines
	done    chan struct{}
}

const (
	linger   = 10 * time.Millisecond
	maxLines = 256 << 10
)

// newLines returns lines that write to out until they are closed.
func newLines(out io.Writer) *lines {
	l := &lines{out: out, done: make(chan struct{})}
	l.changed.L = &l.mu
	go l.run()
	return l
}

// full reports whether Write would wait.
func (l *lines) full() bool { return l.much.Load() }

// Write takes a line. It never fails; nobody could be told.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.buf) >= maxLines && !l.closed {
		l.changed.Wait()
	}
	if l.closed {
		return l.out.Write(line)
	}
	if len(l.buf) == 0 {
		l.changed.Broadcast()
	}
	l.buf = append(l.buf, line...)
	l.much.Store(len(l.buf) >= maxLines)
	return len(line), nil
}

func (l *lines) run() {
	defer close(l.done)
	var taken []byte
	for {
		l.mu.Lock()
		for len(l.buf) == 0 && !l.closed {
			l.changed.Wait()
		}
		taken, l.buf = l.buf, taken[:0]
		closed := l.closed
		l.much.Store(false)
		l.changed.Broadcast()
		l.mu.Unlock()
		if len(taken) > 0 {
			l.out.Write(taken)
		}
		if closed {
			return
		}
		time.Sleep(linger)
	}
}

// close writes what is left. Lines that come later are written at once.
func (l *lines) close() {
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	<-l.done
}
