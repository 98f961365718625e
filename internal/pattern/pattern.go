package pattern

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// A Pattern is "[METHOD ][HOST]/PATH", parsed. It is immutable.
type Pattern struct {
	Text     string
	Method   string // "" is any
	Host     string // "" is any
	Segments []Segment
}

// Kind is what a segment matches.
type Kind uint8

const (
	Literal Kind = iota // itself
	End                 // the end of a path after a slash: {$}
	Single              // any one segment: {name}
	Multi               // the rest: {name...}, or a slash at the end
)

// A Segment is the part between two slashes of a pattern.
type Segment struct {
	Kind Kind
	Text string // of a literal, decoded; the name of a wildcard, "" if it has none
}

// Last returns the last segment.
func (p *Pattern) Last() Segment { return p.Segments[len(p.Segments)-1] }

// Wildcards returns the names of p's wildcards in their order, and whether the last of
// them matches the rest of the path, as {name...} does.
func (p *Pattern) Wildcards() (names []string, rest bool) {
	for _, s := range p.Segments {
		if (s.Kind == Single || s.Kind == Multi) && s.Text != "" {
			names = append(names, s.Text)
			rest = s.Kind == Multi
		}
	}
	return names, rest
}

// Parse reads a pattern.
func Parse(s string) (*Pattern, error) {
	p := &Pattern{Text: s}
	rest := s
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		p.Method, rest = s[:i], strings.TrimLeft(s[i+1:], " \t")
		if err := checkMethod(p.Method); err != nil {
			return nil, err
		}
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return nil, fmt.Errorf("host or path without a slash; write %q for a path", "/"+rest)
	}
	p.Host, rest = rest[:slash], rest[slash:]
	if err := checkSegments(rest); err != nil {
		return nil, err
	}
	if strings.Contains(p.Host, "{") {
		return nil, errors.New("the host has a '{'; is a slash missing before it?")
	}
	if p.Method != http.MethodConnect && rest != CleanPath(rest) {
		return nil, errors.New("an unclean path never matches: paths are cleaned first")
	}
	return p, p.parsePath(rest)
}

func (p *Pattern) parsePath(rest string) error {
	names := map[string]bool{}
	for rest != "" {
		text, more, found := strings.Cut(rest[1:], "/")
		rest = rest[1+len(text):]
		if text == "" && !found {
			p.Segments = append(p.Segments, Segment{Kind: Multi})
			return nil
		}
		seg, err := parseSegment(text)
		if err != nil {
			return err
		}
		if found && (seg.Kind == Multi || seg.Kind == End && text == "{$}") {
			return fmt.Errorf("%s is not at the end but before %q", text, "/"+more)
		}
		if seg.Kind == End && found {
			seg.Kind, seg.Text = Literal, "/" // %2F in the middle
		}
		if seg.Kind == Single || seg.Kind == Multi {
			if names[seg.Text] {
				return fmt.Errorf("the wildcard name %q is there twice", seg.Text)
			}
			names[seg.Text] = true
		}
		p.Segments = append(p.Segments, seg)
	}
	return nil
}

func parseSegment(text string) (Segment, error) {
	brace := strings.IndexByte(text, '{')
	switch {
	case brace < 0:
		if s, err := url.PathUnescape(text); err == nil {
			text = s
		}
		if text == "/" {
			return Segment{Kind: End}, nil // ServeMux treats %2F as {$}
		}
		return Segment{Kind: Literal, Text: text}, nil
	case brace > 0:
		return Segment{}, fmt.Errorf("the segment %q does not begin with its wildcard", text)
	case text[len(text)-1] != '}':
		return Segment{}, fmt.Errorf("the segment %q does not end with its wildcard", text)
	case text == "{$}":
		return Segment{Kind: End}, nil
	}
	name, rest := strings.CutSuffix(text[1:len(text)-1], "...")
	if !validName(name) {
		if before, _, ok := strings.Cut(name, ":"); ok && validName(before) {
			return Segment{}, fmt.Errorf("wildcards have no expressions: write {%s} and check the value in the handler",
				before)
		}
		return Segment{}, fmt.Errorf("bad wildcard name %q", name)
	}
	if rest {
		return Segment{Kind: Multi, Text: name}, nil
	}
	return Segment{Kind: Single, Text: name}, nil
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
