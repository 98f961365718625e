package adapt

import (
	"fmt"
	"strings"
)

// maxDepth bounds how deep blocks may be in one another.
const maxDepth = 32

// A directive is a line of a configuration: its words, and what is in its braces.
type directive struct {
	words []string
	block []directive
	line  int
	lost  bool // it is for a file that was not read
}

func (d *directive) name() string { return d.words[0] }

// arg returns a word after the name, "" if there is none.
func (d *directive) arg(i int) string {
	if i+1 < len(d.words) {
		return d.words[i+1]
	}
	return ""
}

// A scanner reads words. In nginx's files a directive ends with a semicolon, in Caddy's with
// the line.
type scanner struct {
	text  string
	at    int
	line  int
	lines bool // the end of a line is a token, a semicolon is not
}

type tokenKind uint8

const (
	word tokenKind = iota
	end            // of a directive
	open
	closed
	eof
)

// next returns the next token. text is that of a word.
func (s *scanner) next() (kind tokenKind, text string, err error) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.at++
			s.line++
			if s.lines {
				return end, "", nil
			}
		case c == ' ' || c == '\t' || c == '\r':
			s.at++
		case s.continued() > 0:
			s.at += s.continued()
			s.line++
		case c == '#':
			for s.at < len(s.text) && s.text[s.at] != '\n' {
				s.at++
			}
		case c == ';' && !s.lines:
			s.at++
			return end, "", nil
		case c == '{' && s.alone():
			s.at++
			return open, "", nil
		case c == '}':
			s.at++
			return closed, "", nil
		case c == '"' || c == '\'' && !s.lines || c == '`' && s.lines:
			text, err = s.quoted(c)
			return word, text, err
		default:
			return word, s.plain(), nil
		}
	}
	return eof, "", nil
}

// continued returns how long the text at hand is, if it is a backslash that takes a line of Caddy's to the next one.
func (s *scanner) continued() int {
	rest, ok := strings.CutPrefix(s.text[s.at:], `\`)
	if trimmed := strings.TrimPrefix(rest, "\r"); ok && s.lines && strings.HasPrefix(trimmed, "\n") {
		return 2 + len(rest) - len(trimmed)
	}
	return 0
}

// alone reports whether the brace at hand opens a block: in Caddy's files placeholders begin with
// one too.
func (s *scanner) alone() bool {
	rest := s.text[s.at+1:]
	return !s.lines || rest == "" || strings.ContainsRune(" \t\r\n#", rune(rest[0]))
}

func (s *scanner) quoted(quote byte) (string, error) {
	begun := s.line
	var b strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == quote:
			s.at++
			return b.String(), nil
		case c == '\\' && quote != '`' && s.at+1 < len(s.text) && strings.IndexByte(`"'\`, s.text[s.at+1]) >= 0:
			s.at++
			c = s.text[s.at]
		case c == '\\' && !s.lines && s.at+1 < len(s.text) && strings.IndexByte("nrt", s.text[s.at+1]) >= 0:
			s.at++
			c = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t'}[s.text[s.at]]
		case c == '\n':
			s.line++
		}
		b.WriteByte(c)
	}
	return "", Note{Line: begun, Text: "a quotation has no end"}
}

// plain reads a word without quotes. A brace after a dollar sign is nginx's variable, and one
// within a word of Caddy's a placeholder.
func (s *scanner) plain() string {
	begun := s.at
	for depth := 0; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case '\\':
			if s.continued() > 0 {
				return s.text[begun:s.at]
			}
			if s.at+1 < len(s.text) && s.text[s.at+1] != '\n' {
				s.at++
			}
		case '{':
			if !s.lines && (s.at == begun || s.text[s.at-1] != '$') && !digits(s.text[s.at+1:]) {
				return s.text[begun:s.at]
			}
			depth++
		case '}':
			if depth == 0 {
				return s.text[begun:s.at]
			}
			depth--
		case ';':
			if !s.lines {
				return s.text[begun:s.at]
			}
		case ' ', '\t', '\r', '\n':
			return s.text[begun:s.at]
		}
	}
	s.at = min(s.at, len(s.text))
	return s.text[begun:s.at]
}

// digits reports whether text begins with a count of a regular expression, as in [0-9]{4}.
func digits(text string) bool {
	i := strings.IndexByte(text, '}')
	return i > 0 && strings.Trim(text[:i], "0123456789,") == ""
}

// parse reads directives until the end of a block or, at depth 0, of the text.
func (s *scanner) parse(depth int) (all []directive, err error) {
	if depth > maxDepth {
		return nil, Note{Line: s.line, Text: fmt.Sprintf("blocks are more than %d deep", maxDepth)}
	}
	d, begun := directive{line: s.line}, s.line
	finish := func() {
		if len(d.words) > 0 {
			all = append(all, d)
		}
		d = directive{}
	}
	for {
		kind, text, err := s.next()
		if err != nil {
			return nil, err
		}
		switch kind {
		case word:
			if len(d.words) == 0 {
				d.line = s.line - strings.Count(text, "\n")
			}
			d.words = append(d.words, text)
		case end:
			if depth > 0 || len(d.words) == 0 || !s.lines || !strings.HasSuffix(d.words[len(d.words)-1], ",") {
				finish() // after a comma there are further addresses of Caddy's
			}
		case open:
			if len(d.words) == 0 {
				if !s.lines || depth > 0 {
					return nil, Note{Line: s.line, Text: "a block without a name"}
				}
				d.words, d.line = []string{""}, s.line // Caddy's global options
			}
			if d.block, err = s.parse(depth + 1); err != nil {
				return nil, err
			}
			if d.block == nil {
				d.block = []directive{}
			}
			finish()
		case closed:
			if depth == 0 {
				return nil, Note{Line: s.line, Text: "a } without a {"}
			}
			if len(d.words) > 0 && !s.lines {
				return nil, Note{Line: d.line, Text: fmt.Sprintf("%q has no semicolon", d.name())}
			}
			finish()
			return all, nil
		case eof:
			if depth > 0 {
				return nil, Note{Line: begun, Text: "a { has no }"}
			}
			if len(d.words) > 0 && !s.lines {
				return nil, Note{Line: d.line, Text: fmt.Sprintf("%q has no semicolon", d.name())}
			}
			finish()
			return all, nil
		}
	}
}
