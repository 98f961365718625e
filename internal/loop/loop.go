package loop

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/timer"
)

const (
	// eventBatch bounds the events of one turn. Each event may pass a request
	// to a goroutine, and a few goroutines whose stacks stay in the cache do
	// the same work for less than many: with 512 busy connections 256 events
	// cost a sixth more CPU per request than 32 (docs/adr/0010).
	eventBatch = 32
	// scratchSize is the size of the loop's own read buffer: large enough that
	// most uploads rarely fill it, small enough to stay in a core's cache.
	scratchSize = 64 << 10
)

// A Sock is a socket that a loop drives. Its methods are called on the loop's
// goroutine only.
type Sock interface {
	// Ready is called with what the descriptor can do. The event may be
	// spurious. Ready may run user code under a lease, and reports whether the
	// caller still drives the loop.
	Ready(r poll.Ready) (mine bool)
	// Expire is called when its timer has fired; see Arm.
	Expire()
	// Mail delivers a message passed to Post. A Sock that has since been
	// detached gets none.
	Mail(message any)
}

// Handle identifies a Sock in its loop; zero until Attach.
type Handle struct {
	slot, gen uint32
}

// Loop is one event loop. Methods are for its own goroutine unless stated
// otherwise.
type Loop struct {
	poller  poll.Poller
	wheel   *timer.Wheel
	now     int64
	events  []poll.Event // of which next up to got are not handled yet
	next    int
	got     int
	scratch *buf.Buf
	slots   slots
	// attached counts Socks; a retiring loop ends when it falls to zero.
	attached int
	// due are Socks that are called in this turn because they requested it, from head
	// on; later are those of the next one. See queue.go.
	due, later []Handle
	head       int
	mailing    bool   // mail is being delivered, or a broadcast
	mailed     bool   // and has been in this turn
	casts      []cast // broadcasts under way; the last one comes first
	// What this turn has done; see step.go.
	casting, serving Step
	late             bool // timers that are due have not fired
	retiring         bool
	pool             pool
	// hand is the slot where spare has stopped. Until barren there is no search.
	hand   int
	barren int64
	// dispatched is how many tasks this turn has passed to the pool.
	dispatched int
	// Tally is what the loop and its connections count.
	Tally tally.Shard
	// Local is what package outbound keeps for each loop. It is the driver's.
	Local any

	holder  Holder        // of the current lease, or the last one
	taking  sync.Mutex    // held while a lease is taken away
	mark    atomic.Uint64 // see driver.go
	seen    atomic.Uint64 // the lease that the watch has seen last
	seenAt  int64         // when; used by the watch until it sets seen, then by that lease's driver
	watched atomic.Bool   // the watch is awake, or has been called
	alarm   chan struct{} // wakes it; capacity 1
	dead    chan struct{} // closed at the end
	ended   chan error    // why the loop ended, for Run

	asleep atomic.Bool // the loop waits, or is about to; see Post
	mail   mailbox
}

// New makes a loop with its poller. Run must be called to drive it and to
// release what it holds.
func New() (*Loop, error) {
	p, err := poll.New(nil)
	if err != nil {
		return nil, err
	}
	return On(p), nil
}

// A scheduler is a poller of a simulation that also decides when goroutines go on.
type scheduler interface {
	// Point returns when the calling goroutine, which holds no lock, is to go on. key is
	// its own among those of the loop.
	Point(key uint64)
}

// scheduled is a Task that begins when the scheduler lets it.
type scheduled struct {
	Task
	by  scheduler
	key uint64
}

func (s scheduled) Run() {
	s.by.Point(s.key)
	s.Task.Run()
}

// Point is called by a goroutine of user code that has waited for the Sock at h: a
// simulation may let others go on first.
func (l *Loop) Point(h Handle) {
	if s := l.pool.scheduler; s != nil {
		s.Point(uint64(h.slot))
	}
}

// On is New with a poller, which the loop closes at its end.
func On(p poll.Poller) *Loop {
	l := &Loop{
		poller: p,
		now:    sys.Nanotime(),
		events: make([]poll.Event, eventBatch),
		alarm:  make(chan struct{}, 1),
		dead:   make(chan struct{}),
		ended:  make(chan error, 1),
	}
	l.wheel = timer.New(l.now)
	l.pool.scheduler, _ = p.(scheduler)
	return l
}

// Now returns the time of this turn, in sys.Nanotime's nanoseconds.
func (l *Loop) Now() int64 { return l.now }

// Scratch returns the driver's read buffer. The caller may use it until its
// goroutine returns from Ready, even if it has lost the loop meanwhile.
func (l *Loop) Scratch() *buf.Buf { return l.scratch }

// Poller returns the operations on descriptors.
func (l *Loop) Poller() poll.Poller { return l.poller }

// Attach registers s and watches fd. On error nothing is kept and the caller still owns fd.
func (l *Loop) Attach(s Sock, fd int) (Handle, error) {
	i := l.slots.take()
	sl := l.slots.at(i)
	sl.gen++
	h := Handle{i, sl.gen}
	if err := l.poller.Add(fd, h.key()); err != nil {
		l.slots.put(i)
		return Handle{}, err
	}
	sl.sock, sl.state = s, 0
	l.attached++
	return h, nil
}

// Detach drops a Sock, with its events, mail and timer. The descriptor stays open.
func (l *Loop) Detach(h Handle) {
	if sl := l.at(h); sl != nil {
		l.wheel.Stop(h.slot)
		sl.sock = nil
		sl.gen++
		l.slots.put(h.slot)
		l.attached--
	}
}

// Arm makes the timer of h's Sock fire at the given time of sys.Nanotime, whatever it was armed
// for before.
func (l *Loop) Arm(h Handle, when int64) {
	if l.at(h) != nil {
		l.wheel.Arm(h.slot, when)
	}
}

// ArmBy makes that timer fire at the given time, unless it is armed for an earlier one.
func (l *Loop) ArmBy(h Handle, when int64) {
	if l.at(h) != nil {
		l.wheel.ArmBy(h.slot, when)
	}
}

// Go runs t on a pooled goroutine.
func (l *Loop) Go(t Task) {
	l.dispatched++
	l.pool.run(t)
	l.armTrim()
}

// GoBeside is Go for goroutines other than the loop's.
func (l *Loop) GoBeside(t Task) {
	l.pool.run(t)
	l.Do(l.armTrim)
}

// armTrim schedules the check for idle goroutines of the pool.
func (l *Loop) armTrim() {
	l.wheel.ArmBy(trimTimer, l.now+trimEvery)
}

// Retire ends the loop when it has no Sock left.
func (l *Loop) Retire() { l.retiring = true }

// Run drives the loop until it has retired, then releases everything it holds.
// It returns early only if the poller itself fails.
func (l *Loop) Run() error {
	// Not on this goroutine: a driver may lose the loop, and end.
	go l.driveFirst()
	l.watch()
	return <-l.ended
}

// turn handles events, mail, requeued Socks and timers, and reports whether the
// caller still drives the loop. If not, the next driver's turn continues where
// this one stopped.
func (l *Loop) turn() bool {
	for l.next < l.got {
		ev := &l.events[l.next]
		l.next++
		// An earlier event of this batch may have detached this one.
		sl := l.at(handleOf(ev.Key))
		switch {
		case sl == nil:
		case sl.state&queued != 0:
			sl.state |= uint32(ev.Ready)
		case !sl.sock.Ready(ev.Ready):
			return false
		}
	}
	if !l.mailed {
		l.mailed = true
		l.mailing = true
		l.deliver()
		l.cast()
		l.mailing = false
	}
	if !l.serveDue() {
		return false
	}
	timing := Step{count: 1} // Next is called after the first timer
	l.late = !l.wheel.Advance(l.now, l.fire, timing.Next)
	return true
}

// wait fetches events.
func (l *Loop) wait() error {
	if l.dispatched > 0 {
		// Let goroutines with new work run first; when they have, there is more
		// to fetch in one call.
		l.dispatched = 0
		runtime.Gosched()
	}
	until := poll.Never
	if l.nextDue() || l.late || l.mail.left() || len(l.casts) > 0 {
		until = poll.Now
	} else if when, ok := l.wheel.Next(); ok {
		until = when
	}
	if until != poll.Now {
		l.asleep.Store(true)
		if l.mail.any() {
			until = poll.Now
		}
	}
	l.count()
	l.poller.Share(l.pool.atWork.Load() > 0)
	n, err := l.poller.Wait(l.events, until)
	l.asleep.Store(false)
	l.now = sys.Nanotime()
	l.next, l.got, l.mailed = 0, n, false
	l.casting, l.serving = Step{}, Step{}
	l.Tally.Add(true, tally.Turns, 1)
	l.Tally.Add(true, tally.Events, uint64(n))
	return err
}

func (l *Loop) fire(id timer.ID) {
	if id == trimTimer {
		if l.pool.trim() {
			l.wheel.Arm(id, l.now+trimEvery)
		}
		return
	}
	if s := l.slots.at(id).sock; s != nil {
		s.Expire()
	}
}

// Discard releases a loop that was never run.
func (l *Loop) Discard() { l.end() }

func (l *Loop) end() {
	l.mail.end()
	close(l.dead)
	l.pool.stop()
	l.poller.Close()
}

func (l *Loop) at(h Handle) *slot {
	if int(h.slot) < l.slots.count {
		if sl := l.slots.at(h.slot); sl.gen == h.gen && sl.sock != nil {
			return sl
		}
	}
	return nil
}

func (h Handle) key() poll.Key { return poll.Key(h.slot) | poll.Key(h.gen)<<32 }

func handleOf(k poll.Key) Handle { return Handle{uint32(k), uint32(k >> 32)} }
