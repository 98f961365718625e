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
	suites   []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "suites:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	co, err := findCheckout(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "chert-suites-")
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(stderr, "the sources are in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	reports, err := runAll(ctx, co, dir, o, stderr)
	if err != nil {
		return err
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
	fl.Usage = func() {
		fmt.Fprintf(stderr, "usage: go run ./suites [flags] [suite...]\nsuites: %s; all by default\n", strings.Join(names(), " "))
		fl.PrintDefaults()
	}
	if err := fl.Parse(args); err != nil {
		return nil, err
	}
	o.suites = fl.Args()
	if len(o.suites) == 0 {
		o.suites = names()
	}
	for _, name := range o.suites {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("no suite %q; there are: %s", name, strings.Join(names(), " "))
		}
	}
	if o.parallel < 1 {
		return nil, fmt.Errorf("-p %d: at least one suite must run", o.parallel)
	}
	return o, nil
}
