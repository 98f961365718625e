package direct

import (
	"net/netip"
	"unsafe"
)

// A Peer is a RemoteAddr that was looked at beforehand: a server does so once
// for a connection, where log and limits would do so for each request.
type Peer struct {
	addr     string
	from, to uint8 // where the IP address is in addr; 0, 0: there is none
}

// PeerOf looks at a RemoteAddr.
func PeerOf(addr string) Peer {
	p := Peer{addr: addr}
	ap, err := netip.ParseAddrPort(addr)
	if err != nil || ap.Addr().Zone() != "" || ap.String() != addr {
		return p // as netip writes it, or not at all
	}
	if p.to = uint8(len(ap.Addr().String())); addr[0] == '[' {
		p.from, p.to = 1, p.to+1
	}
	return p
}

// PeerIP is the IP address in RemoteAddr, as package netip writes it and without
// a zone, if the server has looked at it beforehand and nobody has put another
// RemoteAddr in its place; else "".
func (r *Request) PeerIP() string {
	if p := r.Peer; p != nil && len(p.addr) == len(r.RemoteAddr) && unsafe.StringData(p.addr) == unsafe.StringData(r.RemoteAddr) {
		return p.addr[p.from:p.to]
	}
	return ""
}
