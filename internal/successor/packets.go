package successor

import (
	"net"
	"os"

	"github.com/chert-http/chert/internal/sys"
)

// Packets is a UDP socket that a successor inherits. Both processes have it then, and each packet
// is read by one of them, so only the one that serves may read.
type Packets struct {
	*net.UDPConn
	// Note is what the process before has noted for this one.
	Note []byte
	// More are the sockets that it has passed with it.
	More []*net.UnixConn
	// Mine is closed when this process is the one that reads.
	Mine <-chan struct{}
	drop func()
}

// A PacketsUser uses a UDP socket that a successor is to inherit.
type PacketsUser interface {
	// Pass returns what the successor is to know, and the descriptors, of Pair, that it is to
	// inherit beside the socket, which the caller then owns. Replaced or Failed follows.
	Pass() (note []byte, more []int, err error)
	// Replaced is called when that serves: when it returns, that one reads, and this process may
	// not any more.
	Replaced()
	// Failed is called when it does not.
	Failed()
}

// ListenPackets returns the UDP socket that was passed for an address, or opens one. Without a
// process, nil, the socket is not passed on.
func (p *Process) ListenPackets(addr *net.UDPAddr, u PacketsUser) (*Packets, error) {
	network := "udp"
	if addr.IP.To4() != nil {
		network = "udp4" // of "udp" 0.0.0.0 is every address of IPv6 too
	}
	if p == nil {
		c, err := net.ListenUDP(network, addr)
		mine := make(chan struct{})
		close(mine)
		return &Packets{UDPConn: c, Mine: mine, drop: func() {}}, err
	}
	var note []byte
	k := &Kept{Network: "udp", Address: addr.String(), Note: func() []byte { return note },
		Replaced: u.Replaced, Failed: u.Failed}
	s, ok := p.Take(k.Network, k.Address)
	if !ok {
		s = new(Socket)
	}
	c, more, err := s.packets(network, addr)
	if err != nil {
		return nil, err
	}
	k.Sockets = func() ([]int, error) {
		raw, err := c.SyscallConn()
		if err != nil {
			return nil, net.ErrClosed
		}
		fd, duplicated := -1, error(nil)
		if err := raw.Control(func(own uintptr) { fd, duplicated = sys.Dup(int(own)) }); err != nil {
			return nil, net.ErrClosed
		}
		if duplicated != nil {
			return nil, duplicated
		}
		var fds []int
		if note, fds, err = u.Pass(); err != nil {
			sys.Close(fd)
			return nil, err
		}
		return append([]int{fd}, fds...), nil
	}
	return &Packets{UDPConn: c, Note: s.Note, More: more, Mine: p.Confirmed(), drop: p.Keep(k)}, nil
}

// packets returns the connections of sockets that were passed, or opens one if there is none.
func (s *Socket) packets(network string, addr *net.UDPAddr) (*net.UDPConn, []*net.UnixConn, error) {
	if len(s.FDs) == 0 {
		c, err := net.ListenUDP(network, addr)
		return c, nil, err
	}
	var more []*net.UnixConn
	fds := s.FDs[1:]
	for i, fd := range fds {
		c, err := connOf(fd)
		if err != nil {
			closeAll(append(fds[i+1:], s.FDs[0]))
			for _, c := range more {
				c.Close()
			}
			return nil, nil, err
		}
		more = append(more, c.(*net.UnixConn)) // inherit has checked that it is one, and UDP the first
	}
	f := os.NewFile(uintptr(s.FDs[0]), "packets")
	defer f.Close()
	c, err := net.FilePacketConn(f)
	if err != nil {
		for _, c := range more {
			c.Close()
		}
		return nil, nil, err
	}
	return c.(*net.UDPConn), more, nil
}

// Drop has no later process inherit the socket.
func (p *Packets) Drop() { p.drop() }
