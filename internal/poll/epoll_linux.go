package poll

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// epoll implements Poller with epoll(7): every descriptor is added once, edge
// triggered, for both directions, so that no request costs an epoll_ctl.
//
// It waits in one of three ways (docs/adr/0003). Parking on the runtime's poller
// releases the processor immediately, and costs several system calls; if that
// leaves all processors idle, the runtime's monitor wakes up with the next event
// and polls every 20 us for a while. Waiting in epoll_wait costs one call, and
// keeps the processor until the monitor takes it, 20 us to 10 ms later: it is
// used while successive waits are brief, as they are under load. If they are
// longer, but short compared with the work between them, it waits without the
// scheduler's knowledge, for a millisecond at a time, between which other
// goroutines run.
type epoll struct {
	readinessOps
	parker
	fd     int
	wakeFD int
	wakers wakers
	got    []sys.EpollEvent
	// brief counts consecutive brief waits. short is a credit: it grows with
	// each wait that ended as soon as expected.
	brief, short int
	others       bool         // see Share
	busy         *atomic.Bool // see New
	// alone: there is one processor, so keeping it stops all other goroutines.
	alone bool
	// waitedAt is when the last wait ended.
	waitedAt int64
	// yielded is when other goroutines last had the processor.
	yielded int64
	pause   *pause
	// out and n carry Wait's arguments to try, which is made once: a closure
	// made in every Wait would be an allocation in every Wait.
	out []Event
	n   int
	err error
	try func(uintptr) bool
	// waits is how often the kernel was asked.
	waits uint64
}

const (
	// briefly is the longest brief wait. After proof consecutive ones the next
	// one keeps the processor.
	briefly = int64(100 * time.Microsecond)
	proof   = 16
	// A short wait takes at most shortAs times as long as the work before it, or
	// leastShort if that is more, and never more than mostShort. One that is not
	// short costs a quarter of the proof.
	shortAs    = 10
	leastShort = int64(2 * time.Millisecond)
	mostShort  = int64(10 * time.Millisecond)
	// yieldEvery is how long a loop that always finds work keeps others from
	// running. The scheduler would take its processor only after 10 ms.
	yieldEvery = int64(500 * time.Microsecond)
	// yieldSoon is the same while the loop's own goroutines are at work: one of
	// them may receive the reply it waits for from a database.
	yieldSoon = int64(100 * time.Microsecond)
)

// New opens the system's poller. busy, if it is not nil, is set while goroutines that no
// loop has started handle the events of other sockets: the poller then waits as with
// Share(true). Otherwise a loop that expects its next event soon keeps its processor for
// up to a millisecond, and there may be no other.
func New(busy *atomic.Bool) (Poller, error) {
	if busy == nil {
		busy = new(atomic.Bool)
	}
	fd, err := sys.EpollCreate()
	if err != nil {
		return nil, err
	}
	p := &epoll{fd: fd, wakeFD: -1, busy: busy, alone: runtime.GOMAXPROCS(0) == 1}
	p.try = func(uintptr) bool { return p.fetch() }
	if p.parker, err = newParker(fd, "epoll"); err != nil {
		return nil, err
	}
	if p.pause, err = newPause(); err != nil {
		p.Close()
		return nil, err
	}
	if p.wakeFD, err = sys.Eventfd(); err == nil {
		// The counter is never read: edge-triggered, every write to it is an event.
		err = sys.EpollAdd(fd, p.wakeFD, sys.EPOLLIN|sys.EPOLLET, uint64(wakeKey))
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *epoll) Add(fd int, key Key) error {
	return sys.EpollAdd(p.fd, fd, sys.EPOLLIN|sys.EPOLLOUT|sys.EPOLLRDHUP|sys.EPOLLET, uint64(key))
}

func (p *epoll) Share(others bool) { p.others = others }

func (p *epoll) Remove(fd int) { sys.EpollDel(p.fd, fd) }

func (p *epoll) Wait(events []Event, until int64) (int, error) {
	p.out, p.n, p.err = events, 0, nil
	if cap(p.got) < len(events) {
		p.got = make([]sys.EpollEvent, len(events))
	}
	p.got = p.got[:len(events)]
	start := sys.Nanotime()
	soon := yieldEvery
	others := p.others || p.busy.Load()
	if others {
		soon = yieldSoon
		if p.alone {
			p.brief = 0
		}
	}
	if start-p.yielded > soon {
		p.pause.yield()
		start = sys.Nanotime()
		p.yielded = start
	}
	expect := min(max(leastShort, shortAs*(start-p.waitedAt)), mostShort)
	if until != Now && (p.brief >= proof || p.short >= proof && !others) {
		n, e := p.hold(until, start, start+expect)
		if e != 0 {
			return 0, e
		}
		p.take(n)
		p.waited(start, expect)
		return p.n, nil
	}
	if p.fetch() || until == Now {
		return p.n, p.err
	}
	if err := p.parker.wait(until, p.try); err != nil {
		return 0, err
	}
	p.waited(start, expect)
	p.yielded = p.waitedAt
	return p.n, p.err
}

// hold waits without releasing the processor, at most until slightly after the
// time most.
func (p *epoll) hold(until, now, most int64) (int, sys.Errno) {
	p.waits++
	if p.brief >= proof {
		return sys.EpollWait(p.fd, p.got, milliseconds(until, now))
	}
	for {
		n, e := sys.EpollWaitKeeping(p.fd, p.got, 1)
		if n > 0 || e != 0 {
			return n, e
		}
		p.pause.yield()
		now = sys.Nanotime()
		p.yielded = now
		if now >= min(until, most) {
			return 0, 0
		}
		p.waits++
	}
}

// waited records how long the wait took that began at start.
func (p *epoll) waited(start, expect int64) {
	p.waitedAt = sys.Nanotime()
	d := p.waitedAt - start
	if d < briefly {
		p.brief++
	} else {
		p.brief = 0
	}
	if d < expect {
		p.short = min(p.short+1, 4*proof)
	} else {
		p.short = max(p.short-proof/4, 0)
	}
}

// milliseconds returns the time from now until a time, rounded up, for
// epoll_wait.
func milliseconds(until, now int64) int {
	if until == Never {
		return -1
	}
	const most = int64(time.Hour)
	ns := min(max(until-now, 0), most)
	return int((ns + int64(time.Millisecond) - 1) / int64(time.Millisecond))
}

// fetch fetches what is ready now and reports whether there was anything,
// including a wake-up or an error.
func (p *epoll) fetch() bool {
	p.waits++
	n, e := sys.EpollPoll(p.fd, p.got)
	if e != 0 {
		p.err = e
		return true
	}
	p.take(n)
	return n > 0
}

// take turns n of got into out.
func (p *epoll) take(n int) {
	p.n = 0
	for i := range p.got[:n] {
		ev := &p.got[i]
		if key := Key(ev.Key()); key != wakeKey {
			p.out[p.n] = Event{key, readyOf(ev.Events)}
			p.n++
		}
	}
}

func readyOf(ev uint32) (r Ready) {
	if ev&sys.EPOLLIN != 0 {
		r |= Readable
	}
	if ev&sys.EPOLLOUT != 0 {
		r |= Writable
	}
	if ev&sys.EPOLLRDHUP != 0 {
		r |= Readable | PeerClosed
	}
	if ev&(sys.EPOLLHUP|sys.EPOLLERR) != 0 {
		r |= Readable | Writable | Hangup
	}
	return r
}

func (p *epoll) Waits() uint64 { return p.waits }

func (p *epoll) Wake() {
	if p.wakers.enter() {
		sys.EventfdSignal(p.wakeFD)
		p.wakers.leave()
	}
}

func (p *epoll) Close() error {
	p.wakers.end()
	if p.wakeFD >= 0 {
		sys.Close(p.wakeFD)
	}
	if p.pause != nil {
		p.pause.close()
	}
	return p.file.Close()
}
