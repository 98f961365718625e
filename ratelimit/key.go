package ratelimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"unsafe"

	"github.com/chert-http/chert/direct"
)

// A Key says whose bucket a request is charged to. The zero Key is ByAddress.
//
// Stores do not have what clients have sent: only addresses, and what package
// ratelimit itself has named, can be read in them. Other keys are hashed there
// (SHA-256): who can read the store can try out what may be guessed.
type Key struct {
	// of appends the key to dst. dst as it is: there is none, and the address
	// is the key.
	of func(dst []byte, s *subject) []byte
	// plain: of needs the http.Request.
	plain  bool
	secret bool
	// v4 and v6 are of ByPrefix, if address.
	address bool
	v4, v6  int
}

// A subject is what keys see of a request: an exchange's Request, a
// http.Request, or both. pattern is either's.
type subject struct {
	x       *direct.Request
	r       *http.Request
	pattern string
}

// ByAddress is a bucket for each client address; for IPv6 one for each /64,
// which is the least that a client has. The address is RemoteAddr's: behind a
// proxy it must be put right first, by middleware.RealIP for one. All clients
// without an address, those of a unix socket, share a bucket.
func ByAddress() Key { return ByPrefix(32, 64) }

// ByPrefix is ByAddress with other lengths of prefix, in bits. It panics for
// lengths that there are not.
func ByPrefix(v4, v6 int) Key {
	if v4 < 0 || v4 > 32 || v6 < 0 || v6 > 128 {
		panic("ratelimit: ByPrefix: lengths go to 32 and 128")
	}
	return Key{address: true, v4: v4, v6: v6, of: func(dst []byte, s *subject) []byte {
		return appendAddress(dst, s.x.RemoteAddr, v4, v6)
	}}
}

// Everyone is one bucket for all requests.
func Everyone() Key {
	return Key{of: func(dst []byte, _ *subject) []byte { return append(dst, "all"...) }}
}

// ByHeader is a bucket for each value of a header field, such as an API key. A
// request without it is charged to its address. Whoever can make up values has
// as many buckets: ask who he is before, or have a rule for addresses too.
// It panics for "" and for Host, which is not among the fields: ByRequest has it.
func ByHeader(name string) Key {
	if name == "" || strings.EqualFold(name, "Host") {
		panic(fmt.Sprintf("ratelimit: ByHeader: no request has a field %q", name))
	}
	return Key{secret: true, of: func(dst []byte, s *subject) []byte {
		v := s.x.Fields.Get(name)
		if len(v) == 0 {
			return dst
		}
		return append(append(dst, '='), v...) // never the same as an address
	}}
}

// ByRequest is a bucket for each key that f appends to dst. A request for which
// it appends nothing is charged to its address. It panics without f.
func ByRequest(f func(dst []byte, r *direct.Request) []byte) Key {
	if f == nil {
		panic("ratelimit: ByRequest: no function")
	}
	return Key{secret: true, of: func(dst []byte, s *subject) []byte {
		n := len(dst)
		dst = f(append(dst, '='), s.x)
		if len(dst) == n+1 {
			return dst[:n]
		}
		return dst
	}}
}

// ByFunc is a bucket for each string that f returns: the subject of a token that
// was checked before, for one. A request for which it is "" is charged to its
// address. What has a rule with it is not direct; with ByRequest it is. It panics
// without f.
func ByFunc(f func(r *http.Request) string) Key {
	if f == nil {
		panic("ratelimit: ByFunc: no function")
	}
	return Key{plain: true, secret: true, of: func(dst []byte, s *subject) []byte {
		if v := f(s.r); v != "" {
			return append(append(dst, '='), v...)
		}
		return dst
	}}
}

// ByRoute is a bucket for each route: the Pattern of the request. It belongs
// inside of a router.
func ByRoute() Key {
	return Key{of: func(dst []byte, s *subject) []byte {
		if s.pattern == "" {
			return dst
		}
		return append(append(dst, '='), s.pattern...)
	}}
}

// append appends the key of a request.
func (k *Key) append(dst []byte, s *subject) (key []byte, secret bool) {
	n := len(dst)
	if dst = k.of(dst, s); len(dst) > n {
		return dst, k.secret
	}
	return appendAddress(dst, s.x.RemoteAddr, 32, 64), false
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
		return append(dst, '@') // a client may give its end of a unix socket any name
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

// ipv4 is the length of the IPv4 address that begins remote, if it is such an
// address and a port, the address as netip writes it; else it is 0. Most are, and this
// is quicker than netip's parsing and writing.
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
		if c := uint(remote[i] - '0'); c <= 9 && n > 0 { // nothing begins with a 0 but 0
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
		return 0 // netip shall see
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

// request is what keys see of r. The slices are views of its strings.
func request(r *http.Request) direct.Request {
	return direct.Request{
		Method: r.Method, Target: bytesOf(r.RequestURI), Path: bytesOf(r.URL.Path), RawQuery: bytesOf(r.URL.RawQuery),
		Host: bytesOf(r.Host), RemoteAddr: r.RemoteAddr, Fields: direct.FieldsOf(r.Header),
	}
}

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
