package loop

import (
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// This file is for readers of what a loop counts and drives.

// count is called by the driver at the end of a turn.
func (l *Loop) count() {
	if l.Tally.Sampled.Next() != 0 {
		l.Tally.Turn(time.Duration(sys.Nanotime() - l.now))
	}
}

// State is what a loop has to do.
type State struct {
	// AtWork is how many of its pooled goroutines have a task, Spare how many wait for
	// one.
	AtWork, Spare int
	// Requeued is how many Socks wait for another call in this turn or the next, each
	// counted once; some of them may have been detached since.
	Requeued int
	// Waits is how often the kernel was asked for events.
	Waits uint64
}

// State returns the loop's state. Only the driver, or a Survey, may call it.
func (l *Loop) State() State {
	l.pool.mu.Lock()
	spare := len(l.pool.idle)
	l.pool.mu.Unlock()
	return State{
		AtWork: max(int(l.pool.atWork.Load()), 0), Spare: spare,
		Requeued: len(l.due) - l.head + len(l.later), Waits: l.poller.Waits(),
	}
}

// Mailed returns how many messages wait for the loop. Safe for concurrent use.
func (l *Loop) Mailed() int { return int(l.mail.count.Load()) }

// Survey runs f on the loop's goroutine, or, if the loop has ended, on the caller's:
// nothing drives the loop any more then. done is closed when f has returned, which is
// never if the loop fails meanwhile. f must neither wait, nor run user code, nor change
// anything of the loop's. Safe for concurrent use.
func (l *Loop) Survey(f func()) (done <-chan struct{}) {
	ran := make(chan struct{})
	if !l.Do(func() { f(); close(ran) }) {
		<-l.dead // it may be about to end
		f()
		close(ran)
	}
	return ran
}

// Slots returns how many slots for Socks the loop has, some of them empty. Only the driver
// may call it, while no lease is held.
func (l *Loop) Slots() int { return l.slots.count }

// Socks calls f for each Sock in n slots from one on, until f returns false, and returns the
// slot after those; 0 if there is no further one, or f has returned false. Only the driver
// may call it, while no lease is held. A Sock stays in its slot.
func (l *Loop) Socks(from, n int, f func(Sock) bool) (next int) {
	end := min(from+n, l.slots.count)
	for i := from; i < end; i++ {
		if s := l.slots.at(uint32(i)).sock; s != nil && !f(s) {
			return 0
		}
	}
	if end == l.slots.count {
		return 0
	}
	return end
}
