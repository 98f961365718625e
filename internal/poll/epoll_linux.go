package poll

import (
	"github.com/chert-http/chert/internal/sys"
)

// epoll meets the contract with epoll(7): every descriptor is added once, edge
// triggered, for both directions, so that no request costs an epoll_ctl.
type epoll struct {
	readinessOps
	parker
	fd     int
	wakeFD int
	got    []sys.EpollEvent
	// out and n carry Wait's arguments to try, which is made once: a closure
	// made in every Wait would be an allocation in every Wait.
	out []Event
	n   int
	err error
	try func() bool
}

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

func (p *epoll) Remove(fd int) { sys.EpollDel(p.fd, fd) }

func (p *epoll) Wait(events []Event, until int64) (int, error) {
	p.out, p.n, p.err = events, 0, nil
	if p.fetch() || until == Now {
		return p.n, p.err
	}
	if err := p.parker.wait(until, p.try); err != nil {
		return 0, err
	}
	return p.n, p.err
}

// fetch takes what is ready now and reports whether there was anything,
// counting a wake-up or an error as something.
func (p *epoll) fetch() bool {
	if cap(p.got) < len(p.out) {
		p.got = make([]sys.EpollEvent, len(p.out))
	}
	n, e := sys.EpollPoll(p.fd, p.got[:len(p.out)])
	if e != 0 {
		p.err = e
		return true
	}
	p.n = 0
	for i := range p.got[:n] {
		ev := &p.got[i]
		if key := Key(ev.Key()); key != wakeKey {
			p.out[p.n] = Event{key, readyOf(ev.Events)}
			p.n++
		}
	}
	return n > 0
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
	return p.file.Close()
}
