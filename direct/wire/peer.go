package wire

import "net/netip"

// A Peer is a RemoteAddr that a server parses once for each connection, so that
// logs and limits need not do so for each request.
type Peer struct {
	// IP is the address in RemoteAddr as package netip formats it; "" if there
	// is none, if it has a zone, or if RemoteAddr is formatted differently.
	IP string
}

// PeerOf parses a RemoteAddr.
func PeerOf(addr string) Peer {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil || ap.Addr().Zone() != "" || ap.String() != addr {
		return Peer{}
	}
	from, to := 0, len(ap.Addr().String())
	if addr[0] == '[' {
		from, to = 1, to+1
	}
	return Peer{IP: addr[from:to]}
}
