//go:build linux || darwin

package sys

import (
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// This file is common to all systems with a poller.

// SetReset makes the next Close send RST and drop what is unsent, for a peer
// that does not read its data.
func SetReset(fd int) {
	unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 0})
}

// Dup duplicates fd, close-on-exec.
func Dup(fd int) (int, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	return n, os.NewSyscallError("fcntl", err)
}

// Monotonic returns the system's monotonic clock, CLOCK_MONOTONIC, in nanoseconds. Other
// processes have the same; Nanotime is for this one alone.
func Monotonic() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano()
}

// SetNonblock makes fd, and all its duplicates, non-blocking.
func SetNonblock(fd int) error { return os.NewSyscallError("fcntl", unix.SetNonblock(fd, true)) }

// CloseOnExec keeps fd from the programs that this process starts.
func CloseOnExec(fd int) { unix.CloseOnExec(fd) }

// IsListening reports whether fd is a stream socket that listens.
func IsListening(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return false
	}
	on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return err == nil && on != 0
}

// IsPackets reports whether fd is a socket of UDP.
func IsPackets(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_DGRAM {
		return false
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	switch addr.(type) {
	case *unix.SockaddrInet4, *unix.SockaddrInet6:
		return true
	}
	return false
}

// IsLocal reports whether fd is a socket of messages between processes.
func IsLocal(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind == unix.SOCK_STREAM {
		return false
	}
	addr, err := unix.Getsockname(fd)
	_, ok := addr.(*unix.SockaddrUnix)
	return err == nil && ok
}

// ReceiveBuffer returns how many bytes of packets a socket keeps that have not been read.
func ReceiveBuffer(fd int) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
}

// ReservePlace opens a descriptor only to reserve its number; it is closed when
// the process has run out of descriptors.
func ReservePlace() (int, error) {
	return unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// LocalAddr returns a socket's own address from the kernel.
func LocalAddr(fd int) net.Addr { return addrOf(unix.Getsockname(fd)) }

// Pending reports whether a socket is readable, which for a listening one means that a
// connection waits to be accepted.
func Pending(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return n > 0 || err != nil
}

// errnoOf returns the number of an error of package unix.
func errnoOf(err error) Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(Errno); ok {
		return e
	}
	return unix.EIO
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
