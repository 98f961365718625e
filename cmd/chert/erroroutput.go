package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/middleware"
)

// errorOutput is the slog.Handler of the server's errors. Its format may be changed while they come. What reports an
// error does not wait for who reads stderr: while the buffer is full, errors are dropped.
type errorOutput struct {
	log *middleware.LineWriter // immutable
	to  atomic.Pointer[slog.Handler]

	mu      sync.Mutex // so that one line at a time finds room
	dropped int
}

// set selects the format. The first call comes before those of other methods.
func (o *errorOutput) set(f logFormat) {
	h := f.errors(o.log)
	o.to.Store(&h)
}

func (o *errorOutput) handler() slog.Handler { return *o.to.Load() }

func (o *errorOutput) Enabled(ctx context.Context, l slog.Level) bool {
	return o.handler().Enabled(ctx, l)
}

func (o *errorOutput) Handle(ctx context.Context, r slog.Record) error {
	// What crypto/tls says about refuse would let operators search for a file.
	if before, after, ok := strings.Cut(r.Message, ": tls: no certificates configured"); ok {
		r.Message = before + ": no site has the name or address that the client asked for" + after
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.log.Full() {
		o.tell(ctx)
	}
	if o.log.Full() { // perhaps only now
		o.dropped++
		return nil
	}
	return o.handler().Handle(ctx, r)
}

// tell reports how many errors were dropped. o.mu is held.
func (o *errorOutput) tell(ctx context.Context) {
	if n := o.dropped; n > 0 {
		o.dropped = 0
		text := fmt.Sprintf("errors that were dropped, as nothing read them in time: %d", n)
		o.handler().Handle(ctx, slog.NewRecord(time.Now(), slog.LevelError, text, 0))
	}
}

// close writes what is left. It waits for who reads stderr.
func (o *errorOutput) close() {
	o.log.Flush()
	o.mu.Lock()
	o.tell(context.Background())
	o.mu.Unlock()
	o.log.Close()
}

// WithAttrs keeps the format of now: nothing here uses it.
func (o *errorOutput) WithAttrs(attrs []slog.Attr) slog.Handler { return o.handler().WithAttrs(attrs) }

// WithGroup keeps the format of now.
func (o *errorOutput) WithGroup(name string) slog.Handler { return o.handler().WithGroup(name) }

// unwaited is stdout for a server that does not wait for who reads it: what is written while a line waits is dropped.
type unwaited struct {
	w    io.Writer
	busy atomic.Bool
}

// Write implements io.Writer. It waits for a second at most.
func (u *unwaited) Write(p []byte) (int, error) {
	if u.busy.Swap(true) {
		return len(p), nil
	}
	p = slices.Clone(p)
	within(time.Second, func() {
		defer u.busy.Store(false)
		u.w.Write(p) // what is not accepted is no matter to a server
	})
	return len(p), nil
}

// flushWait is how long the end of the program waits for who reads its logs.
const flushWait = 5 * time.Second

// within calls f, and waits for d at most until it returns.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}
