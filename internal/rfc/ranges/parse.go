package ranges

import "math"

// A Range is a part of content: Length bytes, at least one, from the offset
// Start. It lies within the content that it was made for.
type Range struct{ Start, Length int64 }

// An Outcome is how to respond to a Range field.
type Outcome uint8

const (
	Whole         Outcome = iota // no applicable range: send all, 200
	Parts                        // send the ranges, 206
	Unsatisfiable                // no range lies within: 416
)

const (
	// maxRanges is how many ranges one field may have. PDF readers and media
	// players request about ten at most.
	maxRanges = 64
	// maxValue is the longest field that is parsed, in bytes: maxRanges of the
	// largest numbers, with white space.
	maxValue = 4 << 10
)

// Parse parses the value of a Range field for content of size bytes and appends
// its ranges to dst. Unsatisfiable ranges are omitted, those that overlap or
// touch are merged (RFC 9110 section 15.3.7.2), at the position of the first;
// otherwise they keep the requested order (same section). Ranges already in dst
// are unchanged. It does not allocate if dst has room.
//
// The outcome is Whole, and dst as it was, for everything that a server may
// ignore: no value, a unit other than bytes, a malformed value, empty or unknown
// (negative) size, and what section 14.2 warns of: more than 64 ranges, or more
// bytes in total than the content has, counted before merging.
func Parse(dst []Range, value []byte, size int64) ([]Range, Outcome) {
	set, ok := cutUnit(value)
	// Empty content has no ranges; 200 instead of 416 is for clients that send
	// Range with every request to bound the response.
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

// cutUnit cuts "bytes=", in any case (section 14.1), from the front.
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

// cutElement cuts an element from the front of a list, without white space.
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
		// If the content is shorter than the suffix, the range is all of it.
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

// number cuts digits from the front of b. A number that is too large becomes the
// largest int64, which is beyond any content (section 14.1.1: recipients MUST
// anticipate large numbers).
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

// insert adds r to dst[base:], whose ranges neither overlap nor touch, and
// preserves that. Merged ranges take the position of the first.
func insert(dst []Range, base int, r Range) []Range {
	place := -1
	kept := base
	for _, have := range dst[base:] {
		// When r grows it may touch ranges that it does not touch now; but the
		// range that it grows by touches none of the others.
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
