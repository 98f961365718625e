package netdiff

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// diffTopics are all tables.
var diffTopics = map[string][]diffCase{
	"request line": diffRequestLines, "headers": diffHeads, "framing": diffFramings, "response": diffResponses,
	"connection": diffConnections, "methods": diffMethods, "expect": diffExpects, "hijack": diffHijacks,
	"cancel": diffCancels, "errors": diffErrors, "body": diffBodies, "options": diffOptions,
}

// TestDiffDocument compares the differences in the tables with those that
// docs/differences.md explains. A heading there is "### id: title".
func TestDiffDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^### ([^:\n]*): `).FindAllStringSubmatch(string(text), -1) {
		if explained[m[1]] {
			t.Errorf("%s is explained twice", m[1])
		}
		explained[m[1]] = true
	}
	shown, n := make(map[string]bool), 0
	for topic, cases := range diffTopics {
		n += len(cases)
		for i := range cases {
			c := &cases[i]
			switch {
			case c.unlike != nil && c.bug != nil:
				t.Errorf("%s, %s: both deliberate and a mistake", topic, c.name)
			case c.unlike != nil:
				shown[c.unlike.id] = true
			case c.bug != nil && (c.bug.id == "" || explained[c.bug.id]):
				t.Errorf("%s, %s: a mistake needs a name of its own and no excuse", topic, c.name)
			}
		}
	}
	for id := range shown {
		if !explained[id] {
			t.Errorf("docs/differences.md does not explain %q", id)
		}
	}
	for id := range explained {
		if !shown[id] {
			t.Errorf("no case shows %q of docs/differences.md", id)
		}
	}
	// Each explanation names a section, or says whose limit it is.
	for part := range strings.SplitSeq(string(text), "\n### ") {
		id, rest, ok := strings.Cut(part, ": ")
		if ok && explained[id] && !slices.ContainsFunc([]string{"RFC", "documentation", "cannot"}, func(s string) bool { return strings.Contains(rest, s) }) {
			t.Errorf("%s is given no reason", id)
		}
	}
	if n < 250 {
		t.Errorf("there are only %d cases", n)
	}
	t.Logf("%d cases, %d differences", n, len(shown))
}
