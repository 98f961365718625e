package middleware

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/lastproxy"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/internal/view"
)

// RealIPOptions are the options of RealIP.
type RealIPOptions struct {
	// Trusted are the addresses of trusted proxies. List only addresses from
	// which no other program can connect: every peer with such an address is
	// believed. On net/http's server that includes the peers of unix sockets:
	// it uses the name of the client's end as RemoteAddr, and a client may
	// choose "10.0.0.1:80"; chert uses "@". Without any, RealIP does nothing.
	// ::ffff:10.0.0.0/104 is 10.0.0.0/8: IPv4 addresses are compared as such,
	// in either notation.
	Trusted []netip.Prefix
	// TrustLocal trusts peers without an IP address: those of unix sockets.
	TrustLocal bool
	// Forwarded reads Forwarded (RFC 7239) instead of X-Forwarded-For. It must
	// be the field that the proxies set: they pass on the other as the client
	// wrote it, which is why the two are never combined.
	Forwarded bool
	// Note lets an inner RequestID with AcceptForwarded see which requests come
	// from a trusted proxy. It costs a copy of their *http.Request on the
	// ordinary path.
	Note bool
}

// forwardedKey is set, to true, on requests that a trusted proxy has sent.
type forwardedKey struct{}

// RealIP sets RemoteAddr, of the request or the exchange, to the client's
// address as proxies report it, with port 0 if they do not report one. It
// belongs outside of all middleware that uses the address.
//
// Each proxy appends the address of its peer. So the list, of all lines of the
// field together, is read from its end, as long as the proxy that has added an
// entry is trusted: the first address that is not trusted is the client's. An entry
// that is no address, such as "unknown" and the obfuscated ones of RFC 7239 section
// 6.3, ends the search, and the last address before it counts.
//
// It is an error if one of Trusted is not valid, or covers IPv4 and IPv6.
func RealIP(o *RealIPOptions) (func(http.Handler) http.Handler, error) {
	opt := options(o)
	field := "X-Forwarded-For"
	if opt.Forwarded {
		field = "Forwarded"
	}
	var err error
	if opt.Trusted, err = plainPrefixes(opt.Trusted); err != nil {
		return nil, fmt.Errorf("middleware: RealIP: Trusted: %w", err)
	}
	return filter.New(func(c *filter.Call) filter.Outcome {
		if (opt.Note || c.HasHeader(field)) && opt.trustsPeer(c.RemoteAddr()) {
			if opt.Note {
				c.SetValue(forwardedKey{}, true)
			}
			opt.walk(c, field)
		}
		return filter.Pass
	}), nil
}

func (o *RealIPOptions) trustsPeer(addr string) bool {
	if len(o.Trusted) == 0 && !o.TrustLocal {
		return false
	}
	peer, ok := parseNode(addr)
	if !ok {
		return o.TrustLocal && isLocal(addr)
	}
	return o.trusts(peer.Addr())
}

func (o *RealIPOptions) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(o.Trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (o *RealIPOptions) walk(c *filter.Call, name string) {
	var some [8]string
	lines := some[:0]
	for n, value := range c.Fields().All() {
		if field.EqualFold(n, name) {
			lines = append(lines, view.String(value))
		}
	}
	walk := walk{o: o}
	for i := len(lines) - 1; i >= 0 && walk.line(lines[i]); i-- {
	}
	if walk.found {
		c.SetValue(lastproxy.Key{}, c.RemoteAddr())
		c.SetRemoteAddr(net.JoinHostPort(walk.best.Addr().String(), strconv.Itoa(int(walk.best.Port()))))
	}
}

// A walk visits the entries from the last to the first.
type walk struct {
	o     *RealIPOptions
	best  netip.AddrPort
	found bool
}

// line visits the entries of one line and reports whether to continue.
func (w *walk) line(s string) bool {
	for end := len(s); end >= 0; {
		start := strings.LastIndexByte(s[:end], ',') + 1
		if w.o.Forwarded {
			start = elementStart(s[:end])
		}
		if !w.entry(trim(s[start:end])) {
			return false
		}
		end = start - 1
	}
	return true
}

// entry visits one entry and reports whether the one before it is trusted.
func (w *walk) entry(s string) bool {
	if s == "" {
		return true // RFC 9110 section 5.6.1.2: empty elements are ignored
	}
	if w.o.Forwarded {
		var ok bool
		if s, ok = forParameter(s); !ok {
			return false
		}
	}
	node, ok := parseNode(s)
	if !ok {
		return false
	}
	w.best, w.found = node, true
	return w.o.trusts(node.Addr())
}

// parseNode parses an address, with or without port: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. Zones are rejected: they mean
// something on one machine only.
func parseNode(s string) (node netip.AddrPort, ok bool) {
	if len(s) > len("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535") {
		return node, false
	}
	if a, err := netip.ParseAddrPort(s); err == nil {
		node = a
	} else {
		if len(s) > 1 && s[0] == '[' && s[len(s)-1] == ']' {
			s = s[1 : len(s)-1]
			if a, err := netip.ParseAddr(s); err != nil || a.Is4() {
				return node, false
			}
		}
		a, err := netip.ParseAddr(s)
		if err != nil {
			return node, false
		}
		node = netip.AddrPortFrom(a, 0)
	}
	if node.Addr().Zone() != "" {
		return node, false
	}
	// An IPv4 address is compared as such, so that prefixes match.
	return netip.AddrPortFrom(node.Addr().Unmap(), node.Port()), true
}

// elementStart returns where the last element of a Forwarded line begins. It
// reads from the end, quotes too: text from the client cannot reach into what a
// proxy has appended.
func elementStart(s string) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case '"':
			escapes := 0
			for j := i - 1; j >= 0 && s[j] == '\\'; j-- {
				escapes++
			}
			if escapes%2 == 0 {
				quoted = !quoted
			}
		case ',':
			if !quoted {
				return i + 1
			}
		}
	}
	return 0
}

// forParameter returns the one "for" of an element:
//
//	forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )
//	forwarded-pair    = token "=" ( token / quoted-string )
func forParameter(s string) (node string, ok bool) {
	for s != "" {
		pair := s
		quoted := false
		for i := 0; i < len(s); i++ {
			if c := s[i]; c == '\\' && quoted {
				i++
			} else if c == '"' {
				quoted = !quoted
			} else if c == ';' && !quoted {
				pair = s[:i]
				break
			}
		}
		if quoted && len(pair) == len(s) {
			return "", false
		}
		s = s[min(len(pair)+1, len(s)):]
		pair = trim(pair)
		if len(pair) < 4 || !field.EqualFold(pair[:4], "for=") {
			continue
		}
		if ok { // RFC 7239 section 4: each parameter MUST NOT occur more than once
			return "", false
		}
		node, ok = pair[4:], true
		if len(node) > 1 && node[0] == '"' && node[len(node)-1] == '"' {
			node = node[1 : len(node)-1] // no address contains a backslash
		}
	}
	return node, ok
}

func trim(s string) string { return strings.Trim(s, " \t") }
