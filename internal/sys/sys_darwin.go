package sys

// Untested: CI only compiles and vets it, since chert is developed on Linux.
// Reports from a Mac are welcome.

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// HavePoller reports whether this system has a poller that loops can use.
const HavePoller = true

// Read reads from a non-blocking descriptor. n == 0 with e == 0 is the end of
// the stream.
func Read(fd int, p []byte) (n int, e Errno) {
	for {
		n, err := unix.Read(fd, p)
		if err == nil {
			received(fd)
			return n, 0
		}
		if err != unix.EINTR {
			return 0, errnoOf(err)
		}
	}
}

// Hangup reports whether a socket's connection has ended, as by a reset. It reads nothing. poll cannot tell:
// its POLLHUP may be the peer's end alone. It may be called by any goroutine while fd is open.
func Hangup(fd int) bool { return SocketError(fd) != 0 }

// Peek reads one byte without consuming it: n == 0 with e == 0 means that the
// peer has closed and nothing is left to read. It may be called by any
// goroutine while fd is open.
func Peek(fd int) (n int, e Errno) {
	var b [1]byte
	n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if err == nil {
		received(fd)
	}
	return max(n, 0), errnoOf(err)
}

// Write writes what it can of p. Accept has set SO_NOSIGPIPE.
func Write(fd int, p []byte) (n int, e Errno) {
	sends()
	for {
		n, err := unix.Write(fd, p)
		if err == nil {
			return n, 0
		}
		if err != unix.EINTR {
			return 0, errnoOf(err)
		}
	}
}

// WriteMore is Write: this system has no flag for "more follows".
func WriteMore(fd int, p []byte) (n int, e Errno) { return Write(fd, p) }

// Write2 writes what it can of a followed by b.
func Write2(fd int, a, b []byte) (n int, e Errno) {
	if len(a) == 0 {
		return Write(fd, b)
	}
	n, e = Write(fd, a)
	if e != 0 || n < len(a) || len(b) == 0 {
		return n, e
	}
	m, e := Write(fd, b)
	if e != 0 {
		// What was written counts; the next call returns the error.
		return n, 0
	}
	return n + m, 0
}

// HaveSendfile is false: callers copy.
const HaveSendfile = false

func Sendfile(dst, src int, offset int64, n int) (int, Errno) { return 0, unix.ENOSYS }

func CannotSendfile(Errno) bool { return true }

// Accept accepts one connection on a listening socket; the new descriptor is
// non-blocking and close-on-exec. peer is its address as net would print it.
func Accept(fd int) (nfd int, peer string, e Errno) {
	n, sa, err := unix.Accept(fd)
	if err != nil {
		return -1, "", errnoOf(err)
	}
	unix.CloseOnExec(n)
	if err := unix.SetNonblock(n, true); err != nil {
		unix.Close(n)
		return -1, "", errnoOf(err)
	}
	unix.SetsockoptInt(n, unix.SOL_SOCKET, unix.SO_NOSIGPIPE, 1)
	return n, peerString(sa), 0
}

func socket(domain int) (int, error) {
	fd, err := unix.Socket(domain, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return -1, err
	}
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NOSIGPIPE, 1)
	return fd, nil
}

// Queued returns how many sent bytes a socket still holds because the peer has not accepted them.
func Queued(fd int) int {
	const soNwrite = 0x1024 // SO_NWRITE
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soNwrite)
	if err != nil {
		return 0
	}
	return n
}

// Close releases fd.
func Close(fd int) Errno { return errnoOf(unix.Close(fd)) }

// CloseWrite sends FIN and keeps the reading side open.
func CloseWrite(fd int) { unix.Shutdown(fd, unix.SHUT_WR) }

// CloseBoth ends both directions but keeps the descriptor, so that its owner's
// calls fail instead of using another connection's socket.
func CloseBoth(fd int) { unix.Shutdown(fd, unix.SHUT_RDWR) }

// SetReusePort lets several sockets listen on one address. Darwin does not
// distribute connections over them as Linux does; the last one gets most.
func SetReusePort(fd int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

// TuneListener sets the options of a listening TCP socket that its connections inherit.
func TuneListener(fd int) {
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPALIVE, 15)
}

// SetLost ends a TCP connection whose peer acknowledges nothing of what was sent for d.
func SetLost(fd int, d time.Duration) error {
	return os.NewSyscallError("setsockopt",
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RXT_CONNDROPTIME, int(d.Seconds())))
}

func peerString(sa unix.Sockaddr) string {
	var b [64]byte
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return string(appendIPPort(b[:0], a.Addr[:], "", a.Port))
	case *unix.SockaddrInet6:
		return string(appendIPPort(b[:0], a.Addr[:], zone(a.ZoneId), a.Port))
	case *unix.SockaddrUnix:
		return "@"
	}
	return ""
}
