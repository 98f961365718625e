package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	usesPattern   = regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	pinnedPattern = regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// Actions of others are pinned to a commit, and no token is left where code of other modules runs.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(all) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range usesPattern.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(m[1], "./.github/") && !pinnedPattern.MatchString(m[1]) {
				t.Errorf("%s: %s: want a commit, and its version as a comment", name, m[1])
			}
		}
		if c, p := strings.Count(string(text), "actions/checkout@"), strings.Count(string(text), "persist-credentials: false"); c != p {
			t.Errorf("%s: %d checkouts, of which %d leave no token", name, c, p)
		}
	}
}
