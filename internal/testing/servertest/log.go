package servertest

import (
	"io"
	"log"
	"strings"
	"sync"
)

// Log collects what is logged, or what a process writes. It is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Served is what was logged but for lines of handshakes that have failed. Those are
// there when clients leave during one, with a Server of net/http too.
func (l *Log) Served() string {
	var b strings.Builder
	for line := range strings.Lines(l.String()) {
		if !strings.HasPrefix(line, "http: TLS handshake error") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Reset discards what was logged.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// NewLogger writes bare lines to w.
func NewLogger(w io.Writer) *log.Logger { return log.New(w, "", 0) }
