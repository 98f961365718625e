//go:build linux || darwin

package successor

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// controlFD is the number of the new process's end of the pair, after stdin, stdout and stderr.
const controlFD = 3

// introduceWait bounds the wait for the message of the process before, which sends it at once.
const introduceWait = 10 * time.Second

// start starts a program that inherits the sockets fds.
func start(p program, fds []int) (*child, error) {
	// Not by package os: its files would become blocking ones, and with them the sockets of the
	// loops, which share their state.
	pair, err := socketpair(syscall.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	defer sys.Close(pair[1])
	control, err := connOf(pair[0])
	if err != nil {
		return nil, err
	}
	files := []uintptr{0, 1, 2, uintptr(pair[1])}
	for _, fd := range fds {
		files = append(files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(p.path, p.args, &syscall.ProcAttr{Dir: p.dir, Env: environment(), Files: files})
	if err == nil {
		c := &child{pid: pid, control: control, exited: make(chan struct{})}
		if c.process, err = os.FindProcess(pid); err == nil {
			go c.await()
			return c, nil
		}
	}
	control.Close()
	return nil, err
}

func socketpair(kind int) (pair [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if pair, err = syscall.Socketpair(syscall.AF_UNIX, kind, 0); err != nil {
		return pair, os.NewSyscallError("socketpair", err)
	}
	sys.CloseOnExec(pair[0])
	sys.CloseOnExec(pair[1])
	return pair, nil
}

// Pair returns the ends of a pair of sockets that keep messages apart: that of this process, and
// the descriptor of one that successors are to inherit. On Linux reading ends with io.EOF when no
// process has the latter any more. macOS has no such sockets, only those that do not end.
func Pair() (own *net.UnixConn, other int, err error) {
	kind := syscall.SOCK_SEQPACKET
	if runtime.GOOS == "darwin" {
		kind = syscall.SOCK_DGRAM
	}
	pair, err := socketpair(kind)
	if err != nil {
		return nil, -1, err
	}
	c, err := connOf(pair[0])
	if err != nil {
		sys.Close(pair[1])
		return nil, -1, err
	}
	return c.(*net.UnixConn), pair[1], nil
}

// environment returns the variables of the new process. Those of systemd that name this process
// would be wrong there.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "WATCHDOG_PID" || name == controlVar
	})
	return append(env, controlVar+"="+strconv.Itoa(controlFD))
}

// connOf returns the net.Conn of a socket, which it owns.
func connOf(fd int) (net.Conn, error) {
	if err := sys.SetNonblock(fd); err != nil {
		sys.Close(fd)
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "upgrade")
	defer f.Close()
	return net.FileConn(f)
}

// inherit takes what the process before passes. v is the value of controlVar.
func (p *Process) inherit(v string) error {
	fd, err := strconv.Atoi(v)
	if err != nil || fd != controlFD {
		return fmt.Errorf("the variable %s is for processes that chert starts itself", controlVar)
	}
	sys.CloseOnExec(fd)
	if p.before, err = connOf(fd); err != nil {
		p.before = nil
		return fmt.Errorf("the variable %s is for processes that chert starts itself: %w", controlVar, err)
	}
	p.answers = bufio.NewReader(p.before)
	p.before.SetReadDeadline(time.Now().Add(introduceWait))
	var m handover
	if err := receive(p.answers, &m); err != nil {
		return fmt.Errorf("the process before does not say what it passes: %w", err)
	}
	p.before.SetReadDeadline(time.Time{})
	next := controlFD + 1
	for _, one := range m.Sockets {
		s := &Socket{Network: one.Network, Address: one.Address, Number: one.Number, Note: one.Note}
		for i := range one.Count {
			sys.CloseOnExec(next)
			if packets := s.Network == "udp"; !packets && !sys.IsListening(next) ||
				packets && (i == 0 && !sys.IsPackets(next) || i > 0 && !sys.IsLocal(next)) {
				return fmt.Errorf("the process before has passed a descriptor for %s that does not listen", s.Address)
			}
			s.FDs = append(s.FDs, next)
			next++
		}
		p.inherited = append(p.inherited, s)
	}
	return nil
}

// terminate asks a process to end.
func terminate(p *os.Process) { p.Signal(syscall.SIGTERM) }

// isGone reports whether an error of a socket means that the other process has closed it.
func isGone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// Notify sends the signals that ask for an upgrade to c.
func Notify(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR2) }
