package authority

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Names are the names and addresses at which a server is reached.
type Names struct {
	DNS   []string // in lower case; the first label may be *
	Addrs []netip.Addr
}

// ParseNames separates names from addresses, without duplicates.
func ParseNames(all []string) (Names, error) {
	var n Names
	for _, s := range all {
		if addr, err := netip.ParseAddr(s); err == nil {
			switch addr = addr.Unmap(); {
			case addr.Zone() != "":
				return n, fmt.Errorf("%q: certificates have no zones; give the address without %%%s", s, addr.Zone())
			case addr.IsUnspecified():
				return n, fmt.Errorf("%q is where a server listens; give the addresses that clients use, such as "+
					"127.0.0.1", s)
			case !slices.Contains(n.Addrs, addr):
				n.Addrs = append(n.Addrs, addr)
			}
			continue
		}
		name := strings.ToLower(s)
		if err := checkName(name); err != nil {
			return n, fmt.Errorf("%q: %w", s, err)
		}
		if !slices.Contains(n.DNS, name) {
			n.DNS = append(n.DNS, name)
		}
	}
	return n, nil
}

// checkName checks the form of a name according to RFC 5280 section 4.2.1.6 and
// RFC 6125 section 6.4.3: labels of letters, digits and hyphens, of which the
// first may be *. Underscores are used in private networks.
func checkName(name string) error {
	switch {
	case strings.Contains(name, "://"):
		return errors.New("want a name alone, not a URL")
	case strings.ContainsAny(name, ":[]"):
		return errors.New("want a name or an address alone, without a port or brackets")
	case strings.Contains(name, "/"):
		return errors.New("want a name or an address, not a path or a prefix")
	case len(name) > 253:
		return errors.New("names have at most 253 bytes")
	}
	host, wildcard := strings.CutPrefix(name, "*.")
	if strings.Contains(host, "*") {
		return errors.New("* stands for the whole first label, as in *.example.test")
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		switch {
		case label == "":
			return errors.New("a label of the name is empty")
		case len(label) > 63:
			return errors.New("labels of a name have at most 63 bytes")
		case label[0] == '-' || label[len(label)-1] == '-':
			return errors.New("labels of a name neither begin nor end with a hyphen")
		}
		for _, c := range label {
			switch {
			case c > 0x7f:
				return errors.New("write the name as it is in the DNS, in the form xn--")
			case (c < 'a' || 'z' < c) && (c < '0' || '9' < c) && c != '-' && c != '_':
				return errors.New("names have letters, digits, hyphens and dots only")
			}
		}
	}
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" {
		return errors.New("this is neither a name nor an address")
	}
	if wildcard && len(labels) == 1 {
		return errors.New("clients do not accept a wildcard for a whole top-level domain; use one such as " +
			"*.example.test")
	}
	return nil
}

// String lists the names for messages.
func (n Names) String() string {
	all := slices.Clone(n.DNS)
	for _, addr := range n.Addrs {
		all = append(all, addr.String())
	}
	return strings.Join(all, ", ")
}

// each returns every name and address by itself.
func (n Names) each() (all []Names) {
	for _, name := range n.DNS {
		all = append(all, Names{DNS: []string{name}})
	}
	for _, addr := range n.Addrs {
		all = append(all, Names{Addrs: []netip.Addr{addr}})
	}
	return all
}
