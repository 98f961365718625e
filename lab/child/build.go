package child

import (
	"context"
	"path/filepath"
	"strings"
)

// Build compiles a Go program of the lab. folder is where its package is, below the lab's; it may be a module of its own.
func Build(ctx context.Context, binary, folder string) error {
	lab, err := Lab(ctx)
	if err != nil {
		return err
	}
	return BuildAt(ctx, binary, filepath.Join(lab, filepath.FromSlash(folder)))
}

// BuildAt compiles the Go program whose package is in dir. The same source makes the same program, byte for byte, in
// any folder and whether or not it was committed: servers that differ in nothing else would otherwise differ in the
// names of their files, and be laid out another way. It also lets Go's build cache serve a copy of the source. flags are
// further ones of go build.
func BuildAt(ctx context.Context, binary, dir string, flags ...string) error {
	args := append([]string{"go", "build", "-C", dir, "-trimpath", "-buildvcs=false"}, flags...)
	_, err := Run(ctx, Command{Args: append(args, "-o", binary, ".")})
	return err
}

// Fetch makes sure that a Go program could be built: it loads the modules that are missing, or fails.
func Fetch(ctx context.Context, folder string) error {
	lab, err := Lab(ctx)
	if err != nil {
		return err
	}
	_, err = Run(ctx, Command{Args: []string{"go", "list", "-C", filepath.Join(lab, filepath.FromSlash(folder)), "-deps", "."}})
	return err
}

// Lab is the lab's folder.
func Lab(ctx context.Context) (string, error) {
	// In every folder of the lab the process is in the lab's module.
	module, err := Run(ctx, Command{Args: []string{"go", "list", "-m", "-f", "{{.Dir}}"}})
	return strings.TrimSpace(module.Stdout), err
}
