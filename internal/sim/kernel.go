//go:build linux

package sim

import (
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/chert-http/chert/internal/sys"
)

// firstFD is the lowest descriptor: no call of the real kernel can mean one of these.
const firstFD = 1 << 24

// A Kernel has the descriptors of one simulated process. Its methods are safe for
// concurrent use; those of Poller too.
type Kernel struct {
	mu      sync.Mutex
	dice    *Dice
	limit   int
	fds     []any // by descriptor, from firstFD; nil: free
	open    int
	opened  uint64 // pollers so far
	pollers []*Poller
	calls   []*call // that wait
	// sendfiles counts the calls of Sendfile that have come to a file.
	sendfiles uint64
	// Violated receives what the server must never do, such as a call on a descriptor that
	// it has closed. It is called with the kernel's lock held.
	Violated func(format string, args ...any)
	// Stir, if not nil, is called before the calls of the server, without a lock: tests of how much
	// a seed decides let other goroutines run then.
	Stir func()
	// Trace, if not nil, receives a line for each call of the server.
	Trace io.Writer
	// Origin, if not nil, decides what becomes of a connection that the server opens to an
	// address: the socket, of which the caller is the peer, or an error. Kernel's methods must
	// not be called in it.
	Origin func(to string) (peer *Socket, e sys.Errno)
	// Point is World.Point, for loops.
	Point func(key uint64)
}

// NewKernel makes a kernel for a process of at most limit descriptors.
func NewKernel(d *Dice, limit int) *Kernel {
	return &Kernel{dice: d, limit: limit, Violated: func(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }}
}

// enter begins a call of the server: it takes the lock.
func (k *Kernel) enter() {
	if k.Stir != nil {
		k.Stir()
	}
	k.mu.Lock()
}

// note writes a call into the trace. The lock is held.
func (k *Kernel) note(call string, fd, n int, e sys.Errno) {
	if k.Trace != nil {
		fmt.Fprintf(k.Trace, "%s of %d: %d, error %d; dice %s\n", call, fd-firstFD, n, int(e), k.dice)
	}
}

// Open returns how many descriptors are open.
func (k *Kernel) Open() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open
}

// Pollers returns how many pollers are open.
func (k *Kernel) Pollers() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.pollers)
}

// Sendfiles returns how many calls of Sendfile have come to a file.
func (k *Kernel) Sendfiles() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sendfiles
}

// Calls returns how many calls of a Conn wait.
func (k *Kernel) Calls() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.calls)
}

// add gives v the lowest free descriptor, as open(2) does: that is how events of a
// closed descriptor meet a new one.
func (k *Kernel) add(v any) (int, sys.Errno) {
	if k.open >= k.limit {
		return -1, syscall.EMFILE
	}
	k.open++
	for i, old := range k.fds {
		if old == nil {
			k.fds[i] = v
			return firstFD + i, 0
		}
	}
	k.fds = append(k.fds, v)
	return firstFD + len(k.fds) - 1, 0
}

func (k *Kernel) at(fd int) any {
	if i := fd - firstFD; i >= 0 && i < len(k.fds) {
		return k.fds[i]
	}
	return nil
}

// socket returns the connection at fd; what is the name of the operation.
func (k *Kernel) socket(fd int, what string) *Socket {
	s, ok := k.at(fd).(*Socket)
	if !ok {
		k.Violated("%s on descriptor %d, which is no connection", what, fd-firstFD)
		return &Socket{k: k, gone: true}
	}
	return s
}

// Close closes descriptors.
func (k *Kernel) Close(fds ...int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, fd := range fds {
		k.close(fd)
	}
}

// close closes a descriptor. A connection ends with the last of its own, and a poller watches
// it until then.
func (k *Kernel) close(fd int) {
	switch v := k.at(fd).(type) {
	case nil:
		k.Violated("close of descriptor %d, which is closed", fd-firstFD)
		return
	case *Socket:
		if v.refs--; v.refs > 0 {
			break
		}
		if v.watch.p != nil {
			v.watch.stop()
		}
		v.close()
	case *Listener:
		if v.watch.p != nil {
			v.watch.stop()
		}
		v.close()
	}
	k.fds[fd-firstFD] = nil
	k.open--
}

// A Listener is a listening socket.
type Listener struct {
	k       *Kernel
	fd      int
	queue   []*Socket
	backlog int
	watch   watch
	closed  bool
}

// Listen opens a listening socket.
func (k *Kernel) Listen(backlog int) (*Listener, int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := &Listener{k: k, backlog: backlog}
	fd, e := k.add(l)
	if e != 0 {
		return nil, -1, e
	}
	l.fd = fd
	return l, fd, nil
}

// Dial connects a client to l. It returns nil if the connection is refused, because l is
// closed or its queue is full.
func (l *Listener) Dial(peer string, room int) *Socket {
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	if l.closed || len(l.queue) >= l.backlog {
		return nil
	}
	s := &Socket{k: l.k, peer: peer, room: room}
	l.queue = append(l.queue, s)
	l.watch.edge()
	return s
}

// NewSocket makes a connection for Kernel.Origin: room is how much of what the server sends it
// has room for.
func (k *Kernel) NewSocket(peer string, room int) *Socket {
	return &Socket{k: k, peer: peer, room: room}
}

// Closed reports whether the server has closed l.
func (l *Listener) Closed() bool {
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	return l.closed
}

func (l *Listener) close() {
	l.closed = true
	for _, s := range l.queue {
		s.reset()
	}
	l.queue = nil
}
