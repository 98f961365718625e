package child

import (
	"context"
	"path/filepath"
	"strings"
)

// Build compiles a Go program of the lab. folder is where its package is, below the lab's; it may be a module of its own.
func Build(ctx context.Context, binary, folder string) error {
	_, err := goIn(ctx, folder, "build", "-o", binary, ".")
	return err
}

// Fetch makes sure that a Go program could be built: it loads the modules that are missing, or fails.
func Fetch(ctx context.Context, folder string) error {
	_, err := goIn(ctx, folder, "list", "-deps", ".")
	return err
}

// goIn runs the go command in a folder of the lab.
func goIn(ctx context.Context, folder, command string, args ...string) (Finished, error) {
	// Whatever folder of the lab this process runs in, it is in the lab's module.
	module, err := Run(ctx, Command{Args: []string{"go", "list", "-m", "-f", "{{.Dir}}"}})
	if err != nil {
		return Finished{}, err
	}
	dir := filepath.Join(strings.TrimSpace(module.Stdout), filepath.FromSlash(folder))
	return Run(ctx, Command{Args: append([]string{"go", command, "-C", dir}, args...)})
}
