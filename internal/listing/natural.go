package listing

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// compareNames compares names in natural order: without regard to case, and
// with runs of digits compared as numbers, so that "a9" comes before "A10".
// Names that are equal so ("a1", "A01") are compared byte by byte.
//
// A name is treated as a sequence of tokens, each a number or one folded
// character, and sequences are compared token by token; hence the order is
// total. A number compares to a character as its first digit would.
func compareNames(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if isDigit(a[i]) && isDigit(b[j]) {
			x, y := digits(a[i:]), digits(b[j:])
			i, j = i+len(x), j+len(y)
			if c := compareNumbers(x, y); c != 0 {
				return c
			}
			continue
		}
		x, n := folded(a[i:])
		y, m := folded(b[j:])
		if x != y {
			return cmp.Compare(x, y)
		}
		i, j = i+n, j+m
	}
	if i < len(a) || j < len(b) {
		return cmp.Compare(len(a)-i, len(b)-j)
	}
	return strings.Compare(a, b)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits returns the run of digits that s begins with.
func digits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}

// compareNumbers works on the digits, which may be more than any integer holds.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return strings.Compare(a, b)
}

// folded returns the first character of s in lower case, and its length. A byte
// that is not UTF-8 is a character of its own, after all others.
func folded(s string) (rune, int) {
	if c := s[0]; c < utf8.RuneSelf {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		return rune(c), 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return unicode.MaxRune + 1 + rune(s[0]), 1
	}
	return unicode.ToLower(unicode.ToUpper(r)), n
}
