package filename

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/chert-http/chert/internal/rfc/coding"
)

// A Pattern matches names: * and ? within a segment, ** for any segments, [a-z],
// {one,other}. One without a slash is for the last segment. Immutable.
type Pattern struct {
	text string
	base bool // it matches the last segment
}

// ParsePattern returns an error if s, of which a slash at the begin makes no difference, is
// empty or malformed.
func ParsePattern(s string) (Pattern, error) {
	p := Pattern{text: strings.TrimPrefix(s, "/"), base: !strings.Contains(s, "/")}
	if p.text == "" || !doublestar.ValidatePattern(p.text) {
		return Pattern{}, fmt.Errorf("%q is not a valid pattern", s)
	}
	return p, nil
}

// Match reports whether p is for a name.
func (p Pattern) Match(name string) bool {
	if p.base {
		name = path.Base(name)
	}
	// The pattern is valid, so there is no error.
	ok, _ := doublestar.Match(p.text, name)
	return ok
}

// A Set is a set of patterns that match names in any case of letters, compressed forms of
// those, and all that is below a folder that they match. Immutable; the zero Set is empty.
type Set struct {
	segments []string // that match one segment of a path
	paths    []string // that match a path, and everything below it
}

// NewSet returns an error if one of the patterns is malformed, or would be all files.
func NewSet(patterns []string) (s Set, err error) {
	for _, text := range patterns {
		p, err := ParsePattern(text)
		if err != nil {
			return s, err
		}
		to := &s.paths
		// "private/" and "private/**" are the folder and what is in it.
		path := strings.TrimSuffix(strings.TrimSuffix(p.text, "/**"), "/")
		if p.base {
			to = &s.segments
		} else {
			path += "/**"
		}
		if !doublestar.ValidatePattern(path) || path == "" || path == "/**" {
			return s, fmt.Errorf("%q is not a valid pattern", text)
		}
		// In small letters too: a file system may not distinguish them. Not only so, since
		// [^A-Z] then would be another set.
		*to = append(*to, path)
		if small := strings.ToLower(path); small != path {
			*to = append(*to, small)
		}
	}
	return s, nil
}

// Empty reports whether s has no patterns.
func (s *Set) Empty() bool { return len(s.segments)+len(s.paths) == 0 }

// Has reports whether a pattern matches a name, or a folder that it is in.
func (s *Set) Has(name string) bool {
	if s.Empty() {
		return false
	}
	small := strings.ToLower(name)
	return s.has(name) || small != name && s.has(small)
}

// has is Has for letters as they are. FILE.gz has what FILE has.
func (s *Set) has(name string) bool {
	return s.match(name) || slices.ContainsFunc(coding.OfFiles, func(c coding.Coding) bool {
		plain, ok := strings.CutSuffix(name, c.Suffix())
		return ok && s.match(plain)
	})
}

// Dotfile reports whether a name, or a folder that it is in, begins with a dot.
func Dotfile(name string) bool {
	// RFC 8615 section 3: its contents are meant to be found.
	if name == ".well-known" {
		return false
	}
	name = strings.TrimPrefix(name, ".well-known/")
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// match takes time linear in name for the patterns of segments, which is why they are not
// paths with ** at both ends.
func (s *Set) match(name string) bool {
	if len(s.segments) > 0 {
		for segment := range strings.SplitSeq(name, "/") {
			if matches(s.segments, segment) {
				return true
			}
		}
	}
	return matches(s.paths, name)
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		// The pattern is valid, so there is no error.
		if ok, _ := doublestar.Match(p, name); ok {
			return true
		}
	}
	return false
}
