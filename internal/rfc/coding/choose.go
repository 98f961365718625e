package coding

import (
	"bytes"

	"github.com/chert-http/chert/internal/rfc/field"
)

// ows is optional whitespace (RFC 9110 section 5.6.3).
const ows = " \t"

// qUnset is the quality of codings that Accept-Encoding does not mention.
const qUnset = -1

// Choose selects, from offered and Identity, the coding that the client
// prefers: by quality value, ties by their order in prefer. Codings not in
// prefer follow in the order of the constants, and Identity last.
//
// accept is the value of Accept-Encoding, nil if there is none. Without one any
// coding would be acceptable (RFC 9110 section 12.5.3), but a client that does
// not send the field mostly supports none, so it gets Identity. ok is false,
// and c Identity, if nothing is acceptable, as with "identity;q=0".
//
// A malformed element is ignored. If a coding is mentioned twice, as gzip is by
// "x-gzip", the highest quality counts.
func Choose(accept []byte, offered Set, prefer []Coding) (c Coding, ok bool) {
	if len(accept) == 0 {
		return Identity, true
	}
	quality := qualities(accept)
	best := 0
	better := func(next Coding) {
		// Strictly better only, so that the first of equals wins.
		if q := quality[next]; q > best {
			c, best = next, q
		}
	}
	offered = offered.With(Identity)
	for _, p := range prefer {
		if offered.Has(p) {
			better(p)
		}
	}
	for n := Identity + 1; n < codings; n++ {
		if offered.Has(n) {
			better(n)
		}
	}
	better(Identity)
	return c, best > 0
}

// qualities parses the field into the quality of each coding, in millionths. A
// client can only send thousandths, so there is room below the least of them.
func qualities(accept []byte) (quality [codings]int) {
	for i := range quality {
		quality[i] = qUnset
	}
	star := qUnset
	for len(accept) > 0 {
		var element []byte
		element, accept, _ = bytes.Cut(accept, []byte(","))
		name, weight, weighed := bytes.Cut(element, []byte(";"))
		q, ok := parseWeight(weight, weighed)
		if !ok {
			continue
		}
		name = bytes.Trim(name, ows)
		if len(name) == 1 && name[0] == '*' {
			star = max(star, q)
		} else if c, ok := lookup(name); ok {
			quality[c] = max(quality[c], q)
		}
	}
	for c := range quality {
		if quality[c] != qUnset {
			continue
		}
		switch {
		case star != qUnset:
			// "*" matches any coding not listed, identity too.
			quality[c] = star
		case c == int(Identity):
			// Acceptable unless excluded by "identity;q=0" or "*;q=0", but any
			// coding that the client lists, with any weight, is preferred.
			quality[c] = 1
		default:
			quality[c] = 0
		}
	}
	return quality
}

// lookup returns the coding of a token, in any case (RFC 9110 section 8.4.1).
func lookup(name []byte) (Coding, bool) {
	switch {
	case field.EqualFold(name, "gzip"), field.EqualFold(name, "x-gzip"): // section 8.4.1.3
		return Gzip, true
	case field.EqualFold(name, "br"):
		return Brotli, true
	case field.EqualFold(name, "zstd"):
		return Zstd, true
	case field.EqualFold(name, "identity"):
		return Identity, true
	}
	return 0, false
}

// parseWeight parses what follows the semicolon of an element, if there is one,
// in millionths (RFC 9110 section 12.4.2):
//
//	weight = OWS ";" OWS "q=" qvalue
//	qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] )
func parseWeight(b []byte, present bool) (q int, ok bool) {
	const one = 1_000_000
	if !present {
		return one, true
	}
	b = bytes.Trim(b, ows)
	if len(b) < 3 || b[0]|0x20 != 'q' || b[1] != '=' || b[2] != '0' && b[2] != '1' {
		return 0, false
	}
	q = int(b[2]-'0') * one
	b = b[3:]
	if len(b) == 0 {
		return q, true
	}
	if b[0] != '.' || len(b) > 4 {
		return 0, false
	}
	unit := one
	for _, d := range b[1:] {
		if d < '0' || d > '9' {
			return 0, false
		}
		unit /= 10
		q += int(d-'0') * unit
	}
	return q, q <= one
}
