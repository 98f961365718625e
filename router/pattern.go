package router

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode"
)

// A pattern is "[METHOD ][HOST]/PATH", parsed.
type pattern struct {
	text     string
	method   string // "" is any
	host     string // "" is any
	segments []segment
	at       string // where it was registered
}

// kind is what a segment matches.
type kind uint8

const (
	literal kind = iota // itself
	end                 // the end of a path after a slash: {$}
	single              // any one segment: {name}
	multi               // the rest: {name...}, or a slash at the end
)

// A segment is the part between two slashes of a pattern.
type segment struct {
	kind kind
	text string // of a literal, decoded; the name of a wildcard, "" if it has none
}

func (p *pattern) last() segment { return p.segments[len(p.segments)-1] }

// parse reads a pattern.
func parse(s string) (*pattern, error) {
	p := &pattern{text: s}
	rest := s
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		p.method, rest = s[:i], strings.TrimLeft(s[i+1:], " \t")
		if err := checkMethod(p.method); err != nil {
			return nil, err
		}
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return nil, fmt.Errorf("host or path without a slash; write %q for a path", "/"+rest)
	}
	p.host, rest = rest[:slash], rest[slash:]
	if err := checkSegments(rest); err != nil {
		return nil, err
	}
	if strings.Contains(p.host, "{") {
		return nil, errors.New("the host has a '{'; is a slash missing before it?")
	}
	if p.method != http.MethodConnect && rest != cleanPath(rest) {
		return nil, errors.New("an unclean path never matches: paths are cleaned first")
	}
	return p, p.parsePath(rest)
}

func (p *pattern) parsePath(rest string) error {
	names := map[string]bool{}
	for rest != "" {
		text, more, found := strings.Cut(rest[1:], "/")
		rest = rest[1+len(text):]
		if text == "" && !found {
			p.segments = append(p.segments, segment{kind: multi})
			return nil
		}
		seg, err := parseSegment(text)
		if err != nil {
			return err
		}
		if found && (seg.kind == multi || seg.kind == end && text == "{$}") {
			return fmt.Errorf("%s is not at the end but before %q", text, "/"+more)
		}
		if seg.kind == end && found {
			seg.kind, seg.text = literal, "/" // %2F in the middle
		}
		if seg.kind == single || seg.kind == multi {
			if names[seg.text] {
				return fmt.Errorf("the wildcard name %q is there twice", seg.text)
			}
			names[seg.text] = true
		}
		p.segments = append(p.segments, seg)
	}
	return nil
}

func parseSegment(text string) (segment, error) {
	brace := strings.IndexByte(text, '{')
	switch {
	case brace < 0:
		if s, err := url.PathUnescape(text); err == nil {
			text = s
		}
		if text == "/" {
			return segment{kind: end}, nil // ServeMux treats %2F as {$}
		}
		return segment{kind: literal, text: text}, nil
	case brace > 0:
		return segment{}, fmt.Errorf("the segment %q does not begin with its wildcard", text)
	case text[len(text)-1] != '}':
		return segment{}, fmt.Errorf("the segment %q does not end with its wildcard", text)
	case text == "{$}":
		return segment{kind: end}, nil
	}
	name, rest := strings.CutSuffix(text[1:len(text)-1], "...")
	if !validName(name) {
		if before, _, ok := strings.Cut(name, ":"); ok && validName(before) {
			return segment{}, fmt.Errorf("wildcards have no expressions: write {%s} and check the value in the handler",
				before)
		}
		return segment{}, fmt.Errorf("bad wildcard name %q", name)
	}
	if rest {
		return segment{kind: multi, text: name}, nil
	}
	return segment{kind: single, text: name}, nil
}

// validName reports whether s is a Go identifier.
func validName(s string) bool {
	for i, c := range s {
		if !unicode.IsLetter(c) && c != '_' && (i == 0 || !unicode.IsDigit(c)) {
			return false
		}
	}
	return s != ""
}

// validMethod reports whether s is a token (RFC 9110 section 9.1).
func validMethod(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && !('0' <= c && c <= '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// cleanPath is p in canonical form: it begins with a slash, has no empty, "." or
// ".." segments, and ends in a slash if p does.
func cleanPath(p string) string {
	if isClean(p) {
		return p
	}
	c := path.Clean("/" + p)
	if c != "/" && strings.HasSuffix(p, "/") {
		c += "/"
	}
	return c
}

// isClean reports whether cleanPath leaves p as it is.
func isClean(p string) bool {
	return p != "" && p[0] == '/' && cleanRest(p[1:])
}

// cleanRest reports whether the rest of a path, from the beginning of a segment,
// is clean.
func cleanRest(s string) bool {
	for s != "" {
		n := segmentEnd(s)
		if dots(s[:n]) {
			return false
		}
		if n == len(s) {
			return true
		}
		s = s[n+1:]
	}
	return true
}

// dots reports whether a segment makes its path unclean, unless it is the empty
// one at the end.
func dots(seg string) bool {
	return len(seg) == 0 || seg[0] == '.' && (len(seg) == 1 || len(seg) == 2 && seg[1] == '.')
}

// segmentEnd is the length of the segment that s begins with.
func segmentEnd(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '/' {
			return i
		}
	}
	return len(s)
}
