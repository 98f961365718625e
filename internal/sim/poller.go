//go:build linux

package sim

import (
	"io"
	"sync/atomic"
	"syscall"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// A Poller implements poll.Poller on a Kernel, edge triggered.
type Poller struct {
	k *Kernel
	// ready has the watches with an event that has not been reported, in order of their
	// events.
	ready  []*watch
	woken  bool
	closed bool

	// The Wait under way.
	waiting bool
	until   int64
	free    chan struct{} // ends it; capacity 1
	waits   atomic.Uint64
	id      uint64
}

// A watch is the registration of a descriptor.
type watch struct {
	p       *Poller
	key     poll.Key
	ready   func() poll.Ready
	pending bool // in p.ready
}

// edge records that the descriptor has become ready, once more or for the first time.
func (w *watch) edge() {
	if w.p != nil && !w.pending {
		w.pending = true
		w.p.ready = append(w.p.ready, w)
	}
}

func (w *watch) stop() {
	if w.pending {
		for i, o := range w.p.ready {
			if o == w {
				w.p.ready = append(w.p.ready[:i], w.p.ready[i+1:]...)
				break
			}
		}
	}
	*w = watch{}
}

// NewPoller opens a poller.
func (k *Kernel) NewPoller() *Poller {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opened++
	p := &Poller{k: k, free: make(chan struct{}, 1), id: k.opened}
	k.pollers = append(k.pollers, p)
	return p
}

// Add implements poll.Poller.
func (p *Poller) Add(fd int, key poll.Key) error {
	p.k.enter()
	defer p.k.mu.Unlock()
	w, ready := p.k.watchOf(fd)
	if w == nil {
		p.k.Violated("epoll_ctl adds descriptor %d, which is closed", fd-firstFD)
		return syscall.EBADF
	}
	if w.p != nil {
		p.k.Violated("epoll_ctl adds descriptor %d again", fd-firstFD)
		return syscall.EEXIST
	}
	if _, ok := p.k.at(fd).(*Socket); ok && p.k.dice.Strikes(NoMemory) {
		return syscall.ENOMEM
	}
	w.p, w.key, w.ready = p, key, ready
	if ready() != 0 {
		w.edge()
	}
	return nil
}

func (k *Kernel) watchOf(fd int) (*watch, func() poll.Ready) {
	switch v := k.at(fd).(type) {
	case *Socket:
		return &v.watch, v.ready
	case *Listener:
		return &v.watch, func() (r poll.Ready) {
			if len(v.queue) > 0 {
				r = poll.Readable
			}
			return r
		}
	}
	return nil, nil
}

// Remove implements poll.Poller.
func (p *Poller) Remove(fd int) {
	p.k.enter()
	defer p.k.mu.Unlock()
	if w, _ := p.k.watchOf(fd); w != nil && w.p != nil {
		w.stop()
	}
}

// Wait implements poll.Poller. It returns when the World lets it.
func (p *Poller) Wait(events []poll.Event, until int64) (int, error) {
	p.waits.Add(1)
	p.k.enter()
	p.waiting, p.until = true, until
	p.k.mu.Unlock()
	<-p.free
	p.k.enter()
	defer p.k.mu.Unlock()
	p.woken = false
	n := 0
	later := p.ready[:0:0]
	for i, w := range p.ready {
		if n == len(events) || n > 0 && p.k.dice.Strikes(LateEvent) {
			later = append(later, p.ready[i])
			continue
		}
		w.pending = false
		events[n] = poll.Event{Key: w.key, Ready: w.ready()}
		n++
	}
	p.ready = later
	if n < len(events) && p.k.dice.Strikes(Spurious) {
		n += p.again(&events[n])
	}
	p.k.note("wait", firstFD+int(p.id), n, 0)
	p.k.dice.Shuffle(n, func(i, j int) { events[i], events[j] = events[j], events[i] })
	return n, nil
}

// again reports once more what some descriptor is ready for. The kernel's lock is held.
func (p *Poller) again(e *poll.Event) (n int) {
	from := p.k.dice.IntN(len(p.k.fds) + 1)
	for i := range p.k.fds {
		w, _ := p.k.watchOf(firstFD + (from+i)%len(p.k.fds))
		if w == nil || w.p != p || w.pending {
			continue
		}
		if r := w.ready(); r != 0 {
			*e = poll.Event{Key: w.key, Ready: r}
			return 1
		}
	}
	return 0
}

// due reports whether Wait may return now. The kernel's lock is held.
func (p *Poller) due(now int64) bool {
	return p.waiting && (p.woken || len(p.ready) > 0 || p.until == poll.Now || p.until != poll.Never && now >= p.until)
}

// Point lets the World decide when the calling goroutine goes on.
func (p *Poller) Point(key uint64) { p.k.Point(p.id<<48 | key) }

// Share implements poll.Poller.
func (p *Poller) Share(bool) {}

// Waits implements poll.Poller.
func (p *Poller) Waits() uint64 { return p.waits.Load() }

// Wake implements poll.Poller.
func (p *Poller) Wake() {
	p.k.enter()
	defer p.k.mu.Unlock()
	p.woken = true // not a note: a call of Serve wakes loops beside the world, which has the dice
}

// Close implements poll.Poller.
func (p *Poller) Close() error {
	p.k.enter()
	defer p.k.mu.Unlock()
	p.closed = true
	for i, o := range p.k.pollers {
		if o == p {
			p.k.pollers = append(p.k.pollers[:i], p.k.pollers[i+1:]...)
			break
		}
	}
	return nil
}

// Accept implements poll.Ops.
func (p *Poller) Accept(fd int) (int, string, sys.Errno) {
	p.k.enter()
	defer p.k.mu.Unlock()
	l, ok := p.k.at(fd).(*Listener)
	if !ok {
		p.k.Violated("accept on descriptor %d, which does not listen", fd-firstFD)
		return -1, "", syscall.EBADF
	}
	// accept4 takes a descriptor before it looks for a connection.
	switch {
	case p.k.open >= p.k.limit:
		return -1, "", syscall.EMFILE
	case p.k.dice.Strikes(NoDescriptor):
		return -1, "", [...]sys.Errno{syscall.EMFILE, syscall.ENFILE}[p.k.dice.IntN(2)]
	case len(l.queue) == 0:
		return -1, "", syscall.EAGAIN
	case p.k.dice.Strikes(NoMemory):
		return -1, "", [...]sys.Errno{syscall.ENOBUFS, syscall.ENOMEM}[p.k.dice.IntN(2)]
	}
	s := l.queue[0]
	l.queue = l.queue[1:]
	if p.k.dice.Strikes(Aborted) {
		s.reset()
		return -1, "", syscall.ECONNABORTED
	}
	s.refs = 1
	nfd, _ := p.k.add(s)
	p.k.note("accept", fd, nfd-firstFD, 0)
	return nfd, s.peer, 0
}

// Pending implements poll.Ops.
func (p *Poller) Pending(fd int) bool {
	p.k.enter()
	defer p.k.mu.Unlock()
	l, ok := p.k.at(fd).(*Listener)
	return ok && len(l.queue) > 0
}

// Connect implements poll.Ops.
func (p *Poller) Connect(to *sys.Remote) (int, sys.Errno) {
	p.k.enter()
	defer p.k.mu.Unlock()
	if p.k.Origin == nil {
		return -1, syscall.ECONNREFUSED
	}
	if p.k.open >= p.k.limit || p.k.dice.Strikes(NoDescriptor) {
		return -1, syscall.EMFILE
	}
	s, e := p.k.Origin(to.Addr().String())
	if e != 0 {
		return -1, e
	}
	s.refs = 1
	fd, _ := p.k.add(s)
	p.k.note("connect", fd, 0, 0)
	return fd, 0
}

// SocketError implements poll.Ops.
func (p *Poller) SocketError(fd int) sys.Errno {
	p.k.enter()
	defer p.k.mu.Unlock()
	return p.k.socket(fd, "getsockopt").takeErr()
}

// Read implements poll.Ops.
func (p *Poller) Read(fd int, b []byte) (int, sys.Errno) {
	p.k.enter()
	defer p.k.mu.Unlock()
	n, e := p.k.socket(fd, "recv").read(b)
	p.k.note("recv", fd, n, e)
	return n, e
}

// Peek implements poll.Ops.
func (p *Poller) Peek(fd int) (int, sys.Errno) {
	p.k.enter()
	defer p.k.mu.Unlock()
	return p.k.socket(fd, "recv").peek()
}

// Write2 implements poll.Ops.
func (p *Poller) Write2(fd int, a, b []byte) (int, sys.Errno) {
	p.k.enter()
	defer p.k.mu.Unlock()
	n, e := p.k.socket(fd, "send").write(a, b)
	p.k.note("send", fd, n, e)
	return n, e
}

// WriteMore implements poll.Ops.
func (p *Poller) WriteMore(fd int, b []byte) (int, sys.Errno) { return p.Write2(fd, b, nil) }

// Sendfile implements poll.Ops. file is a real one.
func (p *Poller) Sendfile(fd, file int, offset int64, n int) (int, sys.Errno) {
	p.k.enter()
	defer p.k.mu.Unlock()
	s := p.k.socket(fd, "sendfile")
	if !s.sendfile {
		// It works with two descriptors or does not, for good.
		s.sendfile, s.noSendfile = true, p.k.dice.Strikes(NoSendfile)
	}
	switch {
	case s.noSendfile:
		return 0, syscall.EINVAL
	case p.k.dice.Strikes(DiskError):
		return 0, syscall.EIO
	}
	p.k.sendfiles++
	at := offset
	if at < 0 {
		at, _ = syscall.Seek(file, 0, io.SeekCurrent)
	}
	// It looks for bytes before it looks for room.
	b := make([]byte, min(n, max(s.room-s.out.len(), 0)+1))
	n, err := syscall.Pread(file, b, at)
	if err != nil {
		e, _ := err.(syscall.Errno)
		return 0, e
	}
	if n == 0 {
		return 0, 0
	}
	n, e := s.write(b[:n], nil)
	p.k.note("sendfile", fd, n, e)
	if offset < 0 {
		syscall.Seek(file, at+int64(max(n, 0)), io.SeekStart)
	}
	return n, e
}

// Queued implements poll.Ops.
func (p *Poller) Queued(fd int) int {
	p.k.enter()
	defer p.k.mu.Unlock()
	return p.k.socket(fd, "ioctl").out.len()
}

// CloseWrite implements poll.Ops.
func (p *Poller) CloseWrite(fd int) {
	p.k.enter()
	defer p.k.mu.Unlock()
	s := p.k.socket(fd, "shutdown")
	s.outEnd = true
	s.watch.edge()
}

// CloseBoth implements poll.Ops.
func (p *Poller) CloseBoth(fd int) {
	p.k.enter()
	defer p.k.mu.Unlock()
	s := p.k.socket(fd, "shutdown")
	s.outEnd, s.shut = true, true
	s.watch.edge()
}

// SetReset implements poll.Ops.
func (p *Poller) SetReset(fd int) {
	p.k.enter()
	defer p.k.mu.Unlock()
	p.k.socket(fd, "setsockopt").linger0 = true
}

// CloseFD implements poll.Ops.
func (p *Poller) CloseFD(fd int) {
	p.k.enter()
	defer p.k.mu.Unlock()
	p.k.note("close", fd, 0, 0)
	p.k.close(fd)
}

// reserve is a descriptor that is open for its number only.
type reserve struct{}

// Reserve implements poll.Ops.
func (p *Poller) Reserve() (int, error) {
	p.k.enter()
	defer p.k.mu.Unlock()
	fd, e := p.k.add(&reserve{})
	if e != 0 {
		return -1, e
	}
	return fd, nil
}
