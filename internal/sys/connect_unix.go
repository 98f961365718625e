//go:build linux || darwin

package sys

import (
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// A Remote is an address to connect to. It is immutable.
type Remote struct {
	sa     unix.Sockaddr
	domain int
	addr   net.Addr
}

// NewRemote returns the Remote of an IP address and port (network "tcp"), or of the path of a
// socket ("unix").
func NewRemote(network, address string) (*Remote, error) {
	switch network {
	case "unix":
		sa := &unix.SockaddrUnix{Name: address}
		return &Remote{sa: sa, domain: unix.AF_UNIX, addr: &net.UnixAddr{Name: address, Net: "unix"}}, nil
	case "tcp":
	default:
		return nil, net.UnknownNetworkError(network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	ip, port := ap.Addr().Unmap(), int(ap.Port())
	r := &Remote{addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, ap.Port()))}
	if ip.Is4() {
		r.domain, r.sa = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: ip.As4()}
		return r, nil
	}
	sa := &unix.SockaddrInet6{Port: port, Addr: ip.As16()}
	if z := ip.Zone(); z != "" {
		i, err := net.InterfaceByName(z)
		if err != nil {
			return nil, fmt.Errorf("zone %q: %w", z, err)
		}
		sa.ZoneId = uint32(i.Index)
	}
	r.domain, r.sa = unix.AF_INET6, sa
	return r, nil
}

// Addr returns the address.
func (r *Remote) Addr() net.Addr { return r.addr }

// Connect begins to connect a new socket, which does not block and is closed by exec, and
// returns its descriptor. The socket becomes writable when the attempt has ended; then
// SocketError says how.
func Connect(r *Remote) (fd int, e Errno) {
	fd, err := socket(r.domain)
	if err != nil {
		return -1, errnoOf(err)
	}
	if r.domain != unix.AF_UNIX {
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	switch err = unix.Connect(fd, r.sa); err {
	case nil, unix.EINPROGRESS, unix.EINTR: // it goes on after a signal
		return fd, 0
	}
	Close(fd)
	return -1, errnoOf(err)
}

// SocketError returns the pending error of a socket, and clears it.
func SocketError(fd int) Errno {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return errnoOf(err)
	}
	return Errno(n)
}
