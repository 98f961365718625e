package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
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
	out := &output{Writer: stdout}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	addCompletion(root)
	addHelp(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if !cmd.HasParent() && !strings.HasPrefix(args[0], "-") {
			return unknown(root, args[0]) // its flags are those of another server too
		}
		return explainFlag(cmd, err)
	})
	cmd, err := root.ExecuteC()
	if cmd.Name() == "help" {
		cmd = root // whose help has the commands
	}
	if out.err != nil && (err == nil || errors.Is(err, errSaid) || errors.Is(err, out.err)) {
		err = failure{fmt.Errorf("cannot write to stdout: %w", cause(out.err))}
	}
	code := make(chan int, 1)
	within(exitWait, func() { code <- report(stderr, cmd.CommandPath(), err) }) // nothing may read stderr
	select {
	case c := <-code:
		return c
	default:
		return exitFailure
	}
}

// output is stdout for commands that print what they are called for: what it does not accept is a failure of theirs.
type output struct {
	io.Writer
	err error // the first
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// running returns stdout for commands whose work it is not: they go on without it, or look at what it is.
func running(cmd *cobra.Command) io.Writer {
	if o, ok := cmd.OutOrStdout().(*output); ok {
		return o.Writer
	}
	return cmd.OutOrStdout()
}

func newRootCmd() *cobra.Command {
	showVersion := false
	root := &cobra.Command{
		// It does nothing else without a command, of which cobra adds a line.
		Use:   "chert --version",
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
			return unknown(cmd, args[0])
		},
		DisableFlagsInUseLine: true,
		// SuggestionsFor uses it as it is; cobra sets the default only on its own path.
		SuggestionsMinimumDistance: 2,
	}
	// Not by Command.Version: changing its line takes a template, for which the linker
	// would keep the exported methods of every type.
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the version")
	root.AddCommand(newServeCmd(), newProxyCmd(), newCheckCmd(), newHashPasswordCmd(), newCertCmd(), newTopCmd(),
		newUpgradeCmd(), newHealthCmd(), newDemoCmd(), newAdaptCmd(), newVersionCmd(), newManCmd())
	return root
}

// unknown is the error that root has no command of the name.
func unknown(root *cobra.Command, name string) error {
	if hint := insteadOfCommand[name]; hint != "" {
		return fmt.Errorf("unknown command %q: %s", name, hint)
	}
	near := root.SuggestionsFor(name)                  // in the order of the alphabet
	best := config.Nearest(name, append(near, "help")) // which cobra leaves out
	for _, s := range slices.Backward(near) {
		if best == "" || strings.HasPrefix(s, name) {
			best = s
		}
	}
	if best == "" {
		return fmt.Errorf("unknown command %q", name)
	}
	return fmt.Errorf("unknown command %q; perhaps %q", name, best)
}

// insteadOfCommand has hints for the commands of other servers, and for flags that they have in place of commands.
var insteadOfCommand = map[string]string{
	"run":           `"chert serve --config FILE" serves the sites of a file`,
	"start":         `"chert serve" stays in the foreground; docs/deployment.md has a systemd unit`,
	"file-server":   `"chert serve DIR" serves a folder`,
	"reverse-proxy": `"chert proxy ADDR..." forwards requests`,
	"validate":      `"chert check FILE" reports mistakes`,
	"fmt":           `files are TOML, and "chert check FILE" reports mistakes`,
	"trust":         `"chert cert" makes an authority, and prints how to trust it`,
	"reload":        "SIGHUP has a server read its configuration again: kill -HUP PID",
	"stop":          "SIGTERM ends a server when its requests are done: kill PID",
	"-t":            `"chert check FILE" reports mistakes`,
	"-s":            "servers take signals: kill PID stops one, and kill -HUP PID has it read its configuration again",
	"-c":            `"chert serve --config FILE" serves the sites of a file`,
	"-f":            `"chert serve --config FILE" serves the sites of a file`,
	"-V":            "use -v, or --version",
}

// addHelp adds cobra's "help" command, which by itself responds to the name of no command with exit code 0.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "help" {
			continue
		}
		show := cmd.Run
		cmd.Run, cmd.RunE = nil, func(cmd *cobra.Command, args []string) error {
			if of, rest, err := root.Find(args); err != nil || of == root && len(rest) > 0 {
				return unknown(root, args[0])
			}
			show(cmd, args)
			return nil
		}
	}
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
