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
	// Mine is closed when this process is the one that reads.
	Mine <-chan struct{}
	drop func()
}

// ListenPackets returns the UDP socket that was passed for an address, or opens one. note returns
// what the successor is to know. leave is called when there is a successor that serves: when it
// returns that one reads, and this process may not any more. Without a process, nil, the socket is
// not passed on.
func (p *Process) ListenPackets(addr *net.UDPAddr, note func() []byte, leave func()) (*Packets, error) {
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
	k := &Kept{Network: "udp", Address: addr.String(), Note: note, Replaced: leave}
	s, ok := p.Take(k.Network, k.Address)
	if !ok {
		s = new(Socket)
	}
	c, err := s.packets(network, addr)
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
		return []int{fd}, duplicated
	}
	return &Packets{UDPConn: c, Note: s.Note, Mine: p.Confirmed(), drop: p.Keep(k)}, nil
}

// packets returns the connection of a socket that was passed, or opens one if there is none.
func (s *Socket) packets(network string, addr *net.UDPAddr) (*net.UDPConn, error) {
	if len(s.FDs) == 0 {
		return net.ListenUDP(network, addr)
	}
	f := os.NewFile(uintptr(s.FDs[0]), "packets")
	defer f.Close()
	c, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil // inherit has checked that it is one
}

// Drop has no later process inherit the socket.
func (p *Packets) Drop() { p.drop() }
