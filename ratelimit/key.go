package ratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/rfc/field"
)

// A Key selects the bucket that a request is charged to. The zero Key is ByAddress. New
// returns an error for a Key that cannot be used.
//
// Only addresses, routes and fixed names are stored in readable form. Other keys,
// which may be credentials, are hashed in stores outside the process (SHA-256), so
// that a reader of the store can only confirm a guess.
type Key struct {
	// of appends the key to dst. If it appends nothing the address is the key.
	of     func(dst []byte, c *filter.Call) []byte
	plain  bool // of needs the http.Request
	secret bool
	// v4 and v6 are ByPrefix's, if address is set.
	address bool
	v4, v6  int
	err     error // New returns it
}

// ByAddress charges each client address, and for IPv6 each /64, the smallest network
// that a client gets. It reads RemoteAddr, which middleware such as
// middleware.RealIP must set first if the server is behind a proxy. All clients
// without an address, as on a unix socket, share one bucket.
func ByAddress() Key { return ByPrefix(32, 64) }

// ByPrefix is ByAddress with other prefix lengths, in bits: v4 from 0 to 32, v6 from 0
// to 128.
func ByPrefix(v4, v6 int) Key {
	if v4 < 0 || v4 > 32 || v6 < 0 || v6 > 128 {
		return Key{err: fmt.Errorf("ByPrefix(%d, %d): the lengths go to 32 and 128", v4, v6)}
	}
	return Key{address: true, v4: v4, v6: v6, of: func(dst []byte, c *filter.Call) []byte {
		return appendAddress(dst, c.RemoteAddr(), v4, v6)
	}}
}

// Everyone charges all requests to one bucket.
func Everyone() Key {
	return Key{of: func(dst []byte, _ *filter.Call) []byte { return append(dst, "all"...) }}
}

// ByHeader charges each value of a header field, such as an API key. A request
// without the field is charged to its address. A client that makes up values gets a
// bucket for each: authenticate it first, or add a rule by address. Host is not a field
// of the request; use ByRequest for it.
func ByHeader(name string) Key {
	if !field.IsToken(name) || strings.EqualFold(name, "Host") {
		return Key{err: fmt.Errorf("ByHeader: no request has a field %q", name)}
	}
	return Key{secret: true, of: func(dst []byte, c *filter.Call) []byte {
		v := c.RequestHeader(name)
		if len(v) == 0 {
			return dst
		}
		return append(append(dst, '='), v...) // never the same as an address
	}}
}

// ByRequest charges each key that f appends to dst. A request for which f appends
// nothing is charged to its address.
func ByRequest(f func(dst []byte, c *filter.Call) []byte) Key {
	if f == nil {
		return Key{err: errors.New("ByRequest: no function")}
	}
	return Key{secret: true, of: func(dst []byte, c *filter.Call) []byte {
		n := len(dst)
		dst = f(append(dst, '='), c)
		if len(dst) == n+1 {
			return dst[:n]
		}
		return dst
	}}
}

// ByFunc charges each string that f returns, such as the subject of a verified
// token. A request for which f returns "" is charged to its address. A handler with
// such a rule is not a direct.Handler; with ByRequest it can be.
func ByFunc(f func(r *http.Request) string) Key {
	if f == nil {
		return Key{err: errors.New("ByFunc: no function")}
	}
	return Key{plain: true, secret: true, of: func(dst []byte, c *filter.Call) []byte {
		_, r := c.Plain()
		if v := f(r); v != "" {
			return append(append(dst, '='), v...)
		}
		return dst
	}}
}

// ByRoute charges each route, the Pattern of the request. It works inside of a
// router; elsewhere requests are charged to their address.
func ByRoute() Key {
	return Key{of: func(dst []byte, c *filter.Call) []byte {
		if c.Pattern() == "" {
			return dst
		}
		return append(append(dst, '='), c.Pattern()...)
	}}
}

// append appends the key of a request.
func (k *Key) append(dst []byte, c *filter.Call) (key []byte, secret bool) {
	n := len(dst)
	if dst = k.of(dst, c); len(dst) > n {
		return dst, k.secret
	}
	return appendAddress(dst, c.RemoteAddr(), 32, 64), false
}

// appendAddress appends "192.0.2.1" or "2001:db8:1:2::/64".
func appendAddress(dst []byte, remote string, v4, v6 int) []byte {
	if v4 == 32 {
		if n := ipv4(remote); n > 0 {
			return append(dst, remote[:n]...)
		}
	}
	var a netip.Addr
	if ap, err := netip.ParseAddrPort(remote); err == nil {
		a = ap.Addr()
	} else if a, err = netip.ParseAddr(remote); err != nil {
		return append(dst, '@') // a client may bind its unix socket to any name
	}
	a = a.Unmap().WithZone("")
	bits := v6
	if a.Is4() {
		bits = v4
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return append(dst, '@')
	}
	if bits == a.BitLen() {
		return a.AppendTo(dst)
	}
	return p.AppendTo(dst)
}

// ipv4 returns the length of the IPv4 address in remote, if that is an address as
// netip formats it and a port, and 0 otherwise. Most are, and this is faster than to
// parse and format it.
func ipv4(remote string) int {
	i := 0
	for part := range 4 {
		if len(remote)-i < len("1:1") {
			return 0
		}
		n := uint(remote[i] - '0')
		if n > 9 {
			return 0
		}
		i++
		if c := uint(remote[i] - '0'); c <= 9 && n > 0 { // no number but 0 begins with 0
			n = 10*n + c
			i++
			if c := uint(remote[i] - '0'); c <= 9 {
				n = 10*n + c
				i++
			}
		}
		end := byte('.')
		if part == 3 {
			end = ':'
		}
		if n > 255 || i == len(remote) || remote[i] != end {
			return 0
		}
		i++
	}
	i--
	port := remote[i+1:]
	if len(port) == 0 || len(port) > 5 {
		return 0 // left to netip
	}
	var n uint
	for j := 0; j < len(port); j++ {
		c := uint(port[j] - '0')
		if n = 10*n + c; c > 9 {
			return 0
		}
	}
	if n > 65535 {
		return 0
	}
	return i
}
