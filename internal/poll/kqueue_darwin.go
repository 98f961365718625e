package poll

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/sys"
)

// kqueue implements Poller with kqueue(2), using EV_CLEAR for edge triggering.
// Untested: CI only compiles and vets it.
type kqueue struct {
	readinessOps
	parker
	fd           int
	wakeR, wakeW int
	wakers       wakers
	got          []sys.Kevent
	// keys maps a descriptor to its key: a kevent's user data is a pointer, in
	// which Go must not store a number.
	mu   sync.Mutex
	keys map[int]Key
	out  []Event
	n    int
	err  error
	try  func(uintptr) bool
	// waits is how often the kernel was asked.
	waits uint64
}

// New opens the system's poller.
func New(*atomic.Bool) (Poller, error) {
	fd, err := sys.Kqueue()
	if err != nil {
		return nil, err
	}
	p := &kqueue{fd: fd, wakeR: -1, wakeW: -1, keys: map[int]Key{}}
	p.try = func(uintptr) bool { return p.fetch() }
	if p.parker, err = newParker(fd, "kqueue"); err != nil {
		return nil, err
	}
	if p.wakeR, p.wakeW, err = sys.Pipe(); err == nil {
		err = p.Add(p.wakeR, wakeKey)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *kqueue) Add(fd int, key Key) error {
	p.mu.Lock()
	p.keys[fd] = key
	p.mu.Unlock()
	return sys.KqueueAdd(p.fd, fd)
}

func (p *kqueue) Remove(fd int) {
	sys.KqueueDel(p.fd, fd)
	p.forget(fd)
}

func (p *kqueue) CloseFD(fd int) {
	p.forget(fd)
	sys.Close(fd)
}

func (p *kqueue) forget(fd int) {
	p.mu.Lock()
	delete(p.keys, fd)
	p.mu.Unlock()
}

func (p *kqueue) Wait(events []Event, until int64) (int, error) {
	runtime.Gosched()
	p.out, p.n, p.err = events, 0, nil
	if p.fetch() || until == Now {
		return p.n, p.err
	}
	if err := p.parker.wait(until, p.try); err != nil {
		return 0, err
	}
	return p.n, p.err
}

// fetch fetches what is ready now and reports whether there was anything,
// including a wake-up or an error.
func (p *kqueue) fetch() bool {
	p.waits++
	if cap(p.got) < len(p.out) {
		p.got = make([]sys.Kevent, len(p.out))
	}
	n, e := sys.KqueuePoll(p.fd, p.got[:len(p.out)])
	if e != 0 {
		p.err = e
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n = 0
	for i := range p.got[:n] {
		ev := &p.got[i]
		key, ok := p.keys[int(ev.Ident)]
		switch {
		case !ok:
		case key == wakeKey:
			var b [64]byte
			for n, e := sys.Read(p.wakeR, b[:]); e == 0 && n == len(b); n, e = sys.Read(p.wakeR, b[:]) {
			}
		default:
			p.out[p.n] = Event{key, readyOf(ev)}
			p.n++
		}
	}
	return n > 0
}

func readyOf(ev *sys.Kevent) Ready {
	switch {
	case ev.Flags&sys.EV_ERROR != 0:
		return Readable | Writable | Hangup
	case ev.Filter == sys.EVFILT_WRITE && ev.Flags&sys.EV_EOF != 0:
		return Readable | Writable | Hangup
	case ev.Filter == sys.EVFILT_WRITE:
		return Writable
	case ev.Flags&sys.EV_EOF != 0 && ev.Fflags != 0:
		return Readable | Writable | Hangup
	case ev.Flags&sys.EV_EOF != 0:
		return Readable | PeerClosed
	}
	return Readable
}

// Share does nothing: Wait always lets other goroutines run.
func (p *kqueue) Share(bool) {}

func (p *kqueue) Waits() uint64 { return p.waits }

func (p *kqueue) Wake() {
	if p.wakers.enter() {
		one := [1]byte{1}
		sys.Write(p.wakeW, one[:])
		p.wakers.leave()
	}
}

func (p *kqueue) Close() error {
	p.wakers.end()
	if p.wakeR >= 0 {
		sys.Close(p.wakeR)
		sys.Close(p.wakeW)
	}
	return p.file.Close()
}
