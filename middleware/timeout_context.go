package middleware

import (
	"context"
	"sync/atomic"
	"time"
)

// A limit is the request's context, but done at a time too, unless that is lifted, which
// package context has no way for. The handler's context, which is made of it by
// context.WithCancel, is done when AfterFunc's function is called.
type limit struct {
	context.Context
	at           time.Time
	timer        *time.Timer
	over, lifted atomic.Bool
}

func withLimit(outer context.Context, d time.Duration) (context.Context, context.CancelFunc, *limit) {
	l := &limit{Context: outer, at: time.Now().Add(d)}
	ctx, cancel := context.WithCancel(l)
	if outer.Err() != nil {
		<-ctx.Done() // which AfterFunc's goroutine would do only a moment later
	}
	return ctx, func() {
		cancel()
		l.timer.Stop() // cancel does not stop it if outer was done first
	}, l
}

// Deadline implements context.Context.
func (l *limit) Deadline() (time.Time, bool) {
	at, ok := l.Context.Deadline()
	if l.lifted.Load() || ok && at.Before(l.at) {
		return at, ok
	}
	return l.at, true
}

var never = make(chan struct{})

// Done implements context.Context. The channel must not be that of the outer context, which
// WithCancel would then use directly.
func (l *limit) Done() <-chan struct{} { return never }

// Err implements context.Context.
func (l *limit) Err() error {
	if l.over.Load() {
		return context.DeadlineExceeded
	}
	return l.Context.Err()
}

// AfterFunc is what context.WithCancel calls, once.
func (l *limit) AfterFunc(f func()) (stop func() bool) {
	outer := context.AfterFunc(l.Context, f)
	l.timer = time.AfterFunc(time.Until(l.at), func() {
		l.over.Store(true)
		f()
	})
	return func() bool {
		inTime := l.timer.Stop()
		return outer() && inTime
	}
}

// lift removes the time. If it reports false, the time has come, and the context is done or
// will be at once.
func (l *limit) lift() bool { return l.lifted.Swap(true) || l.timer.Stop() }

// lower undoes lift.
func (l *limit) lower() {
	l.timer.Reset(time.Until(l.at))
	l.lifted.Store(false)
}
