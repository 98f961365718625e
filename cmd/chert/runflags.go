package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// runFlags are the flags of every command that serves.
type runFlags struct {
	listen          endpoints
	open            bool
	log             logFormat // set to the default before add
	quiet           bool
	admin           checked
	control         checked
	shutdownTimeout time.Duration
}

func (o *runFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.VarP(&o.listen, "listen", "l", "where to listen: host:port, :port, a port for this machine only,\nor "+
		"unix:/path?mode=0660&group=NAME, or fd:NAME of systemd; may be repeated")
	addBool(cmd, &o.open, "open", "", "open the browser")
	f.Var(&o.log, "log", "log requests to stderr: "+logNames)
	addBool(cmd, &o.quiet, "quiet", "q", "print nothing but errors")
	o.shutdownTimeout = 30 * time.Second
	f.Var((*durationFlag)(&o.shutdownTimeout), "shutdown-timeout",
		"how long a stop waits for running requests; 0 does not wait")

	o.admin.check, o.admin.kind = checkAdmin, "address"
	f.Var(&o.admin, "admin", "serve a page about the running server, profiles and health checks at this address, in "+
		"the form\nof --listen. It has no authentication")

	o.control.check, o.control.kind = checkControl, "path"
	f.Var(&o.control, "control", "open a unix socket here, for \"chert upgrade\"; only this user may "+
		"connect, unless it has\nthe options of --listen")

	mustComplete(cmd, "listen", cobra.NoFileCompletions)
	mustComplete(cmd, "admin", cobra.NoFileCompletions)
	mustComplete(cmd, "log", cobra.FixedCompletions(logWords, cobra.ShellCompDirectiveNoFileComp))
	mustComplete(cmd, "shutdown-timeout", cobra.NoFileCompletions)
}

// check checks the flags together, once the command line is parsed.
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

// addresses returns the addresses to listen on according to the command line and the environment. Platforms that
// start a program for their users pass the port in $PORT, and connect from another machine.
func (o *runFlags) addresses() (all []endpoint, chosen bool) {
	if len(o.listen) > 0 {
		return o.listen, true
	}
	if passed := passedEndpoints(); len(passed) > 0 {
		return passed, true
	}
	if port := os.Getenv("PORT"); isPort(port) && port != "0" {
		return []endpoint{{network: "tcp", address: ":" + port}}, true
	}
	return []endpoint{defaultListen}, false
}

// opensHint explains how to open a server to the network that only this machine can reach, unless that address was
// chosen.
func opensHint(all []endpoint, chosen bool) string {
	for _, e := range all {
		if chosen && !e.bare {
			return ""
		}
	}
	ignored := ""
	if port := os.Getenv("PORT"); port != "" && !chosen {
		ignored = "PORT=" + strconv.Quote(port) + " of the environment is not a port; "
	}
	_, port, _ := net.SplitHostPort(all[0].address)
	return " (this machine only; " + ignored + "--listen :" + port + " opens it to the network)"
}

func mustComplete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag exists
	}
}
