package ranges

import "math"

// A Range is a part of a content: Length bytes, at least one, from the offset
// Start on. It lies within the content that it was made for.
type Range struct{ Start, Length int64 }

// An Outcome is what a Range field asks for.
type Outcome uint8

const (
	Whole         Outcome = iota // no range that is heeded: send all, 200
	Parts                        // send the ranges, 206
	Unsatisfiable                // no range lies within: 416
)

const (
	// maxRanges is how many ranges one field may ask for. PDF readers and media
	// players ask for some ten at most.
	maxRanges = 64
	// maxValue is the longest field looked at, in bytes: maxRanges of the
	// largest numbers, with white space.
	maxValue = 4 << 10
)

// Parse reads the value of a Range field for a content of size bytes and appends
// its ranges to dst. Those that cannot be satisfied are left out, those that
// overlap or touch are made one (RFC 9110 section 15.3.7.2), at the place of
// the first; else they are in the order asked for (same section). Ranges that
// were in dst before stay as they are. It does not allocate if dst has room.
//
// The outcome is Whole, and dst as it was, for everything that a server may
// ignore: no value, a unit other than bytes, a malformed value, empty or unknown
// (negative) size, and what section 14.2 tells to look out for: more than 64
// ranges, or together more bytes than there are, counted before they are made
// one.
func Parse(dst []Range, value []byte, size int64) ([]Range, Outcome) {
	set, ok := cutUnit(value)
	// Of an empty content there is no range; 200 instead of 416 is for clients
	// that put a Range on everything to bound an answer's length.
	if !ok || size <= 0 || len(value) > maxValue {
		return dst, Whole
	}
	base := len(dst)
	count, total := 0, int64(0)
	for len(set) > 0 {
		var spec []byte
		spec, set = cutElement(set)
		if len(spec) == 0 {
			continue // empty elements of a list are ignored (section 5.6.1.2)
		}
		r, valid := parseSpec(spec, size)
		if count++; !valid || count > maxRanges || r.Length > size-total {
			return dst[:base], Whole
		}
		total += r.Length
		if r.Length > 0 {
			dst = insert(dst, base, r)
		}
	}
	switch {
	case len(dst) > base:
		return dst, Parts
	case count > 0:
		return dst, Unsatisfiable
	}
	return dst, Whole
}

// cutUnit takes "bytes=", in any case (section 14.1), off the front.
func cutUnit(b []byte) (rest []byte, ok bool) {
	const unit = "bytes="
	if len(b) < len(unit) {
		return nil, false
	}
	for i := range len(unit) {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != unit[i] {
			return nil, false
		}
	}
	return b[len(unit):], true
}

// cutElement takes an element off the front of a list, without white space.
func cutElement(b []byte) (element, rest []byte) {
	element = b
	for i, c := range b {
		if c == ',' {
			element, rest = b[:i], b[i+1:]
			break
		}
	}
	for len(element) > 0 && blank(element[0]) {
		element = element[1:]
	}
	for len(element) > 0 && blank(element[len(element)-1]) {
		element = element[:len(element)-1]
	}
	return element, rest
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// parseSpec reads one range (section 14.1.1). Length is 0 if it is valid but
// lies beyond the content.
//
//	int-range    = first-pos "-" [ last-pos ]
//	suffix-range = "-" suffix-length
func parseSpec(b []byte, size int64) (r Range, valid bool) {
	first, b, hasFirst := number(b)
	if len(b) == 0 || b[0] != '-' {
		return r, false
	}
	last, b, hasLast := number(b[1:])
	switch {
	case len(b) > 0:
		return r, false
	case !hasFirst:
		// If there is less than the suffix, all of it is the suffix.
		n := min(last, size)
		return Range{size - n, n}, hasLast
	case hasLast && last < first:
		// An int-range whose last-pos is less than its first-pos is invalid.
		return r, false
	case first >= size:
		return r, true
	case !hasLast || last >= size:
		last = size - 1
	}
	return Range{first, last - first + 1}, true
}

// number takes digits off the front of b. A number that is too large becomes the
// largest there is, which is beyond any content (section 14.1.1: recipients
// MUST anticipate large numbers).
func number(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		d := int64(b[i] - '0')
		if n > (math.MaxInt64-d)/10 {
			n = math.MaxInt64
			continue // further digits keep it there
		}
		n = n*10 + d
	}
	return n, b[i:], i > 0
}

// insert adds r to dst[base:], whose ranges neither overlap nor touch, and keeps
// it so. The first of those that become one keeps its place.
func insert(dst []Range, base int, r Range) []Range {
	place := -1
	kept := base
	for _, have := range dst[base:] {
		// Those that r does not touch now it may touch later, when it has grown:
		// but what it grows by touches none of the others.
		if have.Start <= r.Start+r.Length && r.Start <= have.Start+have.Length {
			end := max(have.Start+have.Length, r.Start+r.Length)
			r.Start = min(have.Start, r.Start)
			r.Length = end - r.Start
			if place < 0 {
				place = kept
				kept++ // a hole, filled below
			}
			continue
		}
		dst[kept] = have
		kept++
	}
	if place < 0 {
		return append(dst, r)
	}
	dst[place] = r
	return dst[:kept]
}
