package config

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the peers whose X-Forwarded-For is trusted. The zero value trusts
// no peer.
type Proxies struct {
	Prefixes []netip.Prefix
	Unix     bool // peers on unix sockets
}

// Add adds an address, a prefix, or "unix".
func (p *Proxies) Add(s string) error {
	if s == "unix" {
		p.Unix = true
		return nil
	}
	prefix, err := parsePrefix(s)
	if err != nil {
		return errors.New(`want an address, a prefix such as "10.0.0.0/8", or "unix"`)
	}
	switch {
	case prefix.Addr().Is4In6():
		return errors.New("write an IPv4 address without the ::ffff: before it")
	case prefix.Bits() == 0:
		return errors.New("that is every address, so any client could forge its own; name the proxies")
	}
	if !slices.Contains(p.Prefixes, prefix) {
		p.Prefixes = append(p.Prefixes, prefix)
	}
	return nil
}

// parsePrefix parses a prefix, or an address as the prefix of that one.
func parsePrefix(s string) (netip.Prefix, error) {
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix.Masked(), nil
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	if addr.Zone() != "" {
		return netip.Prefix{}, errors.New("a zone")
	}
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

// String returns a list of what Add accepts.
func (p *Proxies) String() string {
	var all []string
	for _, prefix := range p.Prefixes {
		all = append(all, prefix.String())
	}
	if p.Unix {
		all = append(all, "unix")
	}
	return strings.Join(all, ", ")
}

// Some reports whether any peer is trusted.
func (p *Proxies) Some() bool { return p != nil && (len(p.Prefixes) > 0 || p.Unix) }

// Has reports whether a peer is trusted; the zero Addr is that of one on a unix socket.
func (p *Proxies) Has(peer netip.Addr) bool {
	if !peer.IsValid() {
		return p.Unix
	}
	return slices.ContainsFunc(p.Prefixes, func(one netip.Prefix) bool { return one.Contains(peer) })
}

// proxies reads the list of a key, nil if it is not given.
func (l *loader) proxies(t *table, key string) *Proxies {
	all, given := t.list(key)
	if !given {
		return nil
	}
	p := new(Proxies)
	for _, it := range all {
		if err := p.Add(it.text); err != nil {
			l.errorf(it.at, "%s: %q: %v", key, it.text, err)
		}
	}
	return p
}
