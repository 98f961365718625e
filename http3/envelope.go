package http3

import (
	"encoding/binary"
	"net"

	"golang.org/x/net/ipv4"
)

// This file is how a process passes a packet on to one before it:
//
//	family | length of zone | length of control | port, 2 bytes | IP, 16 bytes | zone | control | packet
//
// where control is the messages of the kernel that came with the packet: marks of congestion (ECN)
// and the address that it was sent to.

const (
	envelopeHead = 21
	// maxEnvelope is how large one is: a packet of quic-go has 1452 bytes at most, its control 128,
	// and a zone, a network interface, has a name of 15 bytes.
	maxEnvelope = 2048

	family4 = 4
	family6 = 6
)

// appendEnvelope appends a message that was read, nil if it cannot be passed on.
func appendEnvelope(b []byte, m *ipv4.Message) []byte {
	addr, ok := m.Addr.(*net.UDPAddr)
	if !ok || len(addr.Zone) > 255 || m.NN > 255 {
		return nil
	}
	head := [envelopeHead]byte{family6, byte(len(addr.Zone)), byte(m.NN)}
	if len(addr.IP) == net.IPv4len {
		head[0] = family4
	}
	binary.BigEndian.PutUint16(head[3:], uint16(addr.Port))
	copy(head[5:], addr.IP)
	b = append(append(b, head[:]...), addr.Zone...)
	b = append(append(b, m.OOB[:m.NN]...), m.Buffers[0][:m.N]...)
	if len(b) > maxEnvelope {
		return nil
	}
	return b
}

// open makes m the message in an envelope, and reports whether it is a valid one that fits.
func open(m *ipv4.Message, envelope []byte) bool {
	if len(envelope) < envelopeHead {
		return false
	}
	head, rest := envelope[:envelopeHead], envelope[envelopeHead:]
	zone, control := int(head[1]), int(head[2])
	size := len(rest) - zone - control
	if size < 0 || size > len(m.Buffers[0]) || control > len(m.OOB) {
		return false
	}
	addr := &net.UDPAddr{Port: int(binary.BigEndian.Uint16(head[3:])), Zone: string(rest[:zone])}
	switch head[0] {
	case family4:
		addr.IP = append(addr.IP, head[5:5+net.IPv4len]...)
	case family6:
		addr.IP = append(addr.IP, head[5:]...)
	default:
		return false
	}
	m.Addr, m.Flags = addr, 0
	m.NN = copy(m.OOB, rest[zone:zone+control])
	m.N = copy(m.Buffers[0], rest[zone+control:])
	return true
}

// move makes to a copy of from. Their buffers stay what they are: quic-go knows them by their place.
func move(to, from *ipv4.Message) {
	to.Addr, to.Flags = from.Addr, from.Flags
	to.NN = copy(to.OOB, from.OOB[:from.NN])
	to.N = copy(to.Buffers[0], from.Buffers[0][:from.N])
}
