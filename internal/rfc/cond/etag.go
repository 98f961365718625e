package cond

import (
	"github.com/chert-http/chert/direct/wire"
)

// A comparison is one of the two of RFC 9110 section 8.8.3.2. tag is the
// client's, etag the current one, "" if there is none.
type comparison func(tag []byte, etag string) bool

// strong: equal, and neither is weak.
func strong(tag []byte, etag string) bool {
	return string(tag) == etag && tag[0] == '"'
}

// weak: equal but for W/.
func weak(tag []byte, etag string) bool {
	if len(etag) > 2 && etag[0] == 'W' {
		etag = etag[2:]
	}
	if tag[0] == 'W' {
		tag = tag[2:]
	}
	return string(tag) == etag
}

// exact: equal, and of the same strength.
func exact(tag []byte, etag string) bool { return string(tag) == etag }

// none: never, so that only "*" matches.
func none([]byte, string) bool { return false }

// tags reports whether there is a field of that name, other than an empty one,
// and whether one of its members matches.
func tags(f wire.Fields, name, etag string, equal comparison) (present, matched bool) {
	first := f.Get(name)
	if first == nil {
		return false, false
	}
	// The usual way to a 304: the first line matches. If not, others may, since
	// several lines are one list (RFC 9110 section 5.3).
	if list(first, etag, equal) {
		return true, true
	}
	return lines(f, name, etag, equal)
}

// list reports whether a line of "*" or of entity tags has one that matches.
//
//	If-None-Match = "*" / #entity-tag
//
// It accepts the same as net/http: a comma may be missing, "*" may appear among
// tags, and a malformed member ends the list.
func list(b []byte, etag string, equal comparison) bool {
	for len(b) > 0 {
		switch b[0] {
		case ' ', '\t', ',':
			b = b[1:]
			continue
		case '*':
			// Anything that exists matches.
			return true
		}
		tag, rest := scan(b)
		if tag == nil {
			return false
		}
		if equal(tag, etag) {
			return true
		}
		b = rest
	}
	return false
}

// scan cuts an entity tag, with its quotes and its W/, from the front of b. tag
// is nil if there is none.
//
//	entity-tag = [ %s"W/" ] opaque-tag
//	opaque-tag = DQUOTE *etagc DQUOTE
//	etagc      = %x21 / %x23-7E / obs-text
func scan(b []byte) (tag, rest []byte) {
	i := 0
	if len(b) > 2 && b[0] == 'W' && b[1] == '/' {
		i = 2
	}
	if i >= len(b) || b[i] != '"' {
		return nil, nil
	}
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return b[:i+1], b[i+1:]
		case c <= ' ' || c == 0x7f:
			return nil, nil
		}
	}
	return nil, nil
}
