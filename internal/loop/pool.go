package loop

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/timer"
)

const (
	// trimEvery is how often idle workers are checked, idleRounds for how many
	// checks one may wait for work before it ends: longer than a pause in a
	// burst. A new goroutine costs little in comparison, and code that counts
	// goroutines (tests do) finds those of a peak gone as soon as with
	// net/http.
	trimEvery  = int64(150 * time.Millisecond)
	idleRounds = 1
)

// trimTimer, of the empty slot, fires trim.
const trimTimer timer.ID = 0

// A Task is work that may block.
type Task interface{ Run() }

// pool keeps goroutines that wait for tasks. The one that has waited least is
// used first: its stack is in the cache, and the others age and end. run is
// safe for concurrent use.
type pool struct {
	// atWork counts the tasks that were passed to run and have not ended.
	atWork atomic.Int32
	// scheduler is nil but in a simulation. Immutable.
	scheduler scheduler

	mu      sync.Mutex
	idle    []*worker // oldest first
	begun   uint64    // tasks; only for the scheduler
	round   int       // counts calls of trim; the workers' clock
	workers int
	stopped bool
}

type worker struct {
	ch    chan Task // capacity 1, so that a sender never waits; nil ends it
	since int       // the round in which it became idle
}

func (p *pool) run(t Task) {
	p.atWork.Add(1)
	p.mu.Lock()
	if p.scheduler != nil {
		p.begun++
		t = scheduled{t, p.scheduler, 1<<32 + p.begun}
	}
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		w.ch <- t
		return
	}
	p.workers++
	p.mu.Unlock()
	w := &worker{ch: make(chan Task, 1)}
	go p.work(w, t)
}

func (p *pool) work(w *worker, t Task) {
	// Deferred because a task may end its goroutine (runtime.Goexit).
	working := true
	defer func() {
		if working {
			p.atWork.Add(-1)
		}
		p.mu.Lock()
		p.workers--
		p.mu.Unlock()
	}()
	for t != nil {
		t.Run()
		working = false
		p.atWork.Add(-1)
		if !p.wait(w) {
			return
		}
		t = <-w.ch
		working = t != nil
	}
}

// wait puts w among the idle; false means that the pool has stopped.
func (p *pool) wait(w *worker) bool {
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return false
	}
	w.since = p.round
	p.idle = append(p.idle, w)
	p.mu.Unlock()
	return true
}

// trim ends workers that have been idle for long and reports whether any worker
// is left to check again.
func (p *pool) trim() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round++
	n := 0
	for n < len(p.idle) && p.round-p.idle[n].since > idleRounds {
		p.idle[n].ch <- nil
		n++
	}
	p.idle = append(p.idle[:0], p.idle[n:]...)
	clear(p.idle[len(p.idle):cap(p.idle)])
	return p.workers > 0 || p.atWork.Load() > 0
}

func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, w := range p.idle {
		w.ch <- nil
	}
	p.idle = nil
}

// borrow removes n workers from the count: they drive the loop, while that
// lasts, and must not be waited for.
func (p *pool) borrow(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers -= n
}

// A Pool is goroutines that are kept for more tasks, for others than loops. The zero value is
// ready. It is safe for concurrent use.
type Pool struct {
	pool  pool
	timed atomic.Bool // trim will be called
}

// Run runs t on a goroutine of the pool, or a new one.
func (p *Pool) Run(t Task) {
	p.pool.run(t)
	p.armTrim()
}

func (p *Pool) armTrim() {
	if !p.timed.Load() && !p.timed.Swap(true) {
		time.AfterFunc(time.Duration(trimEvery), p.trim)
	}
}

// trim ends those that have waited for long, while there are some.
func (p *Pool) trim() {
	p.timed.Store(false) // before: a task that comes after the look arms it again
	if p.pool.trim() {
		p.armTrim()
	}
}
