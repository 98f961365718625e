package sys

// Compiled and vetted, but nobody has been able to run it: chert is developed
// on Linux. Reports from a Mac are welcome.

import (
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// HavePoller tells whether this system has a poller that loops can use.
const HavePoller = true

func errnoOf(err error) Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(Errno); ok {
		return e
	}
	return unix.EIO
}

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

// Peek looks at one byte without taking it: n == 0 with e == 0 means that the
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
		// What was written counts; the error comes back at the next call.
		return n, 0
	}
	return n + m, 0
}

// HaveSendfile is false: callers copy.
const HaveSendfile = false

func Sendfile(dst, src, n int) (int, Errno) { return 0, unix.ENOSYS }

func CannotSendfile(Errno) bool { return true }

// Accept takes one connection from a listening socket; the new descriptor is
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

// Queued is how many bytes a socket still holds that its peer has not taken.
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

// CloseWrite sends FIN and keeps the reading side.
func CloseWrite(fd int) { unix.Shutdown(fd, unix.SHUT_WR) }

// CloseBoth ends both directions but keeps the descriptor, so that its owner's
// calls fail instead of hitting a stranger's socket.
func CloseBoth(fd int) { unix.Shutdown(fd, unix.SHUT_RDWR) }

// SetReset makes the next Close send RST and drop what is unsent, for a peer
// that does not take its data.
func SetReset(fd int) {
	unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 0})
}

// Dup duplicates fd, close-on-exec.
func Dup(fd int) (int, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	return n, os.NewSyscallError("fcntl", err)
}

// ReservePlace opens a descriptor that stands for nothing but its number; it
// is given up when the process has run out of them.
func ReservePlace() (int, error) {
	return unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// SetReusePort lets several sockets listen on one address. Darwin does not
// spread connections over them as Linux does; the last one gets most.
func SetReusePort(fd int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

// TuneListener sets on a listening TCP socket what its connections inherit.
func TuneListener(fd int) {
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPALIVE, 15)
}

// LocalAddr asks the kernel for a socket's own address.
func LocalAddr(fd int) net.Addr { return addrOf(unix.Getsockname(fd)) }

// MaxFiles is the soft limit of open descriptors.
func MaxFiles() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur > 1<<30 {
		return 1 << 30
	}
	return int(l.Cur)
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

func zone(id uint32) string {
	if id == 0 {
		return ""
	}
	if i, err := net.InterfaceByIndex(int(id)); err == nil {
		return i.Name
	}
	return strconv.Itoa(int(id))
}

func addrOf(sa unix.Sockaddr, err error) net.Addr {
	if err != nil {
		return nil
	}
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return &net.TCPAddr{IP: net.IP(a.Addr[:]), Port: a.Port}
	case *unix.SockaddrInet6:
		return &net.TCPAddr{IP: net.IP(a.Addr[:]), Port: a.Port, Zone: zone(a.ZoneId)}
	case *unix.SockaddrUnix:
		return &net.UnixAddr{Name: a.Name, Net: "unix"}
	}
	return nil
}
