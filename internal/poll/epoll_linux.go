package poll

import (
	"runtime"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// epoll meets the contract with epoll(7): every descriptor is added once, edge
// triggered, for both directions, so that no request costs an epoll_ctl.
//
// It waits in one of two ways (docs/adr/0003). Parking on the runtime's poller
// gives the processor away at once, and costs several system calls. Waiting in
// epoll_wait costs one, and keeps the processor until the runtime's monitor
// takes it, 20 us to 10 ms later. So it waits there while one wait after another
// is brief, as they are under load; the first that is not ends that.
type epoll struct {
	readinessOps
	parker
	fd     int
	wakeFD int
	got    []sys.EpollEvent
	// brief counts the waits in a row that were.
	brief  int
	others bool // see Share
	// yielded is when other goroutines last had the processor.
	yielded int64
	pause   *pause
	// out and n carry Wait's arguments to try, which is made once: a closure
	// made in every Wait would be an allocation in every Wait.
	out []Event
	n   int
	err error
	try func() bool
}

const (
	// briefly is how long a brief wait is at most. After proof of them in a row
	// the next one keeps the processor.
	briefly = int64(100 * time.Microsecond)
	proof   = 16
	// yieldEvery is how long a loop that always finds work keeps others from
	// running. The scheduler would take its processor only after 10 ms.
	yieldEvery = int64(500 * time.Microsecond)
	// yieldSoon is that while the loop's own goroutines are at work: one of
	// them may get the answer it waits for from a database.
	yieldSoon = int64(100 * time.Microsecond)
)

// oneProcessor: what keeps the processor keeps it from everybody. As it was
// when the program started.
var oneProcessor = runtime.GOMAXPROCS(0) == 1

// New opens the system's poller.
func New() (Poller, error) {
	fd, err := sys.EpollCreate()
	if err != nil {
		return nil, err
	}
	p := &epoll{fd: fd, wakeFD: -1}
	p.try = p.fetch
	if p.parker, err = newParker(fd, "epoll"); err != nil {
		return nil, err
	}
	if p.pause, err = newPause(); err != nil {
		p.Close()
		return nil, err
	}
	if p.wakeFD, err = sys.Eventfd(); err == nil {
		// Nobody reads the counter: edge-triggered, every write to it is an event.
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
	if p.others {
		soon = yieldSoon
		if oneProcessor {
			p.brief = 0
		}
	}
	if start-p.yielded > soon {
		p.pause.yield()
		start = sys.Nanotime()
		p.yielded = start
	}
	if p.brief >= proof && until != Now {
		n, e := sys.EpollWait(p.fd, p.got, milliseconds(until, start))
		if e != 0 {
			return 0, e
		}
		p.take(n)
		p.waited(sys.Nanotime() - start)
		return p.n, nil
	}
	if p.fetch() || until == Now {
		return p.n, p.err
	}
	if err := p.parker.wait(until, p.try); err != nil {
		return 0, err
	}
	p.yielded = sys.Nanotime()
	p.waited(p.yielded - start)
	return p.n, p.err
}

// waited notes how long a wait was.
func (p *epoll) waited(d int64) {
	if d < briefly {
		p.brief++
	} else {
		p.brief = 0
	}
}

// milliseconds is how long it is from now until a time, rounded up, for
// epoll_wait.
func milliseconds(until, now int64) int {
	if until == Never {
		return -1
	}
	const most = int64(time.Hour)
	ns := min(max(until-now, 0), most)
	return int((ns + int64(time.Millisecond) - 1) / int64(time.Millisecond))
}

// fetch takes what is ready now and reports whether there was anything,
// counting a wake-up or an error as something.
func (p *epoll) fetch() bool {
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

func (p *epoll) Wake() { sys.EventfdSignal(p.wakeFD) }

func (p *epoll) Close() error {
	if p.wakeFD >= 0 {
		sys.Close(p.wakeFD)
	}
	if p.pause != nil {
		p.pause.close()
	}
	return p.file.Close()
}
