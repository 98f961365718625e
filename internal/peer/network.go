package peer

import "net/netip"

// Network returns what is one client: an IPv4 address, or the first address of the /64 that an IPv6
// address is in, since a client has all of that.
func Network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64) // there is no error without a zone
		return p.Addr()
	}
	return a
}
