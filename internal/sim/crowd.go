//go:build linux

package sim

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// A Crowd is a poller whose clients are so many that each may take a few bytes only, without
// a pointer: there are no faults, no World and no bubble, the clock is the real one, and what
// a client sends is one of a few scripts. Its methods are safe for concurrent use.
type Crowd struct {
	net uint32 // the clients' addresses begin with it

	mu      sync.Mutex
	members []member // by descriptor
	free    []uint32
	dialed  int // clients so far
	queue   int // clients that wait to be accepted
	// ready are members with an event that has not been reported, from head on.
	ready     []uint32
	head      int
	listener  poll.Key
	listening bool
	newcomers bool // the listener has an event
	woken     bool
	wake      chan struct{}
	waits     uint64
	scripts   [][]byte
	counts    Counts
	// Of this turn.
	calls  int
	began  time.Time
	thread int
	used   time.Duration

	// echo, if not nil, is sent to when the server has sent something to its member.
	echo map[uint32]chan struct{}
	// answers are what clients send when the server's bytes begin with one of them.
	answers map[byte]Script
}

// Counts are what a crowd's server has done.
type Counts struct {
	Accepted, Closed int
	// Writes is how often it has sent something, by the first byte of that.
	Writes [256]int
	// Turns is how many turns there were, Calls how many operations the busiest one made, Turn
	// how long the longest one took, and CPU how much of the processor's time the longest that
	// stayed on its thread. ResetTurns begins them anew.
	Turns, Calls int
	Turn, CPU    time.Duration
}

// A Script is what a client sends, by Crowd.Script; 0 is nothing.
type Script uint8

// A member is a client.
type member struct {
	key   poll.Key
	no    uint32 // among those that have come
	at    uint16 // how much of its script the server has read
	sends Script
	flags uint8
}

const (
	taken    = 1 << iota // the descriptor is open
	waits                // its event has not been reported
	writable             // that it is writable, neither
	ended                // the client has closed its side
)

// listenFD and reserveFD are the descriptors of a crowd that belong to no client.
const (
	reserveFD = firstFD
	listenFD  = firstFD + 1
	clientFD  = firstFD + 2
)

// NewCrowd makes a crowd of at most size clients at a time, whose addresses begin with net, of
// 8 bits.
func NewCrowd(net uint8, size int) *Crowd {
	c := &Crowd{net: uint32(net) << 24, wake: make(chan struct{}, 1), members: make([]member, size),
		ready: make([]uint32, 0, size), free: make([]uint32, 0, size), scripts: make([][]byte, 1),
		echo: make(map[uint32]chan struct{}), answers: make(map[byte]Script)}
	for i := range size {
		c.free = append(c.free, uint32(size-1-i))
	}
	return c
}

// Script makes a script of bytes that clients send.
func (c *Crowd) Script(b string) Script {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts = append(c.scripts, []byte(b))
	return Script(len(c.scripts) - 1)
}

// Answer has clients send s when the server has sent bytes that begin with first.
func (c *Crowd) Answer(first byte, s Script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[first] = s
}

// Listen returns the descriptor of the listening socket.
func (c *Crowd) Listen() int { return listenFD }

// Dial has n clients connect.
func (c *Crowd) Dial(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue += n
	c.newcomers = true
	c.rouse()
}

// Send has the clients from one descriptor to before another send s; those that are still
// sending, or not connected, do not.
func (c *Crowd) Send(from, to int, s Script) {
	const atOnce = 256 // between which the server gets the lock
	for from < to {
		c.mu.Lock()
		for end := min(from+atOnce, to); from < end; from++ {
			if m := &c.members[from]; m.flags&taken != 0 && m.sends == 0 {
				m.sends, m.at = s, 0
				c.edge(uint32(from))
			}
		}
		c.rouse()
		c.mu.Unlock()
	}
}

// Exchange has one client send s, waits until the server has sent something, and returns how
// long that has taken.
func (c *Crowd) Exchange(i int, s Script) time.Duration {
	c.mu.Lock()
	done := c.echo[uint32(i)]
	if done == nil {
		done = make(chan struct{}, 1)
		c.echo[uint32(i)] = done
	}
	c.mu.Unlock()
	began := time.Now()
	c.Send(i, i+1, s)
	<-done
	return time.Since(began)
}

// Counts returns what the server has done.
func (c *Crowd) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// ResetTurns begins to count turns.
func (c *Crowd) ResetTurns() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Turns, c.counts.Calls, c.counts.Turn, c.counts.CPU = 0, 0, 0, 0
}

// rouse ends the Wait under way. The lock is held.
func (c *Crowd) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Crowd) edge(i uint32) {
	if m := &c.members[i]; m.flags&waits == 0 {
		m.flags |= waits
		c.ready = append(c.ready, i)
	}
}

// at returns the client at a descriptor. The lock is held.
func (c *Crowd) at(fd int) *member {
	c.calls++
	if i := fd - clientFD; i >= 0 && i < len(c.members) && c.members[i].flags&taken != 0 {
		return &c.members[i]
	}
	panic("sim: an operation on a descriptor that is not open")
}

// Add implements poll.Poller.
func (c *Crowd) Add(fd int, key poll.Key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if fd == listenFD {
		c.listener, c.listening = key, true
		return nil
	}
	m := c.at(fd)
	m.key = key
	m.flags |= writable
	c.edge(uint32(fd - clientFD))
	return nil
}

// Wait implements poll.Poller.
func (c *Crowd) Wait(events []poll.Event, until int64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits++
	if !c.began.IsZero() {
		d := time.Since(c.began)
		c.counts.Turns++
		c.counts.Turn, c.counts.Calls = max(c.counts.Turn, d), max(c.counts.Calls, c.calls)
		if used := threadTime(); syscall.Gettid() == c.thread {
			c.counts.CPU = max(c.counts.CPU, used-c.used)
		}
	}
	for until != poll.Now && !c.woken && !c.newcomers && c.head == len(c.ready) {
		var late <-chan time.Time
		if until != poll.Never {
			d := until - sys.Nanotime()
			if d <= 0 {
				break
			}
			t := time.NewTimer(time.Duration(d))
			defer t.Stop()
			late = t.C
		}
		c.mu.Unlock()
		select {
		case <-c.wake:
		case <-late:
		}
		c.mu.Lock()
	}
	c.woken = false
	n := 0
	if c.newcomers && c.listening {
		c.newcomers = false
		events[n] = poll.Event{Key: c.listener, Ready: poll.Readable}
		n++
	}
	for n < len(events) && c.head < len(c.ready) {
		m := &c.members[c.ready[c.head]]
		c.head++
		if m.flags&waits == 0 {
			continue // it has been closed since
		}
		r := poll.Ready(0)
		if m.sends != 0 {
			r = poll.Readable
		}
		if m.flags&ended != 0 {
			r |= poll.Readable | poll.PeerClosed
		}
		if m.flags&writable != 0 {
			r |= poll.Writable
		}
		m.flags &^= waits | writable
		events[n] = poll.Event{Key: m.key, Ready: r}
		n++
	}
	if c.head == len(c.ready) {
		c.ready, c.head = c.ready[:0], 0
	}
	c.calls, c.began = 0, time.Now()
	c.thread, c.used = syscall.Gettid(), threadTime()
	return n, nil
}

// threadTime is the processor's time that the calling thread has used.
func threadTime() time.Duration {
	const clockThreadCPU = 3
	var ts syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

// Share, Waits, Wake, Close and Remove implement poll.Poller.
func (c *Crowd) Share(bool)    {}
func (c *Crowd) Remove(fd int) {}
func (c *Crowd) Close() error  { return nil }

func (c *Crowd) Waits() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits
}

func (c *Crowd) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken = true
	c.rouse()
}

// addr is the address of a client.
func (c *Crowd) addr(no uint32) netip.AddrPort {
	// 10,000 ports of each address.
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], c.net|(no/10_000+1))
	return netip.AddrPortFrom(netip.AddrFrom4(ip), uint16(10_000+no%10_000))
}

// Connect implements poll.Ops: there is nothing to connect to.
func (c *Crowd) Connect(*sys.Remote) (int, sys.Errno) { return -1, syscall.ECONNREFUSED }

// SocketError implements poll.Ops.
func (c *Crowd) SocketError(int) sys.Errno { return 0 }

// Accept implements poll.Ops.
func (c *Crowd) Accept(int) (int, string, sys.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.queue == 0 || len(c.free) == 0 {
		return -1, "", syscall.EAGAIN
	}
	i := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	c.queue--
	no := uint32(c.dialed)
	c.dialed++
	c.counts.Accepted++
	c.members[i] = member{no: no, flags: taken}
	return clientFD + int(i), c.addr(no).String(), 0
}

// Pending implements poll.Ops.
func (c *Crowd) Pending(int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue > 0
}

// Read implements poll.Ops.
func (c *Crowd) Read(fd int, p []byte) (int, sys.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.at(fd)
	if m.sends == 0 {
		if m.flags&ended != 0 {
			return 0, 0
		}
		return 0, syscall.EAGAIN
	}
	b := c.scripts[m.sends][m.at:]
	n := copy(p, b)
	if m.at += uint16(n); n == len(b) {
		m.sends = 0
	}
	return n, 0
}

// Peek implements poll.Ops.
func (c *Crowd) Peek(fd int) (int, sys.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := c.at(fd); {
	case m.sends != 0:
		return 1, 0
	case m.flags&ended != 0:
		return 0, 0
	}
	return 0, syscall.EAGAIN
}

// Write2 implements poll.Ops.
func (c *Crowd) Write2(fd int, a, b []byte) (int, sys.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, i := c.at(fd), uint32(fd-clientFD)
	first := b
	if len(a) > 0 {
		first = a
	}
	if len(first) > 0 {
		c.counts.Writes[first[0]]++
		if s := c.answers[first[0]]; s != 0 && m.sends == 0 {
			m.sends, m.at = s, 0
			c.edge(i)
		}
	}
	if len(c.echo) > 0 {
		if done := c.echo[i]; done != nil {
			select {
			case done <- struct{}{}:
			default:
			}
		}
	}
	return len(a) + len(b), 0
}

// WriteMore implements poll.Ops.
func (c *Crowd) WriteMore(fd int, p []byte) (int, sys.Errno) { return c.Write2(fd, p, nil) }

// Sendfile implements poll.Ops.
func (c *Crowd) Sendfile(int, int, int64, int) (int, sys.Errno) { return 0, syscall.EINVAL }

// Queued implements poll.Ops.
func (c *Crowd) Queued(int) int { return 0 }

// CloseWrite implements poll.Ops. The client closes its side too.
func (c *Crowd) CloseWrite(fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at(fd).flags |= ended
	c.edge(uint32(fd - clientFD))
}

// CloseBoth implements poll.Ops.
func (c *Crowd) CloseBoth(fd int) { c.CloseWrite(fd) }

// SetReset implements poll.Ops.
func (c *Crowd) SetReset(int) {}

// CloseFD implements poll.Ops.
func (c *Crowd) CloseFD(fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch fd {
	case reserveFD:
	case listenFD:
		c.listening = false
	default:
		// An event that has not been reported stays in the list, without waits.
		*c.at(fd) = member{}
		c.counts.Closed++
		c.free = append(c.free, uint32(fd-clientFD))
	}
}

// Conn implements poll.Ops.
func (c *Crowd) Conn(int) (net.Conn, error) { return nil, errors.New("sim: a crowd has no Conn") }

// Reserve implements poll.Ops.
func (c *Crowd) Reserve() (int, error) { return reserveFD, nil }
