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
	path string // of a socket; "" for TCP
	ip   netip.AddrPort
	zone uint32 // of ip
	addr net.Addr
}

// NewRemote returns the Remote of an IP address and port (network "tcp"), or of the path of a
// socket ("unix").
func NewRemote(network, address string) (*Remote, error) {
	switch network {
	case "unix":
		return &Remote{path: address, addr: &net.UnixAddr{Name: address, Net: "unix"}}, nil
	case "tcp":
	default:
		return nil, net.UnknownNetworkError(network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	r := &Remote{ip: ap, addr: net.TCPAddrFromAddrPort(ap)}
	if z := ap.Addr().Zone(); z != "" {
		i, err := net.InterfaceByName(z)
		if err != nil {
			return nil, fmt.Errorf("zone %q: %w", z, err)
		}
		r.zone = uint32(i.Index)
	}
	return r, nil
}

// sockaddr returns the address for one call: package unix writes to it.
func (r *Remote) sockaddr() (domain int, sa unix.Sockaddr) {
	port := int(r.ip.Port())
	switch ip := r.ip.Addr(); {
	case r.path != "":
		return unix.AF_UNIX, &unix.SockaddrUnix{Name: r.path}
	case ip.Is4():
		return unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: ip.As4()}
	default:
		return unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: ip.As16(), ZoneId: r.zone}
	}
}

// Addr returns the address.
func (r *Remote) Addr() net.Addr { return r.addr }

// Connect begins to connect a new socket, which does not block and is closed by exec, and
// returns its descriptor. The socket becomes writable when the attempt has ended; then
// SocketError says how.
func Connect(r *Remote) (fd int, e Errno) {
	domain, sa := r.sockaddr()
	fd, err := socket(domain)
	if err != nil {
		return -1, errnoOf(err)
	}
	if domain != unix.AF_UNIX {
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	switch err = unix.Connect(fd, sa); err {
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
