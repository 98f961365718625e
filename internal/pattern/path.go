package pattern

import (
	"path"
	"strings"
)

// CleanPath is p in canonical form: it begins with a slash, has no empty, "." or
// ".." segments, and ends in a slash if p does.
func CleanPath(p string) string {
	if IsClean(p) {
		return p
	}
	c := path.Clean("/" + p)
	if c != "/" && strings.HasSuffix(p, "/") {
		c += "/"
	}
	return c
}

// IsClean reports whether CleanPath leaves p as it is.
func IsClean(p string) bool {
	return p != "" && p[0] == '/' && CleanRest(p[1:])
}

// CleanRest reports whether the rest of a path, from the beginning of a segment,
// is clean.
func CleanRest(s string) bool {
	for s != "" {
		n := SegmentEnd(s)
		if Dots(s[:n]) {
			return false
		}
		if n == len(s) {
			return true
		}
		s = s[n+1:]
	}
	return true
}

// Dots reports whether a segment makes its path unclean, unless it is the empty
// one at the end.
func Dots(seg string) bool {
	return len(seg) == 0 || seg[0] == '.' && (len(seg) == 1 || len(seg) == 2 && seg[1] == '.')
}

// SegmentEnd is the length of the segment that s begins with.
func SegmentEnd(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '/' {
			return i
		}
	}
	return len(s)
}
