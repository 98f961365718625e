package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/manual"
	"github.com/spf13/cobra"
)

// newManCmd writes the manual pages that the packages contain. It is hidden: users have the pages, or --help.
func newManCmd() *cobra.Command {
	return &cobra.Command{
		Use:               "man DIR",
		Short:             "Write the manual pages into a folder",
		Hidden:            true,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New(`want one folder, as in "chert man DIR"`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			release, _, _ := strings.Cut(version(), " ")
			for name, page := range manual.Pages(cmd.Root(), "chert "+release) {
				if err := os.WriteFile(filepath.Join(args[0], name), page, 0o644); err != nil {
					return failure{err}
				}
			}
			return nil
		},
	}
}
