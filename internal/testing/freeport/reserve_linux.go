package freeport

import (
	"net/netip"
	"os"
	"sync"
	"syscall"
)

// reserve binds a socket and does not listen with it. Linux lets another socket bind the same
// address if both have SO_REUSEADDR and neither listens yet, but does not give it to a caller who
// asks for any.
func reserve(host string) (addr string, release func(), err error) {
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Is4() {
		return wasFree(host)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, os.NewSyscallError("socket", err)
	}
	closed := sync.OnceFunc(func() { syscall.Close(fd) })
	defer func() {
		if err != nil {
			closed()
		}
	}()
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return "", nil, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: ip.As4()}); err != nil {
		return "", nil, os.NewSyscallError("bind", err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		return "", nil, os.NewSyscallError("getsockname", err)
	}
	return netip.AddrPortFrom(ip, uint16(sa.(*syscall.SockaddrInet4).Port)).String(), closed, nil
}
