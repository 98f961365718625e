package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	race     bool
	verbose  bool
	keep     bool
	run      string
	timeout  time.Duration
	parallel int
	record   string
	haproxy  string
	suites   []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "front" {
		return front(ctx, args[1:])
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	co, err := findCheckout(ctx)
	if err != nil {
		return err
	}
	co.options = o
	dir, err := os.MkdirTemp("", "chert-suites-")
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(stderr, "the sources are in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	begun := time.Now()
	reports, err := runAll(ctx, co, dir, o, stderr)
	if err != nil {
		return err
	}
	if o.record != "" {
		if err := record(ctx, co, o.record, begun, reports); err != nil {
			return err
		}
	}
	return summary(stdout, reports)
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := new(options)
	fl := flag.NewFlagSet("suites", flag.ContinueOnError)
	fl.SetOutput(stderr)
	fl.BoolVar(&o.race, "race", false, "run with the race detector")
	fl.BoolVar(&o.verbose, "v", false, "show the output of the tests")
	fl.BoolVar(&o.keep, "keep", false, "keep the folder with the sources and print its name")
	fl.StringVar(&o.run, "run", "", "run the tests that match `pattern` only, as go test does")
	fl.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long the tests of a package may take")
	fl.IntVar(&o.parallel, "p", 2, "how many suites to run at the same time")
	all := fl.Bool("all", false, "run all suites, also those that are not run by default since they take minutes")
	fl.StringVar(&o.record, "record", "", "write the results to the page `file`, beside those of other suites that it has")
	fl.StringVar(&o.haproxy, "haproxy", "", "take HAProxy's tests from this `checkout` of its repository, and do not fetch it")
	fl.Usage = func() {
		fmt.Fprintf(stderr, "usage: go run ./suites [flags] [suite...]\nsuites: %s\nby default: %s\n",
			strings.Join(names(true), " "), strings.Join(names(false), " "))
		fl.PrintDefaults()
	}
	if err := fl.Parse(args); err != nil {
		return nil, err
	}
	o.suites = fl.Args()
	switch {
	case *all && len(o.suites) > 0:
		return nil, errors.New("-all and names of suites: which?")
	case o.record != "" && o.run != "":
		return nil, errors.New("-record is for the results of all tests of a suite: without -run")
	case len(o.suites) == 0:
		o.suites = names(*all)
	}
	for _, name := range o.suites {
		if !slices.Contains(names(true), name) {
			return nil, fmt.Errorf("no suite %q; there are: %s", name, strings.Join(names(true), " "))
		}
	}
	if o.parallel < 1 {
		return nil, fmt.Errorf("-p %d: at least one suite must run", o.parallel)
	}
	return o, nil
}
