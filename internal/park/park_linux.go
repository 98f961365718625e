package park

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

const (
	// each is how often a quarter of the parked sockets is checked for deadlines
	// and closing, which cause no event, and most how many sockets that is at most:
	// about 1 ms.
	each = 250 * time.Millisecond
	most = 8192
	// batch is how many events are fetched at once.
	batch = 128
)

// parker watches sockets with an epoll instance of its own, which exists, with the
// goroutine that waits for it, only while something is parked, and briefly after.
//
// A socket is in the epoll instance while it is parked, for one event (EPOLLONESHOT).
// Its descriptor is used only through its RawConn, which keeps it open meanwhile: the
// descriptor belongs to the user, who may close it at any time. Closing removes it
// from the epoll instance without an event, unless the socket has a duplicate.
type parker struct {
	mu    sync.Mutex
	epoll *epoll // nil while nothing is parked
	timer *time.Timer
	slots []slot
	// order has the index of every slot, the held ones that are not free first: epoll is not
	// closed while there are any.
	order []uint32
	held  int
	gen   uint32
	used  bool // Park was called since the last tick
	// events: there were some since the last tick. busy: the same, but for the moment
	// after a tick.
	events, busy atomic.Bool
	hand         int // where in order the slot is that was checked last
}

// A slot is occupied until its socket has left the epoll instance.
type slot struct {
	*entry
	gen uint32
	at  uint32 // its place in order
}

type entry struct {
	raw   syscall.RawConn
	ready func()
	// Guarded by parker.mu.
	checking bool // or being parked
	claimed  bool // there is one who calls ready
}

// A key identifies an entry: its slot, and above that its gen.
type key uint64

type epoll struct {
	fd   int
	file *os.File
	raw  syscall.RawConn
}

var shared parker

// Park calls ready, on a goroutine of its own, when the socket is readable, its read
// deadline has passed, or it has been closed; immediately if now. Deadlines and
// closing are noticed within a second, or within a second for each 32,768 sockets
// that are parked. An error means that ready will not be called. Safe for concurrent
// use.
func Park(raw syscall.RawConn, now bool, ready func()) error { return shared.park(raw, now, ready) }

// Busy is set while parked sockets have events: loops then leave the processor to the
// goroutines that handle them.
func Busy() *atomic.Bool { return &shared.busy }

func (p *parker) park(raw syscall.RawConn, now bool, ready func()) error {
	// It is not checked meanwhile: what has been fired must not be added after that, or it
	// could not be parked again.
	e := &entry{raw: raw, ready: ready, checking: true}
	ep, k, err := p.enter(e)
	if err != nil {
		return err
	}
	var added error
	err = raw.Control(func(fd uintptr) {
		const once = sys.EPOLLIN | sys.EPOLLONESHOT
		added = sys.EpollAdd(ep.fd, int(fd), once, uint64(k))
		if errors.Is(added, syscall.EEXIST) && !p.parked(e, fd) {
			added = sys.EpollMod(ep.fd, int(fd), once, uint64(k))
		}
	})
	if err == nil {
		err = added
	}
	switch {
	case err != nil:
		p.claim(k)
		p.release(k)
		if errors.Is(err, syscall.EEXIST) {
			err = ErrParked
		}
	case now:
		p.fire(k)
	default:
		p.mu.Lock()
		e.checking = false
		p.mu.Unlock()
	}
	return err
}

// enter puts e into a slot.
func (p *parker) enter(e *entry) (*epoll, key, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epoll == nil {
		ep, err := newEpoll()
		if err != nil {
			return nil, 0, err
		}
		p.epoll = ep
		p.timer = time.AfterFunc(each, p.tick)
		go p.wait(ep)
	}
	if p.held == len(p.slots) {
		p.order = append(p.order, uint32(p.held))
		p.slots = append(p.slots, slot{})
	}
	i := p.order[p.held]
	p.gen++
	p.slots[i] = slot{e, p.gen, uint32(p.held)}
	p.held++
	p.used = true
	return p.epoll, key(i) | key(p.gen)<<32, nil
}

// parked reports whether an entry other than e has the descriptor. If none has, that was
// closed while parked, and a duplicate has kept it in the epoll instance.
func (p *parker) parked(e *entry, fd uintptr) (found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.order[:p.held] {
		if other := p.slots[i].entry; other != e && !found {
			other.raw.Control(func(n uintptr) { found = n == fd })
		}
	}
	return found
}

// claim returns the entry of k for the one caller that may call its ready; nil if there
// has been one already. After it the caller calls release.
func (p *parker) claim(k key) (*epoll, *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := int(uint32(k))
	if i >= len(p.slots) || p.slots[i].gen != uint32(k>>32) {
		return nil, nil
	}
	e := p.slots[i].entry
	if e == nil || e.claimed {
		return nil, nil
	}
	e.claimed = true
	return p.epoll, e
}

func (p *parker) release(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held--
	i, last := uint32(k), p.order[p.held]
	at := p.slots[i].at
	p.order[at], p.order[p.held] = last, i
	p.slots[last].at = at
	p.slots[i].entry = nil
}

// fire ends the parking of k, unless it has ended.
func (p *parker) fire(k key) {
	ep, e := p.claim(k)
	if e == nil {
		return
	}
	// Before ready, which may park the socket again.
	e.raw.Control(func(fd uintptr) { sys.EpollDel(ep.fd, int(fd)) })
	p.release(k)
	go e.ready()
}

// wait handles events until ep is closed.
func (p *parker) wait(ep *epoll) {
	events := make([]sys.EpollEvent, batch)
	n := 0
	fetch := func(fd uintptr) bool {
		n, _ = sys.EpollPoll(int(fd), events)
		return n > 0
	}
	for ep.raw.Read(fetch) == nil {
		if !p.events.Load() {
			p.mu.Lock()
			if p.epoll == ep { // else no tick would end it
				p.events.Store(true)
				p.busy.Store(true)
			}
			p.mu.Unlock()
		}
		for i := range events[:n] {
			p.fire(key(events[i].Key()))
		}
	}
}

// tick checks some of the sockets, and closes the epoll instance if it has not been used
// for a while.
func (p *parker) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.events.Swap(false) {
		p.busy.Store(false)
	}
	if p.held == 0 && !p.used {
		p.epoll.file.Close()
		p.epoll, p.slots, p.order = nil, nil, nil
		p.busy.Store(false)
		return
	}
	p.used = false
	p.timer.Reset(each) // before a check that waits
	p.check(min((p.held+3)/4, most))
}

// check looks at the next n slots for sockets whose Read would fail without waiting. It
// goes backwards, since release moves the last slot to a place before, which it may not pass.
// mu is held, but not while it looks: if other code reads from a parked socket, which
// it must not, the look waits for that Read.
func (p *parker) check(n int) {
	for range min(n, p.held) {
		if p.held == 0 {
			return // since the last look
		}
		if p.hand = min(p.hand, p.held); p.hand == 0 {
			p.hand = p.held
		}
		p.hand--
		i := p.order[p.hand]
		k := key(i) | key(p.slots[i].gen)<<32
		e := p.slots[i].entry
		if e.claimed || e.checking {
			continue
		}
		e.checking = true
		p.mu.Unlock()
		if e.raw.Read(func(uintptr) bool { return true }) != nil {
			p.fire(k)
		}
		p.mu.Lock()
		e.checking = false
	}
}

// newEpoll makes an epoll instance whose descriptor the runtime's poller watches, so that
// the goroutine that waits for it occupies no thread.
func newEpoll() (*epoll, error) {
	fd, err := sys.EpollCreate()
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "parked")
	raw, err := f.SyscallConn()
	if err == nil {
		err = f.SetReadDeadline(time.Time{}) // fails if it is not watched
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &epoll{fd, f, raw}, nil
}
