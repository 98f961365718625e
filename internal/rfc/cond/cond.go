package cond

import (
	"net/http"
	"time"
	"unsafe"

	"github.com/chert-http/chert/direct/wire"
)

// A Result is what is to be done with a request.
type Result uint8

const (
	Proceed     Result = iota // answer as if there were no condition
	NotModified               // answer 304
	Failed                    // answer 412
)

// The fields, as net/http writes them.
const (
	ifMatch           = "If-Match"
	ifNoneMatch       = "If-None-Match"
	ifModifiedSince   = "If-Modified-Since"
	ifUnmodifiedSince = "If-Unmodified-Since"
	ifRange           = "If-Range"
)

// Check evaluates the preconditions of a request for something that exists, in
// the order of RFC 9110 section 13.2.2. etag is its entity tag, quoted, strong or
// with W/ before it, "" if there is none; modified, of which whole seconds
// count, is when it last changed, zero if unknown. The caller has found out that
// the answer without conditions would be 2xx (section 13.2.1).
//
// Several lines of If-Match and If-None-Match are one list; several of a date
// are no date and ignored. So is an empty field, as net/http does.
//
// Check does not allocate, but f.All may; that is asked only if there is a
// condition and one line of it does not settle it.
func Check(method string, f wire.Fields, etag string, modified time.Time) Result {
	switch method {
	case http.MethodConnect, http.MethodOptions, http.MethodTrace:
		// Section 13.2.1: a server MUST ignore conditions where the method does
		// not involve a selected representation.
		return Proceed
	}
	// Step 1, and only without If-Match step 2.
	if present, matched := tags(f, ifMatch, etag, strong); present {
		if !matched {
			return Failed
		}
	} else if t, ok := date(f, ifUnmodifiedSince, modified); ok && modified.Unix() > t {
		return Failed
	}
	// Step 3, and only without If-None-Match step 4.
	safe := method == http.MethodGet || method == http.MethodHead
	if present, matched := tags(f, ifNoneMatch, etag, weak); present {
		switch {
		case matched && safe:
			return NotModified
		case matched:
			return Failed
		}
	} else if safe {
		// Section 13.1.3: MUST be ignored for other methods.
		if t, ok := date(f, ifModifiedSince, modified); ok && modified.Unix() <= t {
			return NotModified
		}
	}
	return Proceed
}

// Named reports whether If-None-Match has etag letter by letter, so that a client
// which knows a strong tag is told from one that knows the weak tag beside it.
// "*" names none.
func Named(f wire.Fields, etag string) bool {
	_, named := tags(f, ifNoneMatch, etag, exact)
	if !named {
		return false
	}
	_, any := tags(f, ifNoneMatch, "", none)
	return !any
}

// RangeApplies evaluates If-Range (RFC 9110 section 13.1.5): whether Range is to
// be heeded. It is true if there is no If-Range. etag and modified are as for
// Check. What is malformed, or there twice, is false: the whole is always right.
//
// A date is a weaker promise than a tag: of a file that changed twice in the
// second of modified, it cannot tell which one the client has. Where that
// matters, pass a zero modified for files that changed only just now.
func RangeApplies(f wire.Fields, etag string, modified time.Time) bool {
	if f.Get(ifRange) == nil {
		return true
	}
	value, ok := single(f, ifRange)
	if !ok {
		return false
	}
	if tag, rest := scan(value); tag != nil {
		// Section 13.1.5: compared by the strong function, and no list.
		return len(rest) == 0 && strong(tag, etag)
	}
	if modified.IsZero() {
		return false
	}
	t, ok := parseDate(value)
	return ok && t == modified.Unix()
}

// date is the one date of the named field, in Unix seconds. ok is false if it is
// to be ignored: for want of a field or of a modification date, because it is
// malformed or because there are several (sections 13.1.3 and 13.1.4).
func date(f wire.Fields, name string, modified time.Time) (t int64, ok bool) {
	if modified.IsZero() || f.Get(name) == nil {
		return 0, false
	}
	value, ok := single(f, name)
	if !ok {
		return 0, false
	}
	return parseDate(value)
}

// maxDate is the length of the longest HTTP-date, in bytes.
const maxDate = len("Wednesday, 09-Nov-94 08:49:37 GMT")

// parseDate reads an HTTP-date in any of its three forms (section 5.6.7).
func parseDate(b []byte) (t int64, ok bool) {
	if len(b) == 0 || len(b) > maxDate {
		return 0, false
	}
	// A view instead of a copy: ParseTime keeps nothing of it, its errors neither.
	at, err := http.ParseTime(unsafe.String(&b[0], len(b)))
	return at.Unix(), err == nil
}
