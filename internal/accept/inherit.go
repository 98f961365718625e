package accept

import (
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/chert-http/chert/internal/sys"
)

// This file is for sockets that processes pass to each other. A socket that is closed while
// connections wait in it resets them, so all of those of an address are passed on and accepted
// from, however many loops the next process has.

// Inherit returns a listener of the sockets fds, at least one, which listen on one TCP address.
// It owns them, after an error too. Accept waits until accepting is closed; Serve does not.
func Inherit(network string, fds []int, accepting <-chan struct{}) (*Listener, error) {
	for _, fd := range fds {
		// Not as a plain socket is opened: it may be systemd's.
		sys.TuneListener(fd)
		if err := sys.SetReusePort(fd); err != nil {
			closeAll(fds)
			return nil, err
		}
	}
	l, err := FileListener(fds[0])
	if err != nil {
		closeAll(fds[1:])
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		closeAll(fds[1:])
		return nil, &net.OpError{Op: "listen", Net: network, Addr: l.Addr(), Err: syscall.EPROTOTYPE}
	}
	inherited := newListener(network, tcp, fds[1:])
	inherited.accepting = accepting
	return inherited, nil
}

// FileListener returns package net's listener of the socket fd, which it owns, after an error
// too. fd must not block: the file would make it, for all processes that have the socket.
func FileListener(fd int) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	return net.FileListener(f)
}

// Sockets duplicates all sockets that listen on the address, for another process. The caller owns
// the result. The error is net.ErrClosed after Close. Safe for concurrent use.
func (l *Listener) Sockets() ([]int, error) {
	all, moving, err := l.own()
	if !moving {
		return all, err
	}
	<-l.placed
	if l.copies == nil {
		return nil, net.ErrClosed
	}
	return l.copies()
}

// Placed is closed when the listener is served, and Sockets returns those of the loops if they have
// it.
func (l *Listener) Placed() <-chan struct{} { return l.placed }

// own duplicates the sockets that no loop has.
func (l *Listener) own() (all []int, moving bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moving {
		return nil, true, nil
	}
	add := func(fd int, err error) error {
		if err == nil {
			all = append(all, fd)
		}
		return err
	}
	err = add(dup(l.SyscallConn()))
	for i := 0; i < len(l.more) && err == nil; i++ {
		err = add(sys.Dup(l.more[i]))
	}
	if l.several != nil {
		for i := 0; i < len(l.several.all) && err == nil; i++ {
			err = add(Copy(l.several.all[i].(syscall.Conn)))
		}
	}
	if err != nil {
		closeAll(all)
		return nil, false, err
	}
	return all, false, nil
}

// Copy duplicates the socket of a listener of any type that has one.
func Copy(l syscall.Conn) (int, error) { return dup(l.SyscallConn()) }

// closeMore closes the further sockets, if the listener still has them.
func (l *Listener) closeMore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	closeAll(l.more)
	l.more = nil
	if l.several != nil {
		l.several.close()
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	if l.accepting != nil {
		select {
		case <-l.accepting:
		case <-l.closed:
		}
	}
	l.placedOnce.Do(func() { close(l.placed) })
	s, err := l.severally()
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return l.TCPListener.Accept()
	}
	return s.accept()
}

// severally returns what accepts from several sockets, nil if there is only one.
func (l *Listener) severally() (*several, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.several != nil || len(l.more) == 0 {
		return l.several, nil
	}
	s := &several{results: make(chan acceptResult), done: make(chan struct{})}
	for len(l.more) > 0 {
		one, err := FileListener(l.more[0])
		if l.more = l.more[1:]; err != nil {
			s.close()
			return nil, err
		}
		s.all = append(s.all, one)
	}
	l.several = s
	go s.run(l.TCPListener)
	for _, one := range s.all {
		go s.run(one)
	}
	return s, nil
}

// several accepts from several sockets, each with a goroutine that waits until its connection, or
// its error, has been fetched. They end with close.
type several struct {
	all     []net.Listener // but for the first, which others close
	results chan acceptResult
	done    chan struct{}
	once    sync.Once
}

type acceptResult struct {
	nc  net.Conn
	err error
}

func (s *several) run(l net.Listener) {
	for {
		nc, err := l.Accept()
		if !s.give(acceptResult{nc, err}) {
			if nc != nil {
				nc.Close()
			}
			return
		}
	}
}

// give reports whether the result was fetched, and not the last one.
func (s *several) give(r acceptResult) bool {
	select {
	case s.results <- r:
		ne, temp := r.err.(net.Error)
		return r.err == nil || temp && temporary(ne)
	case <-s.done:
		return false
	}
}

func (s *several) accept() (net.Conn, error) {
	select {
	case r := <-s.results:
		return r.nc, r.err
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *several) close() {
	s.once.Do(func() {
		close(s.done)
		for _, l := range s.all {
			l.Close()
		}
	})
}
