package documents

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var (
	targetPattern = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	makePattern   = regexp.MustCompile("`make ([a-z][a-z0-9-]*)")
)

// The targets of the Makefile are those of CONTRIBUTING.md.
func TestTargets(t *testing.T) {
	t.Parallel()
	all := func(page string, pattern *regexp.Regexp) []string {
		text, err := os.ReadFile(filepath.Join(checkout, page))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
		return slices.Sorted(maps.Keys(found))
	}
	have := slices.DeleteFunc(all("Makefile", targetPattern), func(s string) bool { return s == "all" })
	if page := all("CONTRIBUTING.md", makePattern); !slices.Equal(have, page) {
		t.Errorf("the Makefile has %q, CONTRIBUTING.md %q", have, page)
	}
}
