package vhost

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// maxName is the length of the longest name in the DNS, in bytes, without the
// final dot (RFC 1035 section 2.3.4). Longer hosts match nothing and are not
// searched: finding the pattern of a host takes a step for each label.
const maxName = 253

// A Pattern is the canonical form of one of these:
//
//	example.com      this host alone
//	*.example.com    all hosts below example.com, at any depth, but not itself
//	192.0.2.1, ::1   an address; IPv6 with or without brackets
//	*                every host that no other pattern matches
type Pattern string

// Parse parses a pattern. The case of letters, a final dot, and the notation of
// an IPv6 address make no difference.
func Parse(s string) (Pattern, error) {
	const portHint = "leave the port out; a site is served on all addresses of listen"
	switch {
	case s == "":
		return "", errors.New("the name is empty")
	case s == "*":
		return "*", nil
	case strings.Contains(s, "://"):
		return "", errors.New("want a host's name, not a URL")
	case strings.HasPrefix(s, "["), strings.Count(s, ":") > 1:
		inner := strings.TrimPrefix(s, "[")
		if inner != s {
			var rest string
			var closed bool
			if inner, rest, closed = strings.Cut(inner, "]"); !closed {
				return "", errors.New("the bracket is not closed")
			}
			if strings.HasPrefix(rest, ":") {
				return "", errors.New(portHint)
			}
		}
		a, err := netip.ParseAddr(inner)
		if err != nil || !a.Is6() || a.Zone() != "" {
			return "", errors.New("this is no IPv6 address")
		}
		return Pattern(a.String()), nil
	case strings.Contains(s, ":"):
		return "", errors.New(portHint)
	}
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	rest := strings.TrimPrefix(name, "*.")
	if strings.Contains(rest, "*") {
		return "", errors.New(`a * stands for the whole host or, as in "*.example.com", for its first labels`)
	}
	if err := checkName(rest); err != nil {
		return "", err
	}
	return Pattern(name), nil
}

func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("the name is longer than %d bytes", maxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return errors.New("each part between the dots must have 1 to 63 bytes")
		}
		for i := range len(label) {
			switch c := label[i]; {
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			case c >= 0x80:
				return errors.New(`names beyond ASCII are written as browsers send them: "xn--bcher-kva.example"`)
			default:
				return fmt.Errorf("%q cannot be in a host's name", c)
			}
		}
	}
	return nil
}

// A Table maps patterns to values. After the last Add it is safe for concurrent
// use.
type Table[T any] struct {
	exact map[string]T
	below map[string]T // *.KEY
	other *T           // *
}

// Add reports false, and changes nothing, if p is already there.
func (t *Table[T]) Add(p Pattern, v T) bool {
	if p == "*" {
		if t.other != nil {
			return false
		}
		t.other = &v
		return true
	}
	m, key := &t.exact, string(p)
	if suffix, ok := strings.CutPrefix(key, "*."); ok {
		m, key = &t.below, suffix
	}
	if _, ok := (*m)[key]; ok {
		return false
	}
	if *m == nil {
		*m = make(map[string]T)
	}
	(*m)[key] = v
	return true
}

// Find returns the value for a host: its own, else that of the longest pattern
// that it is below, else that of "*". host is as in the field Host or as the
// authority of a request: a port is ignored. Find allocates nothing, except for
// an IPv6 address that is not in its shortest form.
func Find[T any, H string | []byte](t *Table[T], host H) (v T, ok bool) {
	var buf [maxName]byte
	name, addr := canonical(&buf, host)
	v, ok = t.exact[string(name)]
	switch {
	case ok:
		return v, true
	case addr && len(name) > 0:
		if v, ok := t.exact[shortest(string(name))]; ok {
			return v, true
		}
	case len(t.below) > 0:
		for i, c := range name {
			if c != '.' {
				continue
			}
			if v, ok := t.below[string(name[i+1:])]; ok {
				return v, true
			}
		}
	}
	if t.other != nil {
		return *t.other, true
	}
	return v, false
}

// Name returns the canonical form of a host, without its port, "" if it is
// malformed or empty. An IPv6 address has no brackets.
func Name[H string | []byte](host H) string {
	var buf [maxName]byte
	name, addr := canonical(&buf, host)
	if addr {
		return shortest(string(name))
	}
	return string(name)
}

// shortest returns the canonical form of an IPv6 address, "" if it is none.
func shortest(addr string) string {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return ""
	}
	return a.String()
}

// canonical converts a host to the form of patterns, except for an address in
// brackets, which may not be in its shortest form, or no address at all. name
// is empty if host is malformed. It is a slice of buf.
//
// RFC 9110 section 4.2.3: the host is compared without regard to case. With a
// final dot it is the same name in the DNS (RFC 1034 section 3.1).
func canonical[H string | []byte](buf *[maxName]byte, host H) (name []byte, addr bool) {
	if len(host) > 0 && host[0] == '[' {
		return literal(buf, host), true
	}
	end := len(host)
	for i := range len(host) {
		if host[i] == ':' {
			end = i
			break
		}
	}
	if !portOrEnd(host, end) {
		return nil, false
	}
	if end > 0 && host[end-1] == '.' {
		end--
	}
	if end > len(buf) {
		return nil, false
	}
	for i := range end {
		buf[i] = lower(host[i])
	}
	return buf[:end], false
}

// literal is canonical for an address in brackets (RFC 3986 section 3.2.2).
func literal[H string | []byte](buf *[maxName]byte, host H) []byte {
	colon := false
	for i := 1; i < min(len(host), len(buf)); i++ {
		c := lower(host[i])
		switch {
		case c == ']':
			if !colon || !portOrEnd(host, i+1) {
				return nil
			}
			return buf[:i-1]
		case c == ':':
			colon = true
		case c == '.', '0' <= c && c <= '9', 'a' <= c && c <= 'f':
		default: // including zones
			return nil
		}
		buf[i-1] = c
	}
	return nil
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// portOrEnd reports whether host ends at i, or has a colon and a port there. The
// port may be empty (RFC 3986 section 3.2.3).
func portOrEnd[H string | []byte](host H, i int) bool {
	if i == len(host) {
		return true
	}
	if i > len(host) || host[i] != ':' {
		return false
	}
	for i++; i < len(host); i++ {
		if host[i] < '0' || host[i] > '9' {
			return false
		}
	}
	return true
}

// Get returns the value of p, the zero value if there is none.
func (t *Table[T]) Get(p Pattern) (v T) {
	if p == "*" {
		if t.other != nil {
			v = *t.other
		}
		return v
	}
	if suffix, ok := strings.CutPrefix(string(p), "*."); ok {
		return t.below[suffix]
	}
	return t.exact[string(p)]
}
