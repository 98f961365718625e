//go:build linux

package sim

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// An Actor plays a client. Step does a few things that such a client may do now and
// reports whether it did any. Next is when it could do something even if nothing arrives,
// as a time of sys.Nanotime; poll.Never if not.
type Actor interface {
	Step() (did bool)
	Next() int64
}

// A World chooses what happens next in a simulation. It must be made and run in a bubble of
// testing/synctest. Point is safe for concurrent use; the other methods are for the
// goroutine that runs it.
type World struct {
	Kernel *Kernel
	dice   *Dice
	actors []Actor
	now    int64 // while actors act
	due    []int // memory for release

	mu     sync.Mutex
	parked []parked // goroutines in Point
	free   []chan struct{}
	ended  bool

	// Check, if not nil, is called after each step, when everything waits.
	Check func()
	// Trace, if not nil, receives a line for each choice.
	Trace io.Writer
	// Steps counts what happened.
	Steps uint64
}

// NewWorld makes a world of k's, without actors.
func NewWorld(k *Kernel, d *Dice) *World {
	w := &World{Kernel: k, dice: d}
	k.Point = w.Point
	return w
}

// Add lets a act.
func (w *World) Add(a Actor) { w.actors = append(w.actors, a) }

// Now is the time of sys.Nanotime, for actors: it does not change while they act.
func (w *World) Now() int64 { return w.now }

// Actors returns those that act.
func (w *World) Actors() []Actor { return w.actors }

// parked is a goroutine in Point.
type parked struct {
	c    chan struct{}
	step uint64
	key  uint64
}

// Point waits until the world lets the calling goroutine go on. The caller must hold no lock.
// Goroutines that come here in the same step, which are those whose timers have fired at the
// same time, come in the order of their keys, not in that of the Go scheduler.
func (w *World) Point(key uint64) {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return
	}
	var c chan struct{}
	if n := len(w.free); n > 0 {
		c, w.free = w.free[n-1], w.free[:n-1]
	} else {
		c = make(chan struct{}, 1)
	}
	w.parked = append(w.parked, parked{c, w.Steps, key})
	w.mu.Unlock()
	<-c
	w.mu.Lock()
	w.free = append(w.free, c)
	w.mu.Unlock()
}

// End lets all goroutines go on that wait in Point, or will.
func (w *World) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, p := range w.parked {
		p.c <- struct{}{}
	}
	w.parked = nil
}

// Parked returns how many goroutines wait in Point.
func (w *World) Parked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.parked)
}

const (
	// stepsPerTurn bounds the actors that act between two waits for all goroutines.
	stepsPerTurn = 8
	// How far the clock advances in one step when nothing else can happen.
	atLeast = 100 * time.Microsecond
	atMost  = 5 * time.Second
)

// Run goes on until over reports true, which it asks between steps, or nothing has happened
// for the given time of the simulated clock; stuck reports the latter.
func (w *World) Run(over func() bool, patience time.Duration) (stuck bool) {
	w.now = sys.Nanotime()
	last, idle := w.now, atLeast
	for {
		// Before the question, too: what was released runs beside it.
		if synctest.Wait(); w.Check != nil {
			w.Check()
		}
		if over() {
			return false
		}
		w.mu.Lock()
		w.Steps++
		w.mu.Unlock()
		switch {
		case w.dice.OneIn(64):
			w.advance(time.Duration(w.dice.IntN(20_000)))
		case w.dice.Strikes(Jump):
			w.advance(time.Duration(w.dice.Int64N(int64(3 * time.Second))))
		}
		now := sys.Nanotime()
		w.now = now
		did := w.act()
		// Last: what is released runs beside what follows, and the dice are not for both.
		switch {
		case w.release(now) || did:
			last, idle = now, atLeast
		case now-last > int64(patience):
			return true
		default:
			// Twice as far each time: goroutines sleep whose timers the world does not see.
			w.sleep(now, idle)
			idle = min(2*idle, atMost)
		}
	}
}

// advance moves the clock; what that wakes waits in Point or Wait when it returns.
func (w *World) advance(d time.Duration) {
	w.Kernel.Open() // takes the lock with which what is woken uses the dice: for the race detector
	time.Sleep(d)
	synctest.Wait()
}

// act lets some actors act, in an order of the dice.
func (w *World) act() (did bool) {
	if len(w.actors) == 0 {
		return false
	}
	if w.Steps == 1 || w.dice.OneIn(512) { // all at once
		for _, a := range w.actors {
			did = a.Step() || did
		}
	}
	for range stepsPerTurn {
		if w.actors[w.dice.IntN(len(w.actors))].Step() {
			did = true
		}
	}
	if did {
		return true
	}
	first := w.dice.IntN(len(w.actors))
	for i := range w.actors {
		if w.actors[(first+i)%len(w.actors)].Step() {
			return true
		}
	}
	return false
}

// release lets one goroutine go on, a loop's driver, one in a call of a Conn or one in Point,
// and reports whether there was one.
func (w *World) release(now int64) bool {
	k := w.Kernel
	k.mu.Lock()
	due := w.due[:0]
	for i, p := range k.pollers {
		if p.due(now) {
			due = append(due, i)
		}
	}
	n := len(due)
	for i, l := range k.calls {
		if l.due(now) {
			due = append(due, i)
		}
	}
	m := len(due) - n
	w.due = due
	w.mu.Lock()
	if n+m+len(w.parked) == 0 {
		w.mu.Unlock()
		k.mu.Unlock()
		return false
	}
	i := w.dice.IntN(n + m + len(w.parked))
	if w.Trace != nil {
		fmt.Fprintf(w.Trace, "step %d at %d: %d of %d loops, %d calls and %d goroutines; dice %s\n",
			w.Steps, now, i, n, m, len(w.parked), w.dice)
	}
	if i < n {
		p := k.pollers[due[i]]
		p.waiting = false
		w.mu.Unlock()
		k.mu.Unlock()
		p.free <- struct{}{}
		return true
	}
	if i -= n; i < m {
		j := due[n+i]
		l := k.calls[j]
		k.calls = slices.Delete(k.calls, j, j+1)
		w.mu.Unlock()
		k.mu.Unlock()
		l.free <- struct{}{}
		return true
	}
	i -= m
	slices.SortStableFunc(w.parked, func(a, b parked) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.key, b.key))
	})
	c := w.parked[i].c
	w.parked = append(w.parked[:i], w.parked[i+1:]...)
	w.mu.Unlock()
	k.mu.Unlock()
	c <- struct{}{}
	return true
}

// sleep advances the clock to when something may happen.
func (w *World) sleep(now int64, most time.Duration) {
	next := now + int64(most)
	for _, a := range w.actors {
		if t := a.Next(); t > now {
			next = min(next, t)
		}
	}
	w.Kernel.mu.Lock()
	for _, p := range w.Kernel.pollers {
		if p.waiting && p.until != poll.Never && p.until > now {
			next = min(next, p.until)
		}
	}
	for _, l := range w.Kernel.calls {
		if by := l.by(); by > now {
			next = min(next, by)
		}
	}
	w.Kernel.mu.Unlock()
	time.Sleep(time.Duration(next - now))
}
