package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"
)

func TestRequired(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]int{
		"":                                   0,
		"module a\n\ngo 1.26\n":              0,
		"module a\n\nrequire b.c/d v1.0.0\n": 1,
		"module a\n\nrequire (\n\tb v1.0.0\n\tc v0.0.0-20250101000000-0123456789ab // indirect\n)\n\nrequire d v1.1.0\n": 3,
	} {
		name := filepath.Join(dir, "go.mod")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if n := required(name); n != want {
			t.Errorf("%q requires %d modules, not %d", text, n, want)
		}
	}
}

func TestProgramsOfDependents(t *testing.T) {
	t.Parallel()
	for _, d := range dependents {
		f, err := parser.ParseFile(token.NewFileSet(), "main.go", programOf(d.imports), parser.AllErrors)
		if err != nil {
			t.Errorf("%s: %v", d.name, err)
			continue
		}
		if len(f.Imports) != 1+len(d.imports) {
			t.Errorf("%s: %d imports", d.name, len(f.Imports))
		}
	}
}
