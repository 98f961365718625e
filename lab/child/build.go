package child

import "context"

// Build compiles a Go program.
func Build(ctx context.Context, binary, pkg string) error {
	_, err := Run(ctx, Command{Args: []string{"go", "build", "-o", binary, pkg}})
	return err
}
