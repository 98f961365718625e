package loop

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/timer"
)

const (
	// eventBatch bounds the events of one turn. Each event may hand a request
	// to a goroutine, and a few goroutines whose stacks stay in the cache do
	// the same work for less than many: with 512 busy connections 256 events
	// cost a sixth more CPU per request than 32 (docs/adr/0010).
	eventBatch = 32
	// scratchSize is the loop's own read buffer: large enough that most
	// uploads fill it seldom, small enough to stay in a core's cache.
	scratchSize = 64 << 10
)

// A Sock is what a loop drives. Its methods are called on the loop's goroutine
// only.
type Sock interface {
	// Ready says what the descriptor can do. It may be spurious.
	Ready(r poll.Ready)
	// Expire says that the timer given to Arm has fired.
	Expire()
	// Mail delivers what Post was given. A Sock that has since been detached
	// gets none.
	Mail(what int)
}

// Place is where a Sock sits in its loop; zero until Attach.
type Place struct {
	slot, gen uint32
}

// Loop is one event loop. Methods are for its own goroutine unless they say
// otherwise.
type Loop struct {
	poller  poll.Poller
	wheel   *timer.Wheel
	now     int64
	events  []poll.Event // of which next up to got are not dealt with yet
	next    int
	got     int
	scratch *[scratchSize]byte
	// pinned: the task that is given to Next looks into scratch.
	pinned bool
	slots  []slot
	free   []uint32
	// attached counts Socks; a retiring loop ends when it falls to zero.
	attached int
	again    []Place
	spare    []Place
	retiring bool
	pool     pool
	// ready are the tasks for the driver, from head on; current is the one
	// that runs.
	ready   []InlineTask
	head    int
	current InlineTask
	// prompt: what is given to Next now runs before any other Sock is called.
	prompt bool
	// dispatched is how many tasks this turn gave to the pool.
	dispatched int

	mark    atomic.Uint64 // see driver.go
	watched atomic.Bool   // the watch is awake, or has been called
	alarm   chan struct{} // wakes it; capacity 1
	dead    chan struct{} // closed at the end
	ended   chan error    // what ended the loop, for Run

	asleep    atomic.Bool // the loop waits, or is about to; see post
	delivered []mail      // the mail being delivered; its array is swapped with mail

	mu   sync.Mutex
	mail []mail
	deaf bool // no mail is taken any more
}

type slot struct {
	sock Sock
	node *timer.Node
	gen  uint32
}

type mail struct {
	to   Place
	what int
	fn   func()
}

// New makes a loop with its poller. Run must be called for it to live and
// release what it holds.
func New() (*Loop, error) {
	p, err := poll.New()
	if err != nil {
		return nil, err
	}
	l := &Loop{
		poller:  p,
		scratch: scratches.Get().(*[scratchSize]byte),
		now:     sys.Nanotime(),
		events:  make([]poll.Event, eventBatch),
		slots:   make([]slot, 1, 64), // slot 0 stays empty: Place{} is nowhere
		alarm:   make(chan struct{}, 1),
		dead:    make(chan struct{}),
		ended:   make(chan error, 1),
	}
	l.wheel = timer.New(l.now)
	return l, nil
}

// Now is the clock of this turn, in sys.Nanotime's nanoseconds.
func (l *Loop) Now() int64 { return l.now }

// Scratch is a buffer that any Sock may use until its method returns, and, if
// Prompt says so and Pin is called, until the task that it gives to Next
// meanwhile has ended.
func (l *Loop) Scratch() []byte { return l.scratch[:] }

// Prompt reports whether a task that is given to Next now runs before any
// other Sock is called.
func (l *Loop) Prompt() bool { return l.prompt }

// Pin says that the task which the Sock is about to give to Next looks into
// Scratch.
func (l *Loop) Pin() { l.pinned = true }

// Poller gives the operations on descriptors.
func (l *Loop) Poller() poll.Poller { return l.poller }

// Attach gives s a place and has fd watched. node is s's timer; the loop sets
// its Key. On error nothing is kept and fd is still the caller's.
func (l *Loop) Attach(s Sock, fd int, node *timer.Node) (Place, error) {
	var i uint32
	if n := len(l.free); n > 0 {
		i = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		i = uint32(len(l.slots))
		l.slots = append(l.slots, slot{})
	}
	sl := &l.slots[i]
	sl.gen++
	p := Place{i, sl.gen}
	if err := l.poller.Add(fd, p.key()); err != nil {
		l.free = append(l.free, i)
		return Place{}, err
	}
	node.Key = i
	sl.sock, sl.node = s, node
	l.attached++
	return p, nil
}

// Detach forgets a Sock: its events, mail and timer. The descriptor stays open.
func (l *Loop) Detach(p Place) {
	if sl := l.at(p); sl != nil {
		l.wheel.Stop(sl.node)
		sl.sock, sl.node = nil, nil
		sl.gen++
		l.free = append(l.free, p.slot)
		l.attached--
	}
}

// Arm makes s's timer fire at the given time of sys.Nanotime, replacing what
// was armed.
func (l *Loop) Arm(n *timer.Node, when int64) { l.wheel.Arm(n, when) }

// Stop disarms a timer.
func (l *Loop) Stop(n *timer.Node) { l.wheel.Stop(n) }

// Again calls the Sock's Ready with nothing set in the next turn, for one that
// stopped halfway so that others get their share.
func (l *Loop) Again(p Place) { l.again = append(l.again, p) }

// Next runs t on the goroutine that drives the loop, behind what has been
// queued so. A task that takes long, or calls HandOff, costs that goroutine
// the loop and nothing else.
func (l *Loop) Next(t InlineTask) { l.ready = append(l.ready, t) }

// Go runs t on a pooled goroutine.
func (l *Loop) Go(t Task) {
	l.dispatched++
	l.pool.run(t)
	l.armTrim()
}

// armTrim sees to it that idle goroutines of the pool are looked at.
func (l *Loop) armTrim() {
	if !l.pool.node.Armed() {
		l.wheel.Arm(&l.pool.node, l.now+trimEvery)
	}
}

// Post delivers what to the Sock at p on the loop's goroutine. Any goroutine
// may call it. It reports false when the loop has ended.
func (l *Loop) Post(p Place, what int) bool { return l.post(mail{to: p, what: what}) }

// Do runs fn on the loop's goroutine. Any goroutine may call it. It reports
// false, without running fn ever, when the loop has ended.
func (l *Loop) Do(fn func()) bool { return l.post(mail{fn: fn}) }

func (l *Loop) post(m mail) bool {
	l.mu.Lock()
	if l.deaf {
		l.mu.Unlock()
		return false
	}
	l.mail = append(l.mail, m)
	l.mu.Unlock()
	// The loop sets asleep before it looks at the mail a last time; so either
	// it sees this mail or this sees it asleep.
	if l.asleep.CompareAndSwap(true, false) {
		l.poller.Wake()
	}
	return true
}

// Broadcast delivers what to every Sock now attached.
func (l *Loop) Broadcast(what int) {
	for i := range l.slots {
		if s := l.slots[i].sock; s != nil {
			s.Mail(what)
		}
	}
}

// Retire ends the loop once it drives no Sock any more.
func (l *Loop) Retire() { l.retiring = true }

// Run drives the loop until it has retired, then releases all it holds. It
// returns early only if the poller itself fails.
func (l *Loop) Run() error {
	// Not on this goroutine: a driver may lose the loop, and end.
	go l.driveFirst()
	l.watch()
	return <-l.ended
}

// turn deals with events, mail and timers and reports whether the loop is
// still the caller's. Each event's task runs before the next event.
func (l *Loop) turn() bool {
	// What a former driver left: before any Sock may queue something behind it.
	if !l.runReady() {
		return false
	}
	for l.next < l.got {
		ev := &l.events[l.next]
		l.next++
		// An earlier event of this batch may have detached this one.
		if sl := l.at(placeOf(ev.Key)); sl != nil {
			l.prompt = true
			sl.sock.Ready(ev.Ready)
			l.prompt = false
			if l.head < len(l.ready) && !l.runReady() {
				return false
			}
		}
	}
	l.deliver()
	l.continueAgain()
	l.wheel.Advance(l.now, l.fire)
	return l.runReady()
}

// wait fetches events.
func (l *Loop) wait() error {
	if l.dispatched > 0 {
		// Those who were given work run first; by the time they have, there
		// is more to fetch in one call.
		l.dispatched = 0
		runtime.Gosched()
	}
	until := poll.Never
	if len(l.again) > 0 {
		until = poll.Now
	} else if when, ok := l.wheel.Next(); ok {
		until = when
	}
	if until != poll.Now {
		l.asleep.Store(true)
		if l.hasMail() {
			until = poll.Now
		}
	}
	l.poller.Share(l.pool.atWork.Load() > 0)
	n, err := l.poller.Wait(l.events, until)
	l.asleep.Store(false)
	l.now = sys.Nanotime()
	l.next, l.got = 0, n
	return err
}

func (l *Loop) hasMail() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mail) > 0
}

func (l *Loop) deliver() {
	l.mu.Lock()
	in := l.mail
	l.mail = l.delivered[:0]
	l.mu.Unlock()
	for i := range in {
		m := in[i]
		in[i] = mail{}
		if m.fn != nil {
			m.fn()
		} else if sl := l.at(m.to); sl != nil {
			sl.sock.Mail(m.what)
		}
	}
	l.delivered = in
}

func (l *Loop) continueAgain() {
	// Those that ask again while this runs wait for the next turn.
	now := l.again
	l.again = l.spare[:0]
	for _, p := range now {
		if sl := l.at(p); sl != nil {
			sl.sock.Ready(0)
		}
	}
	l.spare = now
}

func (l *Loop) fire(n *timer.Node) {
	if n == &l.pool.node {
		if l.pool.trim() {
			l.wheel.Arm(n, l.now+trimEvery)
		}
		return
	}
	if s := l.slots[n.Key].sock; s != nil {
		s.Expire()
	}
}

// finish closes the mailbox if it is empty; mail that came in is delivered in
// another turn, since it may attach a Sock.
func (l *Loop) finish() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mail) > 0 {
		return false
	}
	l.deaf = true
	return true
}

// Discard releases a loop that was never run.
func (l *Loop) Discard() { l.end() }

func (l *Loop) end() {
	l.mu.Lock()
	l.deaf = true
	l.mail = nil
	l.mu.Unlock()
	close(l.dead)
	scratches.Put(l.scratch)
	l.pool.stop()
	l.poller.Close()
}

func (l *Loop) at(p Place) *slot {
	if int(p.slot) < len(l.slots) {
		if sl := &l.slots[p.slot]; sl.gen == p.gen && sl.sock != nil {
			return sl
		}
	}
	return nil
}

func (p Place) key() poll.Key { return poll.Key(p.slot) | poll.Key(p.gen)<<32 }

func placeOf(k poll.Key) Place { return Place{uint32(k), uint32(k >> 32)} }
