package middleware

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// IPFilterOptions are the options of IPFilter.
type IPFilterOptions struct {
	// Allow and AllowLocal are the clients that are admitted: those with an address in one
	// of the prefixes, and those without an IP address, the peers of unix sockets. If Allow
	// is empty and AllowLocal is false, all are.
	Allow      []netip.Prefix
	AllowLocal bool
	// Deny and DenyLocal are clients that are refused, also if Allow has them.
	Deny      []netip.Prefix
	DenyLocal bool
}

// IPFilter refuses requests by the address of the client, with 403. Behind proxies it
// belongs inside of RealIP, which finds the client's; otherwise all clients have the
// proxy's. IPv4 addresses are compared as such, in either notation, and zones of IPv6
// are ignored. A client whose address cannot be read is refused, unless the options are
// empty.
//
// It is an error if a prefix is not valid, or covers IPv4 and IPv6: 0.0.0.0/0 and ::/0
// together are all addresses.
func IPFilter(o *IPFilterOptions) (func(http.Handler) http.Handler, error) {
	opt := options(o)
	var err error
	if opt.Allow, err = plainPrefixes(opt.Allow); err != nil {
		return nil, fmt.Errorf("middleware: IPFilter: Allow: %w", err)
	}
	if opt.Deny, err = plainPrefixes(opt.Deny); err != nil {
		return nil, fmt.Errorf("middleware: IPFilter: Deny: %w", err)
	}
	forbidden := wrap.Refusal(http.StatusForbidden)
	all := len(opt.Allow)+len(opt.Deny) == 0 && !opt.AllowLocal && !opt.DenyLocal
	return filter.New(func(c *filter.Call) filter.Outcome {
		if all || opt.admits(c.RemoteAddr()) {
			return filter.Pass
		}
		return c.Refuse(forbidden)
	}), nil
}

// plainPrefixes returns prefixes that IPv4 addresses are in as such.
func plainPrefixes(all []netip.Prefix) ([]netip.Prefix, error) {
	all = slices.Clone(all)
	for i, p := range all {
		switch {
		case !p.IsValid():
			return nil, fmt.Errorf("prefix %d is not valid", i)
		case p.Addr().Is4In6() && p.Bits() < 96:
			return nil, fmt.Errorf("%v covers IPv4 and IPv6; give one of each", p)
		case p.Addr().Is4In6():
			all[i] = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
	}
	return all, nil
}

// admits decides about a client's address, as in http.Request.
func (o *IPFilterOptions) admits(remote string) bool {
	restricted := len(o.Allow) > 0 || o.AllowLocal
	if isLocal(remote) {
		return !o.DenyLocal && (o.AllowLocal || !restricted)
	}
	addr, ok := addrOf(remote)
	if !ok {
		return false
	}
	in := func(p netip.Prefix) bool { return p.Contains(addr) }
	return !slices.ContainsFunc(o.Deny, in) && (!restricted || slices.ContainsFunc(o.Allow, in))
}

// isLocal reports whether an address is that of a peer on a unix socket.
func isLocal(remote string) bool { return remote == "" || remote[0] == '@' || remote[0] == '/' }

// addrOf parses an address with or without a port. Prefixes contain no address with a
// zone, so it is removed: otherwise a client on a link could avoid Deny.
func addrOf(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddrPort(s)
	addr := a.Addr()
	if err != nil {
		if addr, err = netip.ParseAddr(s); err != nil {
			return addr, false
		}
	}
	return addr.WithZone("").Unmap(), true
}
