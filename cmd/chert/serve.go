package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chert-http/chert"
	"github.com/spf13/cobra"
)

// serveOptions is the command line of "chert serve".
type serveOptions struct {
	dir             string
	listen          endpoints
	log             logFormat
	quiet           bool
	shutdownTimeout time.Duration
}

// check finds what each flag by itself cannot.
func (o *serveOptions) check() error {
	if o.quiet && o.log != logOff {
		return fmt.Errorf("--quiet and --log %s contradict each other; leave one out", o.log)
	}
	if o.shutdownTimeout < 0 {
		return fmt.Errorf("--shutdown-timeout %v is negative; 0 does not wait", o.shutdownTimeout)
	}
	return nil
}

const serveLong = `Serve the files of a folder, the current one if none is given.

Only this machine can reach the server unless --listen says otherwise:
--listen :8080 opens it to the network. Links that lead out of the folder are
not followed. The folder is opened once: after another is put in its place,
restart chert.

SIGTERM or SIGINT (Ctrl-C) stops it after the running requests are done; a
second one stops it at once. Exit codes: 0 after a clean stop, 1 after a
failure (requests cut off included), 2 for a wrong command line.`

const serveExample = `  chert serve                            the current folder, for a browser on this machine
  chert serve /srv/www --listen :8080    for the network
  chert serve /srv/www --listen unix:/run/chert.sock --log json`

func newServeCmd() *cobra.Command {
	o := serveOptions{log: logOff}
	cmd := &cobra.Command{
		Use:     "serve [DIR]",
		Short:   "Serve the files of a folder",
		Long:    serveLong,
		Example: serveExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("one folder at most, not %d; a name with spaces needs quotes", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.dir = "."
			if len(args) > 0 {
				o.dir = args[0]
			}
			if err := o.check(); err != nil {
				return err
			}
			if err := o.serve(cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *serveOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.VarP(&o.listen, "listen", "l", "where to listen: host:port, :port or unix:/path; may be repeated")
	f.Var(&o.log, "log", "log requests to stderr: off, text or json; duration is in seconds")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but errors")
	f.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 30*time.Second,
		"how long a stop waits for running requests; 0 does not wait")

	values := cobra.FixedCompletions([]string{
		"off\tno access log",
		"text\tkey=value lines",
		"json\tone object a line",
	}, cobra.ShellCompDirectiveNoFileComp)
	for name, complete := range map[string]cobra.CompletionFunc{
		"log":              values,
		"listen":           cobra.NoFileCompletions,
		"shutdown-timeout": cobra.NoFileCompletions,
	} {
		if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
			panic(err) // the name is not one of the flags above
		}
	}
}

// serve returns nil after a clean stop. Whatever it returns otherwise is to be printed after "chert: ".
func (o *serveOptions) serve(stdout, stderr io.Writer) error {
	if o.quiet {
		stdout = io.Discard
	}
	root, err := openFolder(o.dir)
	if err != nil {
		return err
	}
	defer root.Close()

	// Before anything is opened, so that a signal never leaves a socket file behind.
	stop, release := stopSignals()
	defer release()

	handler := http.FileServerFS(folderFS{root.FS()})
	access, errs := loggers(o.log, stderr)
	if access != nil {
		handler = logged(access, handler)
	}
	srv := &chert.Server{Handler: handler, ErrorLog: errs}
	ls, err := listenAll(srv.Listen, o.listen.orDefault())
	if err != nil {
		return err
	}
	defer closeAll(ls)

	fmt.Fprintln(stdout, o.startLine(ls))
	return serveUntil(srv, ls, stop, func(sig os.Signal) error {
		fmt.Fprintf(stdout, "chert: %v: finishing running requests for up to %v; once more stops at once\n",
			sig, o.shutdownTimeout)
		return drain(srv, stop, o.shutdownTimeout)
	})
}

// startLine goes to stdout, for people and for scripts that asked for port 0.
func (o *serveOptions) startLine(ls []listener) string {
	var urls []string
	for _, l := range ls {
		urls = append(urls, showURL(l.Addr()))
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		dir = o.dir
	}
	line := "chert: serving " + quote(dir) + " at " + strings.Join(urls, " and ")
	if len(o.listen) == 0 {
		line += " (this machine only; --listen :8080 opens it to the network)"
	}
	return line
}

// serveUntil serves all of ls until one fails or a signal comes, which it leaves to stopping.
func serveUntil(srv *chert.Server, ls []listener, stop <-chan os.Signal, stopping func(os.Signal) error) error {
	failed := make(chan error, len(ls))
	for _, l := range ls {
		go func() { failed <- srv.Serve(l.Listener) }()
	}
	select {
	case err := <-failed:
		srv.Close()
		return fmt.Errorf("the server failed: %w", err)
	case sig := <-stop:
		return stopping(sig)
	}
}

// drain lets running requests finish until timeout or another signal, and then cuts them off, which is an error.
func drain(srv *chert.Server, stop <-chan os.Signal, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(ctx) }()
	select {
	case err := <-done:
		if err == nil {
			return nil
		}
		srv.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("requests were cut off after %v; --shutdown-timeout gives them longer", timeout)
		}
		return fmt.Errorf("cannot stop cleanly: %w", err)
	case sig := <-stop:
		srv.Close()
		return fmt.Errorf("second signal (%v): stopped at once, requests were cut off", sig)
	}
}
