package cond

import (
	"net/http"
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/view"
)

// A Result is the outcome of a request's preconditions.
type Result uint8

const (
	Proceed     Result = iota // respond as if there were no condition
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
// count, is when it last changed, zero if unknown. The caller has determined that
// the response without conditions would be 2xx (section 13.2.1).
//
// Several lines of If-Match and If-None-Match are one list; several lines of a
// date are ignored, and so is an empty field, as in net/http.
//
// Check does not allocate, but f.All may; it is called only if there is a
// condition that its first line does not decide.
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

// Named reports whether If-None-Match has etag byte for byte, to distinguish a
// client that has a strong tag from one that has the corresponding weak tag. "*"
// names none.
func Named(f wire.Fields, etag string) bool {
	_, named := tags(f, ifNoneMatch, etag, exact)
	if !named {
		return false
	}
	_, any := tags(f, ifNoneMatch, "", none)
	return !any
}

// RangeApplies evaluates If-Range (RFC 9110 section 13.1.5): whether Range
// applies. It is true if there is no If-Range. etag and modified are as for
// Check. It is false for a malformed or repeated field: the whole content is
// always correct.
//
// A date is a weaker validator than a tag: if a file changed twice in the
// second of modified, the date does not identify the client's version. Where
// that matters, pass a zero modified for files that changed only just now.
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

// date returns the date of the named field, in Unix seconds. ok is false if it
// is to be ignored: because the field or the modification date is missing,
// because it is malformed or because there are several (sections 13.1.3 and
// 13.1.4).
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
	// A view instead of a copy: neither ParseTime nor its errors retain it.
	at, err := http.ParseTime(view.String(b))
	return at.Unix(), err == nil
}
