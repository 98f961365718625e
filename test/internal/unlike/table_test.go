package unlike

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/differences.md has a row "| id: title | net/http | chert | reason |" for each
// documented difference and for nothing else, and each reason names a section, or says
// whose limit it is.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	ids := make(map[string]bool)
	for _, d := range All {
		if ids[d.ID] {
			t.Errorf("%s is in the table twice", d)
		}
		ids[d.ID] = true
		if d.Title != "" {
			want = append(want, d.ID+": "+d.Title)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z0-9.-]+: [^|\n]*) \|`).FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/differences.md has\n%s\nthe table\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if id, _, ok := strings.Cut(strings.TrimPrefix(cells[0], "| "), ": "); ok && ids[id] && (len(cells) != 4 ||
			!slices.ContainsFunc([]string{"RFC", "documentation", "cannot"}, func(s string) bool { return strings.Contains(cells[3], s) })) {
			t.Errorf("%s is given no reason", id)
		}
	}
}
