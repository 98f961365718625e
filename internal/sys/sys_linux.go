package sys

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HavePoller reports whether this system has a poller that loops can use.
const HavePoller = true

// Read reads from a non-blocking descriptor. n == 0 with e == 0 is the end of
// the stream.
func Read(fd int, p []byte) (n int, e Errno) {
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
			uintptr(len(p)), 0, 0, 0)
		if e == 0 {
			received(fd)
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// Hangup reports whether a socket's connection has ended, as by a reset. It reads nothing, and clears no error:
// SO_ERROR also has those after which a connection goes on, as when a network is unreachable for a while
// (RFC 1122 section 4.2.3.9). It may be called by any goroutine while fd is open.
func Hangup(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(p, 0)
	return n > 0 && err == nil && p[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// Peek reads one byte without consuming it: n == 0 with e == 0 means that the
// peer has closed and nothing is left to read. It may be called by any
// goroutine while fd is open.
func Peek(fd int) (n int, e Errno) {
	var b [1]byte
	r, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1,
		unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	received(fd)
	return int(r), 0
}

// Write writes what it can of p. MSG_NOSIGNAL: a disconnected peer is an error
// number, never a SIGPIPE.
func Write(fd int, p []byte) (n int, e Errno) { return send(fd, p, unix.MSG_NOSIGNAL) }

// WriteMore is Write for bytes that others follow immediately: the system may
// wait for those to fill a packet.
func WriteMore(fd int, p []byte) (n int, e Errno) {
	return send(fd, p, unix.MSG_NOSIGNAL|unix.MSG_MORE)
}

func send(fd int, p []byte, flags uintptr) (n int, e Errno) {
	sends()
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
			uintptr(len(p)), flags, 0, 0)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// Write2 writes what it can of a followed by b in one call.
func Write2(fd int, a, b []byte) (n int, e Errno) {
	sends()
	if len(a) == 0 {
		return Write(fd, b)
	}
	if len(b) == 0 {
		return Write(fd, a)
	}
	iov := [2]unix.Iovec{}
	iov[0].Base, iov[1].Base = &a[0], &b[0]
	iov[0].SetLen(len(a))
	iov[1].SetLen(len(b))
	msg := unix.Msghdr{Iov: &iov[0]}
	msg.SetIovlen(2)
	for {
		r, _, e := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_NOSIGNAL)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// HaveSendfile reports whether Sendfile works on this system.
const HaveSendfile = true

// Sendfile copies up to n bytes of src to dst inside the kernel: from the given
// offset, or with -1 from src's own, which then moves. It always goes through the
// scheduler: no check can exclude that it waits for the disk, since a file's pages
// may be evicted at any time and the kernel has no sendfile that does not wait.
func Sendfile(dst, src int, offset int64, n int) (int, Errno) {
	sends()
	var at unsafe.Pointer
	if offset >= 0 {
		at = unsafe.Pointer(&offset)
	}
	for {
		r, _, e := syscall.Syscall6(sysSendfile, uintptr(dst), uintptr(src), uintptr(at), uintptr(n), 0, 0)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// CannotSendfile reports whether e means that sendfile does not work with these
// two descriptors, so that the caller must copy.
func CannotSendfile(e Errno) bool {
	return e == unix.EINVAL || e == unix.ENOSYS || e == unix.EOPNOTSUPP || e == unix.EPERM
}

// Accept accepts one connection on a listening socket; the new descriptor is
// non-blocking and close-on-exec. peer is its address as net would print it.
func Accept(fd int) (nfd int, peer string, e Errno) {
	var sa unix.RawSockaddrAny
	size := uint32(unsafe.Sizeof(sa))
	r, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&sa)),
		uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if e != 0 {
		return -1, "", e
	}
	return int(r), peerString(&sa), 0
}

// Queued returns how many sent bytes a socket still holds because the peer has not accepted them.
func Queued(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

// Close releases fd. EINTR is not retried: on Linux the descriptor is gone
// either way (close(2)).
func Close(fd int) Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return e
}

// CloseWrite sends FIN and keeps the reading side open.
func CloseWrite(fd int) { syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0) }

// CloseBoth ends both directions but keeps the descriptor, so that its owner's
// calls fail instead of using another connection's socket.
func CloseBoth(fd int) { syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_RDWR, 0) }

// SetReusePort lets several sockets listen on one address; the kernel
// distributes connections over them by a hash of the peer's address
// (socket(7)).
func SetReusePort(fd int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

// TuneListener sets the options of a listening TCP socket that its connections
// inherit (Linux copies these at accept): no Nagle delay, and keep-alive probes
// after 15 s as package net sets them.
func TuneListener(fd int) {
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9)
}

// SetLost ends a TCP connection whose peer acknowledges nothing for d: of what was sent, or of keep-alive probes
// (TCP_USER_TIMEOUT).
func SetLost(fd int, d time.Duration) error {
	return os.NewSyscallError("setsockopt",
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds())))
}

func peerString(sa *unix.RawSockaddrAny) string {
	var b [64]byte
	switch sa.Addr.Family {
	case unix.AF_INET:
		p := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return string(appendIPPort(b[:0], p.Addr[:], "", ntohs(p.Port)))
	case unix.AF_INET6:
		p := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		return string(appendIPPort(b[:0], p.Addr[:], zone(p.Scope_id), ntohs(p.Port)))
	case unix.AF_UNIX:
		// A client's socket usually has no name; net prints "@" then.
		return "@"
	}
	return ""
}

func ntohs(p uint16) int {
	b := (*[2]byte)(unsafe.Pointer(&p))
	return int(b[0])<<8 | int(b[1])
}

func socket(domain int) (int, error) {
	return unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}
