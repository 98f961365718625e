package main

import (
	"path/filepath"
	"testing"
)

// A patch that no longer applies would go unnoticed, since only people run the mutants.
func TestPatchesApply(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	patches, err := filepath.Glob(filepath.Join(root, "internal/sim/mutants/*.patch"))
	if err != nil || len(patches) < 20 {
		t.Fatal(len(patches), err)
	}
	for _, p := range patches {
		if _, err := apply(root, p, t.TempDir()); err != nil {
			t.Errorf("%s: %v", filepath.Base(p), err)
		}
	}
}
