//go:build linux || darwin

package servertest

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// A Pair makes two connected sockets: a descriptor for a loop, and its peer.
type Pair func(testing.TB) (fd int, peer net.Conn)

// Unix is a Pair of unix sockets.
func Unix(t testing.TB) (int, net.Conn) {
	t.Helper()
	return socketpair(t, syscall.SOCK_STREAM)
}

// Packets is a Pair where each write is read by itself.
func Packets(t testing.TB) (int, net.Conn) {
	t.Helper()
	return socketpair(t, syscall.SOCK_SEQPACKET)
}

func socketpair(t testing.TB, kind int) (int, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, kind, 0)
	if err != nil && kind != syscall.SOCK_STREAM {
		t.Skip("this system has no such pairs")
	} else if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		syscall.SetNonblock(fd, true)
	}
	file := os.NewFile(uintptr(fds[1]), "peer")
	defer file.Close()
	nc, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	return fds[0], nc
}

// TCP is a Pair over TCP, for what only TCP has: resets.
func TCP(t testing.TB) (int, net.Conn) {
	t.Helper()
	nc, peer := TCPConns(t)
	defer nc.Close()
	raw, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	fd := -1
	raw.Control(func(orig uintptr) { fd, err = syscall.Dup(int(orig)) })
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	return fd, peer
}
