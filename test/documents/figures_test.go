package documents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(checkout, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// "make figures" measures all that README.md has figures of: each name of a profile in
// it is in the target, and each of the target's is in README.md and in the lab.
func TestFigures(t *testing.T) {
	t.Parallel()
	readme := text(t, "README.md")
	_, target, ok := strings.Cut(text(t, "Makefile"), "\nfigures:\n")
	target, _, _ = strings.Cut(target, "\n\n")
	if !ok || !strings.Contains(readme, "`make figures`") {
		t.Fatal("no target figures in the Makefile, or README.md does not name it")
	}
	measured := map[string]bool{}
	for _, m := range regexp.MustCompile(`\. run (\w+)`).FindAllStringSubmatch(target, -1) {
		measured[m[1]] = true
		if !strings.Contains(readme, "`"+m[1]+"`") {
			t.Errorf("make figures measures %s, which README.md does not name", m[1])
		}
	}
	for _, m := range regexp.MustCompile("\\(`(\\w+)`\\)").FindAllStringSubmatch(readme, -1) {
		if !measured[m[1]] {
			t.Errorf("README.md has figures of %s, which make figures does not measure", m[1])
		}
	}
	// Those of the suites are the sums of what was recorded.
	var passNetHTTP, passChert int
	for line := range strings.Lines(text(t, "docs/suites-results.md")) {
		cells := strings.Split(line, " | ")
		if !regexp.MustCompile(`^\| (go|chi|gin|gorilla|coder)$`).MatchString(cells[0]) {
			continue
		}
		a, err := strconv.Atoi(cells[6])
		b, err2 := strconv.Atoi(cells[7])
		if err != nil || err2 != nil {
			t.Fatal(line)
		}
		passNetHTTP, passChert = passNetHTTP+a, passChert+b
	}
	for _, n := range []int{passNetHTTP, passChert} {
		if s := fmt.Sprintf("%d,%03d", n/1000, n%1000); !strings.Contains(readme, s) {
			t.Errorf("README.md does not have %s, the sum in docs/suites-results.md", s)
		}
	}
}
