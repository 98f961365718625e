package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// newVersionCmd does what --version does, for users who try a command.
func newVersionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the system it was built for",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("version takes no arguments")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "chert %s\n", version())
		},
	}
}

// version describes this build: "v1.2.3 (go1.26.0, linux/amd64, revision 0123456789ab)".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return describe(info)
}

// describe leaves out what the build did not record, such as the revision with `go build -buildvcs=false` and `go
// install` from a module proxy.
func describe(info *debug.BuildInfo) string {
	name := info.Main.Version
	if name == "" || name == "(devel)" {
		name = "devel"
	}
	detail := []string{info.GoVersion, runtime.GOOS + "/" + runtime.GOARCH}
	set := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	if rev := set["vcs.revision"]; rev != "" {
		if len(rev) > 12 {
			rev = rev[:12]
		}
		detail = append(detail, "revision "+rev)
		if set["vcs.modified"] == "true" {
			detail = append(detail, "modified")
		}
	}
	return name + " (" + strings.Join(detail, ", ") + ")"
}
