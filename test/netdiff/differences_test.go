package netdiff

import (
	"slices"
	"testing"

	"github.com/chert-http/chert/test/internal/unlike"
)

// diffTopics has all tables.
var diffTopics = map[string][]diffCase{
	"request line": diffRequestLines, "headers": diffHeads, "framing": diffFramings, "response": diffResponses,
	"connection": diffConnections, "methods": diffMethods, "expect": diffExpects, "hijack": diffHijacks,
	"cancel": diffCancels, "errors": diffErrors, "body": diffBodies, "options": diffOptions,
}

// TestDiffDocument fails if a case shows a difference that docs/differences.md
// does not explain, or if no case shows one that it explains.
func TestDiffDocument(t *testing.T) {
	t.Parallel()
	shown, n := make(map[*unlike.Difference]bool), 0
	for topic, cases := range diffTopics {
		n += len(cases)
		for i := range cases {
			c := &cases[i]
			switch {
			case c.unlike != nil && c.bug != nil:
				t.Errorf("%s, %s: both deliberate and a mistake", topic, c.name)
			case c.unlike != nil:
				shown[c.unlike.id] = true
			case c.bug != nil && (c.bug.id == nil || slices.Contains(unlike.All, c.bug.id)):
				t.Errorf("%s, %s: a mistake needs a name of its own and no excuse", topic, c.name)
			}
		}
	}
	explained := 0
	for _, d := range unlike.All {
		if d.Title != "" {
			explained++
		}
		if shown[d] != (d.Title != "") {
			t.Errorf("%s: shown %t, title %q", d, shown[d], d.Title)
		}
	}
	if explained != len(shown) {
		t.Errorf("of %d differences %d are in the table", len(shown), explained)
	}
	if n < 250 {
		t.Errorf("there are only %d cases", n)
	}
	t.Logf("%d cases, %d differences", n, len(shown))
}
