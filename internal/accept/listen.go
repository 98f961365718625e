package accept

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/sys"
)

// Listen opens a TCP listener on which each event loop can have a socket of its own.
func Listen(network, addr string) (*Listener, error) {
	// With SO_REUSEPORT from the start two servers of one user would share a port by
	// accident, each getting some of the clients. A plain socket fails if the port is
	// in use, and can become one that shares its address when it has it. To open
	// another instead would reset the connections that have arrived at the first.
	l, err := plain.Listen(context.Background(), network, addr)
	if err != nil {
		return nil, err
	}
	if err := share(l.(*net.TCPListener).SyscallConn()); err != nil {
		l.Close()
		return nil, err
	}
	return newListener(network, l.(*net.TCPListener), nil), nil
}

// plain listens on an address, and reusePort on one that several sockets share. The
// options that connections inherit are set before the first can arrive.
var (
	plain = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { sys.TuneListener(int(fd)) })
	}}
	reusePort = net.ListenConfig{Control: func(network, addr string, c syscall.RawConn) error {
		if err := plain.Control(network, addr, c); err != nil {
			return err
		}
		return share(c, nil)
	}}
)

// share lets other sockets listen on the socket's address.
func share(c syscall.RawConn, err error) error {
	if err != nil {
		return err
	}
	if ctl := c.Control(func(fd uintptr) { err = sys.SetReusePort(int(fd)) }); ctl != nil {
		return ctl
	}
	return err
}

// Listener is a TCP listener that event loops can open again, once each. Until
// then it is an ordinary one.
type Listener struct {
	*net.TCPListener
	network string
	// more are further sockets that listen on the address, of a process before this one: those of its
	// loops. Listener owns them until Serve or Close.
	more    []int
	several *several   // accepts from more as well, if Accept is called
	moving  bool       // Serve has begun: more and the socket are about to be the loops'
	user    any        // the server of Use; nil before
	loops   bool       // of Use
	mu      sync.Mutex // of more, several, moving, user and loops
	// copies duplicates the sockets of the loops, once placed is closed; nil if they have none.
	copies    func() ([]int, error)
	placed    chan struct{}
	accepting <-chan struct{} // Accept waits for it; nil for none
	once      sync.Once
	moved     atomic.Bool   // the loops have the socket; TCPListener is closed
	closed    chan struct{} // Close was called
	gone      chan struct{} // closed when the loops have closed their sockets

	placedOnce sync.Once // closes placed
}

func newListener(network string, l *net.TCPListener, more []int) *Listener {
	return &Listener{
		TCPListener: l, network: network, more: more,
		placed: make(chan struct{}), closed: make(chan struct{}), gone: make(chan struct{}),
	}
}

// closeWait bounds the wait for loops that close their listening sockets. It
// only expires if a hook, such as ConnState, closes the server itself: its loop
// cannot close anything meanwhile.
const closeWait = time.Second

// Close implements net.Listener. Connections are refused when it returns.
func (l *Listener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		close(l.closed)
		err = l.TCPListener.Close()
		l.closeMore()
		if !l.moved.Load() {
			return
		}
		err = nil
		t := time.NewTimer(closeWait)
		defer t.Stop()
		select {
		case <-l.gone:
		case <-t.C:
		}
	})
	return err
}

// Use notes that a server serves the listener, on loops or by Accept. It reports false if another
// one does and either of them does on loops: these would take all connections, or end the other.
func (l *Listener) Use(server any, loops bool) bool {
	select {
	case <-l.closed: // no server does any more; Serve returns why
		return true
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.user != nil && l.user != server && (loops || l.loops) {
		return false
	}
	l.user, l.loops = server, loops
	return true
}

// Serve gives every loop of set a listening socket, of those that open opens if it is not
// nil, and accepts on them until the listener is closed or stop is. number tells this call from
// others of the server.
func (l *Listener) Serve(
	set *Set, a *loop.Accept, open func(n int) ([]int, error), stop <-chan struct{}, number int,
) error {
	l.mu.Lock()
	again := l.moving
	l.moving = true
	l.mu.Unlock()
	if again { // several calls may accept from one listener; here the first one's loops do, for all
		select {
		case <-l.gone:
		case <-stop:
		}
		return l.errClosed()
	}
	defer close(l.gone)
	end, err := l.move(set, a, open)
	if err != nil {
		return err
	}
	select {
	case <-l.closed:
	case <-stop:
	}
	sched.Point("serve", uint64(number))
	end()
	sched.Point("serve", uint64(number))
	return l.errClosed()
}

func (l *Listener) errClosed() error {
	return &net.OpError{Op: "accept", Net: l.network, Addr: l.Addr(), Err: net.ErrClosed}
}

// move gives the loops of set their sockets.
func (l *Listener) move(set *Set, a *loop.Accept, open func(n int) ([]int, error)) (end func(), err error) {
	defer l.placedOnce.Do(func() { close(l.placed) })
	if open == nil {
		open = l.sockets
	}
	fds, err := open(len(set.Loops))
	if err != nil {
		return nil, err
	}
	// The loops have the socket; the runtime's poller need not wake up for it.
	l.moved.Store(true)
	l.TCPListener.Close()
	end, l.copies, err = set.listen(fds, a)
	return end, err
}

// sockets returns n listening sockets on the address, of which the first is the
// listener's own, duplicated, and opens those that there are not yet. If a process before
// this one had more, all are returned: connections may wait in each. The caller owns them;
// the listener itself stays open only to be closed.
func (l *Listener) sockets(n int) (fds []int, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
			fds = nil
		}
	}()
	first, err := dup(l.SyscallConn())
	if err != nil {
		return nil, err
	}
	fds = append(fds, first)
	l.mu.Lock()
	fds = append(fds, l.more...)
	l.more = nil
	l.mu.Unlock()
	for len(fds) < n {
		again, err := reusePort.Listen(context.Background(), l.network, l.Addr().String())
		if err != nil {
			return fds, err
		}
		fd, err := dup(again.(*net.TCPListener).SyscallConn())
		again.Close()
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// dup duplicates a socket's descriptor. Unlike the File methods of package net
// it leaves the socket non-blocking.
func dup(raw syscall.RawConn, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	fd := -1
	if ctl := raw.Control(func(s uintptr) { fd, err = sys.Dup(int(s)) }); ctl != nil {
		return -1, ctl
	}
	return fd, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			sys.Close(fd)
		}
	}
}
