package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const checkout = "../.."

// internals are the pages for those who change chert. All others are for its users.
var internals = []string{"ARCHITECTURE.md", "performance.md", "suites-results.md", "suites.md", "testing.md"}

// pages returns the names of the pages for users, relative to the checkout.
func pages(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "examples/README.md"}
	for _, dir := range []string{"docs", "docs/observability"} {
		found, err := filepath.Glob(filepath.Join(checkout, dir, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, f := range found {
			if base := filepath.Base(f); !slices.Contains(internals, base) {
				names = append(names, dir+"/"+base)
			}
		}
	}
	return names
}

// A block is a part of a page that is not prose: code, or a marker by itself.
type block struct {
	page     string
	line     int    // of its first line of text
	language string // "indented" for lines with four spaces
	text     string
	section  int // the number of headings of the second level before it
	markers  map[string]string
}

var (
	markerPattern = regexp.MustCompile(`(?s)^<!-- ([a-z]+)(?:: (.*?))? -->$`)
	knownMarkers  = []string{"skip", "file", "given", "exit", "terminal", "interrupt", "needs", "shows", "session"}
)

// A reader splits a page into blocks.
type reader struct {
	t       *testing.T
	page    string
	lines   []string
	at      int
	section int
	markers map[string]string
	blocks  []block
}

func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, page))
	if err != nil {
		t.Fatal(err)
	}
	return split(t, page, string(text))
}

func split(t *testing.T, page, text string) []block {
	t.Helper()
	r := &reader{t: t, page: page, lines: strings.Split(text, "\n"), markers: map[string]string{}}
	for r.at < len(r.lines) {
		line := r.lines[r.at]
		switch {
		case strings.HasPrefix(line, "<!-- "):
			r.marker()
		case strings.HasPrefix(strings.TrimLeft(line, " "), "```"):
			r.fenced()
		case strings.HasPrefix(line, "    ") && (strings.TrimSpace(r.before()) == "" || strings.HasSuffix(r.before(), "-->")):
			r.indented()
		default:
			if strings.HasPrefix(line, "## ") {
				r.section++
			}
			if strings.TrimSpace(line) != "" && len(r.markers) > 0 {
				t.Errorf("%s:%d: a marker is not before a block: %v", page, r.at+1, r.markers)
				clear(r.markers)
			}
			r.at++
		}
	}
	return r.blocks
}

func (r *reader) before() string {
	if r.at == 0 {
		return ""
	}
	return r.lines[r.at-1]
}

// add ends a block that began at line first, counted from 0, with text from it to line end.
func (r *reader) add(language string, first, end int) {
	r.blocks = append(r.blocks, block{
		page: r.page, line: first + 1, language: language, section: r.section,
		text: strings.Join(r.lines[first:end], "\n") + "\n", markers: r.markers,
	})
	r.markers = map[string]string{}
}

func (r *reader) marker() {
	first := r.at
	for r.at < len(r.lines) && !strings.HasSuffix(r.lines[r.at], "-->") {
		r.at++
	}
	r.at = min(r.at+1, len(r.lines))
	m := markerPattern.FindStringSubmatch(strings.Join(r.lines[first:r.at], "\n"))
	if m == nil || !slices.Contains(knownMarkers, m[1]) {
		r.t.Errorf("%s:%d: not a marker", r.page, first+1)
		return
	}
	if (m[2] == "") != (m[1] == "session") {
		r.t.Errorf("%s:%d: the marker %s has no value, or one too many", r.page, first+1, m[1])
	}
	r.markers[m[1]] = m[2]
	if m[1] == "interrupt" || m[1] == "session" {
		r.add(m[1], r.at, r.at)
	}
}

func (r *reader) fenced() {
	indent, language, _ := strings.Cut(r.lines[r.at], "```")
	first := r.at + 1
	for r.at++; r.at < len(r.lines) && strings.TrimRight(r.lines[r.at], " ") != indent+"```"; r.at++ {
		r.lines[r.at] = strings.TrimPrefix(r.lines[r.at], indent)
	}
	r.add(language, first, r.at)
	r.at++
}

func (r *reader) indented() {
	first := r.at
	for r.at < len(r.lines) && (strings.HasPrefix(r.lines[r.at], "    ") || strings.TrimSpace(r.lines[r.at]) == "" &&
		r.at+1 < len(r.lines) && strings.HasPrefix(r.lines[r.at+1], "    ")) {
		r.at++
	}
	r.add("indented", first, r.at)
}

// TestSplit has a page with a block of each kind.
func TestSplit(t *testing.T) {
	t.Parallel()
	got := split(t, "p.md", "# A\n\n<!-- session -->\n\ntext\n\n## B\n\n<!-- given: var a int\nvar b int -->\n```go\nx := 1\n```\n\n    chert serve     serves\n\n    chert top\n\n- a\n\n  ```toml\n  a = 1\n  ```\n")
	want := []block{
		{"p.md", 4, "session", "\n", 0, map[string]string{"session": ""}},
		{"p.md", 12, "go", "x := 1\n", 1, map[string]string{"given": "var a int\nvar b int"}},
		{"p.md", 15, "indented", "    chert serve     serves\n\n    chert top\n", 1, nil},
		{"p.md", 22, "toml", "a = 1\n", 1, nil},
	}
	if len(got) != len(want) {
		t.Fatalf("%d blocks: %+v", len(got), got)
	}
	for i, w := range want {
		g := got[i]
		if g.line != w.line || g.language != w.language || g.text != w.text || g.section != w.section || len(g.markers) != len(w.markers) || g.markers["given"] != w.markers["given"] {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
}

// Every block has a language that is checked, or says why it is not.
func TestLanguages(t *testing.T) {
	t.Parallel()
	known := []string{"go", "toml", "nginx", "caddyfile", "console", "ini", "json", "text", "log", "indented", "interrupt", "session"}
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			if _, skipped := b.markers["skip"]; !skipped && !slices.Contains(known, b.language) {
				t.Errorf("%s:%d: nothing checks a block of the language %q: name one of %q, or say why not in <!-- skip: -->", page, b.line, b.language, known)
			}
		}
	}
}
