package observe

import (
	"fmt"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/exec"
)

// maxLines is how many lines may wait for the log.
const maxLines = 256

// logWait is how long is waited for a log that has not been slow.
const logWait = 10 * time.Millisecond

// lines are those of LogSoon. They are logged by a goroutine that runs while there are some.
type lines struct {
	mu      sync.Mutex
	waiting []string
	lost    int
	running bool
	logged  chan struct{} // closed when it ends
	slow    bool          // callers do not wait until then
}

// LogSoon is Logf for callers that must not wait for a log whose reader has stopped, such as loops: if the log does not
// take the line at once it gets it later, and lines are dropped while too many wait.
func (o *Server) LogSoon(format string, args ...any) {
	logged := o.lines.add(fmt.Sprintf(format, args...), o.logWaiting)
	if logged == nil {
		return
	}
	t := time.NewTimer(logWait)
	defer t.Stop()
	select {
	case <-logged: // before what the caller does next, which others may see
	case <-t.C:
		o.lines.late()
	}
}

// add adds a line, and begins to log if that is needed. logged is nil if it is not to be waited for.
func (l *lines) add(line string, log func()) (logged chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxLines {
		l.lost++
		return nil
	}
	if l.waiting = append(l.waiting, line); !l.running {
		l.running, l.slow, l.logged = true, false, make(chan struct{})
		go log()
	}
	if l.slow {
		return nil
	}
	return l.logged
}

// late notes that the log is slow.
func (l *lines) late() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = true
}

func (o *Server) logWaiting() {
	l := &o.lines
	for {
		l.mu.Lock()
		all, lost := l.waiting, l.lost
		l.waiting, l.lost = nil, 0
		if l.running = len(all) > 0; !l.running {
			close(l.logged)
			l.mu.Unlock()
			o.Reported()
			return
		}
		l.mu.Unlock()
		if lost > 0 {
			text := fmt.Sprintf("chert: %d lines were not logged, as the log did not take them in time", lost)
			all = append(all, text)
		}
		for i, line := range all {
			exec.Call(func() { o.Logf("%s", line) }, func(e exec.End) {
				if e.Exited() { // this goroutine ends
					l.mu.Lock()
					l.waiting = append(all[i+1:], l.waiting...)
					l.mu.Unlock()
					go o.logWaiting()
				}
			})
		}
	}
}

// logging reports whether a line is still to be logged.
func (l *lines) logging() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}
