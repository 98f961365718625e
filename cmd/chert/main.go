package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// errNoCommand is returned when chert is called without a command.
var errNoCommand = errors.New(`no command given; to serve a folder: "chert serve DIR"`)

// run is the whole program: it reads args (without the program's name) and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRootCmd()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	addCompletion(root)
	cmd, err := root.ExecuteC()
	return report(stderr, cmd.CommandPath(), err)
}

func newRootCmd() *cobra.Command {
	showVersion := false
	root := &cobra.Command{
		Use:   "chert",
		Short: "An HTTP server",
		// report does both, so that an error is one line and is printed once.
		SilenceErrors: true,
		SilenceUsage:  true,
		// cobra's own check reports a mistyped command in several lines.
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if showVersion {
				fmt.Fprintf(cmd.OutOrStdout(), "chert %s\n", version())
				return nil
			}
			if len(args) == 0 {
				return errNoCommand
			}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return fmt.Errorf("unknown command %q; perhaps %q", args[0], near[0])
			}
			return fmt.Errorf("unknown command %q", args[0])
		},
		DisableFlagsInUseLine: true,
		// SuggestionsFor uses it as it is; cobra sets the default only on its own path.
		SuggestionsMinimumDistance: 2,
	}
	// Not by Command.Version: changing its line takes a template, for which the linker
	// would keep the exported methods of every type.
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the version")
	root.SetFlagErrorFunc(explainFlag)
	root.AddCommand(newServeCmd(), newProxyCmd(), newCheckCmd(), newHashPasswordCmd(), newCertCmd(), newTopCmd(),
		newUpgradeCmd(), newHealthCmd(), newDemoCmd(), newAdaptCmd(), newVersionCmd(), newManCmd())
	return root
}

// addCompletion adds cobra's "completion" command, which uses root's current output. By itself it responds to an
// unknown shell with its help on stdout and exit code 0, and a script would store that as the completion.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE = func(*cobra.Command, []string) error {
				return errors.New("no shell given; want bash, zsh, fish or powershell")
			}
		}
	}
}
