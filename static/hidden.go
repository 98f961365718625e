package static

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/chert-http/chert/internal/rfc/coding"
)

// This file decides which names are not served.

// CheckHidden returns an error if New would not accept a pattern of Options.Hidden.
func CheckHidden(pattern string) error {
	r := Rule{Match: pattern}
	return r.Check()
}

// Hides reports whether a file, by its path in the folder, is hidden by Hidden. The
// patterns must be valid.
func (o *Options) Hides(name string) bool {
	h, err := newHiding(o.Hidden)
	return err == nil && h.has(name)
}

// hiding are the patterns of Options.Hidden. Immutable.
type hiding struct {
	segments []string // that match one segment of a path
	paths    []string // that match a path, and everything below it
}

func newHiding(patterns []string) (h hiding, err error) {
	for _, p := range patterns {
		if err := CheckHidden(p); err != nil {
			return h, err
		}
		r := newRule(&Rule{Match: p})
		to := &h.paths
		// "private/" and "private/**" are the folder and what is in it.
		text := strings.TrimSuffix(strings.TrimSuffix(r.pattern, "/**"), "/")
		if r.base {
			to = &h.segments
		} else {
			text += "/**"
		}
		if !doublestar.ValidatePattern(text) || text == "" || text == "/**" {
			return h, fmt.Errorf("%q is not a valid pattern", p)
		}
		// In small letters too: a file system may not distinguish them. Not only so, since
		// [^A-Z] then would be another set.
		*to = append(*to, text)
		if small := strings.ToLower(text); small != text {
			*to = append(*to, small)
		}
	}
	return h, nil
}

// any reports whether there are patterns.
func (h *hiding) any() bool { return len(h.segments)+len(h.paths) > 0 }

// has reports whether a name, or a folder that it is in, is hidden.
func (h *hiding) has(name string) bool {
	if !h.any() {
		return false
	}
	small := strings.ToLower(name)
	return h.match(name) || small != name && h.match(small)
}

// match takes time linear in name for the patterns of segments, which is why they are not
// paths with ** at both ends.
func (h *hiding) match(name string) bool {
	if len(h.segments) > 0 {
		for segment := range strings.SplitSeq(name, "/") {
			if matches(h.segments, segment) {
				return true
			}
		}
	}
	return matches(h.paths, name)
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

// hidden reports whether name is not served: a dotfile, or a name in Options.Hidden, also
// without the suffix of a coding, since FILE.gz has what FILE has. What is Guarded itself
// is not hidden, but other names of it are.
func (c *config) hidden(name string) bool {
	if c.dotfile(name) || c.hiding.has(name) || c.Guarded != nil && c.guardedForm(name) {
		return true
	}
	if !c.hiding.any() {
		return false
	}
	for _, coded := range prefer {
		if plain, ok := strings.CutSuffix(name, coded.Suffix()); ok && c.hiding.has(plain) {
			return true
		}
	}
	return false
}

// guarded reports whether Options.Guarded has name.
func (c *config) guarded(name string) bool { return c.Guarded != nil && c.Guarded(name) }

// guardedForm reports whether name is a compressed form of a file that is guarded, or an
// index of a folder whose page is. There must be Options.Guarded.
func (c *config) guardedForm(name string) bool {
	for _, coded := range prefer {
		if plain, ok := strings.CutSuffix(name, coded.Suffix()); ok && (c.Guarded(plain) || c.guardedForm(plain)) {
			return true
		}
	}
	end := strings.LastIndexByte(name, '/') + 1
	if !slices.Contains(c.Index, name[end:]) {
		return false
	}
	if end == 0 {
		return c.Guarded("/")
	}
	return c.Guarded(name[:end])
}

// hasSibling reports whether name may be sent in a coding from a file beside it.
func (c *config) hasSibling(name string, in coding.Coding) bool {
	coded := name + in.Suffix()
	return !c.hiding.has(coded) && !c.guarded(coded)
}
