package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// runFlags are the flags of every command that serves.
type runFlags struct {
	listen          endpoints
	open            bool
	log             logFormat // set to the default before add
	quiet           bool
	shutdownTimeout time.Duration
}

func (o *runFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.VarP(&o.listen, "listen", "l", "where to listen: host:port, :port or unix:/path; may be repeated")
	f.BoolVar(&o.open, "open", false, "open the browser")
	f.Var(&o.log, "log", "log requests to stderr: off, common, combined, text or json")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but errors")
	f.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 30*time.Second,
		"how long a stop waits for running requests; 0 does not wait")

	mustComplete(cmd, "listen", cobra.NoFileCompletions)
	mustComplete(cmd, "log", cobra.FixedCompletions(logWords, cobra.ShellCompDirectiveNoFileComp))
	mustComplete(cmd, "shutdown-timeout", cobra.NoFileCompletions)
}

// check finds what each flag by itself cannot, once the command line is read.
func (o *runFlags) check(given func(flag string) bool) error {
	switch {
	case o.quiet && given("log") && o.log != logOff:
		return fmt.Errorf("--quiet and --log %s contradict each other; leave one out", o.log)
	case o.shutdownTimeout < 0:
		return fmt.Errorf("--shutdown-timeout %v is negative; 0 does not wait", o.shutdownTimeout)
	case o.quiet:
		o.log = logOff
	}
	return nil
}

func mustComplete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // there is no such flag
	}
}
