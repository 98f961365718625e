package backlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Errors of Follow and Begin.
var (
	// ErrFull is returned when the queue is full.
	ErrFull = errors.New("the queue of what waits for the store is full")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the store has been closed")
)

// A Write writes something. again is set if it may have been written before, which must be found
// out: nothing may be written twice.
type Write func(again bool) error

// A Queue has what waits. Its fields are immutable once it is used; its methods are safe for
// concurrent use.
type Queue struct {
	// Max is how much may wait.
	Max int
	// Temporary reports whether a write that has failed may succeed later.
	Temporary func(error) bool
	// Away is called when something begins to wait, and with nil when nothing waits any more.
	Away func(why error)
	// Dropped is called when something will not be written: it was refused, or the queue is
	// full (ErrFull) or closed (ErrClosed).
	Dropped func(why error)

	mu      sync.Mutex
	items   []item
	writing bool // the first of items is being written
	closed  context.Context
	close   context.CancelFunc
	running sync.WaitGroup
}

type item struct {
	write Write
	maybe bool // it may have been written
}

// context returns one that ends with Close. mu is held.
func (q *Queue) context() context.Context {
	if q.closed == nil {
		q.closed, q.close = context.WithCancel(context.Background())
	}
	return q.closed
}

// Len returns how much waits.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// Follow adds what must not overtake others that wait, and reports whether there are any.
func (q *Queue) Follow(w Write) (queued bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return false, nil
	}
	return true, q.push(item{write: w})
}

// Begin adds what could not be written, or of which that is not known.
func (q *Queue) Begin(w Write, why error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := len(q.items) == 0
	if err := q.push(item{w, true}); err != nil || !first {
		return err
	}
	ctx := q.context()
	q.running.Go(func() {
		q.Away(why)
		defer q.Away(nil)
		q.run(ctx)
	})
	return nil
}

// push adds an item. mu is held.
func (q *Queue) push(i item) error {
	switch {
	case q.context().Err() != nil:
		return ErrClosed
	case len(q.items) >= q.Max:
		q.Dropped(ErrFull)
		return ErrFull
	}
	q.items = append(q.items, i)
	return nil
}

// How long is waited after something has failed, up to twice of it.
const (
	firstWait = 20 * time.Millisecond
	maxWait   = time.Second
)

// run writes until nothing waits.
func (q *Queue) run(ctx context.Context) {
	for wait := firstWait; ; {
		q.mu.Lock()
		if len(q.items) == 0 {
			q.mu.Unlock()
			return
		}
		i := q.items[0]
		q.writing = true
		q.mu.Unlock()
		err := i.write(i.maybe)
		failed := err != nil && q.Temporary(err)
		q.mu.Lock()
		q.writing = false
		if failed && ctx.Err() != nil { // closed meanwhile
			failed, err = false, ErrClosed
		}
		if failed {
			q.items[0].maybe = true
		} else {
			q.items[0] = item{}
			q.items = q.items[1:]
		}
		q.mu.Unlock()
		if !failed {
			if wait = firstWait; err != nil {
				q.Dropped(err)
			}
			continue
		}
		if !Pause(ctx, wait+rand.N(wait)) {
			return
		}
		wait = min(2*wait, maxWait)
	}
}

// Close drops what waits, and waits for the write that is being tried, which is dropped too if it
// fails.
func (q *Queue) Close() {
	q.mu.Lock()
	q.context()
	q.close()
	keep := 0
	if q.writing {
		keep = 1
	}
	for range q.items[keep:] {
		q.Dropped(ErrClosed)
	}
	clear(q.items[keep:])
	q.items = q.items[:keep]
	q.mu.Unlock()
	q.running.Wait()
}

// Pause waits, and reports whether ctx has not ended.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
