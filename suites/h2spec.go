package main

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"path/filepath"
)

// h2specTests is the suite of h2spec, which is a program: a module of our own runs its
// cases as tests.
type h2specTests struct{ through bool }

//go:embed testdata/h2spec/h2spec_test.go
var h2specSource string

const h2specPath = "github.com/summerwind/h2spec"

func (h h2specTests) prepare(ctx context.Context, co *checkout, name, dir string) (*prepared, error) {
	source := filepath.Join(dir, "source")
	if err := writeModule("h2spec", source); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(source, "h2spec_test.go"), []byte(h2specSource), 0o644); err != nil {
		return nil, err
	}
	var mod struct {
		Module  struct{ Path string }
		Require []struct{ Path, Version string }
	}
	if err := goJSON(ctx, &mod, source, []string{"GOWORK=off"}, "mod", "edit", "-json"); err != nil {
		return nil, err
	}
	for _, r := range mod.Require {
		if r.Path == h2specPath {
			return (&module{path: mod.Module.Path, through: h.through}).lay(ctx, co, name, dir, source, r.Version)
		}
	}
	return nil, errors.New("its go.mod does not require " + h2specPath)
}
