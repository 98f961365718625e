package observe

import (
	"fmt"
	"sync"

	"github.com/chert-http/chert/internal/exec"
)

// maxLines is how many lines may wait for the log.
const maxLines = 256

// lines are those of LogLater. They are logged by a goroutine that runs while there are some.
type lines struct {
	mu      sync.Mutex
	waiting []string
	lost    int
	running bool
}

// LogLater is Logf for callers that must not wait for a log whose reader has stopped, such as loops: it logs the line
// soon, and drops it while too many wait.
func (o *Server) LogLater(format string, args ...any) {
	l := &o.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxLines {
		l.lost++
		return
	}
	if l.waiting = append(l.waiting, fmt.Sprintf(format, args...)); !l.running {
		l.running = true
		go o.logWaiting()
	}
}

func (o *Server) logWaiting() {
	l := &o.lines
	for {
		l.mu.Lock()
		all, lost := l.waiting, l.lost
		l.waiting, l.lost = nil, 0
		if l.running = len(all) > 0; !l.running {
			l.mu.Unlock()
			o.Reported()
			return
		}
		l.mu.Unlock()
		if lost > 0 {
			text := fmt.Sprintf("chert: %d lines were not logged, as the log did not take them in time", lost)
			all = append(all, text)
		}
		for _, line := range all {
			exec.Call(func() { o.Logf("%s", line) }, func(e exec.End) {
				if e.Exited() {
					go o.logWaiting() // this goroutine ends
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
