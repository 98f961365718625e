package middleware

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
)

// later gives records to a slog.Handler in their order, from a goroutine that is
// there while there are some: for callers that must not wait for the handler.
type later struct {
	handler slog.Handler
	busy    atomic.Bool // there is a goroutine
	full    atomic.Bool // len(records) >= maxLater

	mu      sync.Mutex
	changed sync.Cond // records were taken, or the goroutine has ended
	records []slog.Record
}

// maxLater is how many records wait before requests do.
const maxLater = 1 << 10

func (l *later) init(h slog.Handler) { l.handler, l.changed.L = h, &l.mu }

// takes takes r if the caller must not wait, or if others wait that come before
// it, and reports whether it has.
func (l *later) takes(r slog.Record, noWait bool) bool {
	if !noWait && !l.busy.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	l.full.Store(len(l.records) >= maxLater)
	if !l.busy.Swap(true) {
		go l.run()
	}
	return true
}

func (l *later) run() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.records) > 0 {
		all := l.records
		l.records = nil
		l.full.Store(false)
		l.changed.Broadcast()
		l.mu.Unlock()
		for _, r := range all {
			l.handle(r)
		}
		l.mu.Lock()
	}
	l.busy.Store(false)
	l.changed.Broadcast()
}

// handle drops a record whose handler panics: the server cannot recover here.
func (l *later) handle(r slog.Record) {
	defer func() { recover() }()
	l.handler.Handle(context.Background(), r)
}

// admit waits until there is room.
func (l *later) admit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.records) >= maxLater {
		l.changed.Wait()
	}
}

// wait waits until all records have been handled.
func (l *later) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy.Load() {
		l.changed.Wait()
	}
}
