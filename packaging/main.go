package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "api":
			return apiMain(ctx, args[1:], out)
		case "build":
			return buildMain(ctx, args[1:], out)
		case "depend":
			return dependMain(ctx, args[1:], out)
		case "start":
			return startMain(ctx, args[1:], out)
		case "vulncheck":
			return vulncheckMain(ctx, args[1:], out)
		case "weigh":
			return weighMain(ctx, args[1:], out)
		}
	}
	return errors.New(`want "api", "build", "depend", "vulncheck", "weigh" or "start"`)
}

func buildMain(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(out)
	o := options{targets: allTargets}
	flags.StringVar(&o.version, "version", "",
		"a `version`, such as v0.1.0, in place of that of the commit's tag; without either, it is made of the commit's\n"+
			"time and hash")
	flags.StringVar(&o.out, "out", "", "the `folder` of the results, by default dist in the repository; it is replaced")
	flags.BoolVar(&o.once, "once", false, "do not build a second time to compare")
	flags.BoolVar(&o.offline, "offline", false, "go on if the database of vulnerabilities cannot be reached")
	flags.Func("targets", "only these, such as `linux/amd64,linux/arm64`", func(s string) (err error) {
		o.targets, err = parseTargets(s)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected %q", flags.Arg(0))
	}
	return build(ctx, o, out)
}

// options are the flags of "packaging build".
type options struct {
	version, out  string
	targets       []target
	once, offline bool
}

// build is the order of the steps.
func build(ctx context.Context, o options, out io.Writer) error {
	s, err := openSource(ctx, o.version)
	if err != nil {
		return err
	}
	defer s.close()
	if s.dirty {
		fmt.Fprintln(out, "Changes that are not committed are left out: the commit is built.")
	}
	fmt.Fprintf(out, "chert %s, commit %s, with %s\n", s.version, s.commit, toolchain)
	dist, err := emptyDist(o.out, s.root)
	if err != nil {
		return err
	}
	binaries, err := compileAll(ctx, s, o, out)
	if err != nil {
		return err
	}
	if err := vulnerabilities(ctx, s.clones[0], vulnDB, o.offline, out); err != nil {
		return err
	}
	p, err := newProduct(ctx, s, binaries)
	if err != nil {
		return err
	}
	for _, step := range []func(dist string) error{p.archives, p.materials, p.packages, p.image, checksums} {
		if err := step(dist); err != nil {
			return err
		}
	}
	return list(dist, out)
}

// emptyDist makes the folder of the results, and removes what an earlier build has left there.
func emptyDist(dir, root string) (string, error) {
	if dir == "" {
		dir = filepath.Join(root, "dist")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, sumsName)); len(entries) > 0 && err != nil {
		return "", fmt.Errorf("%s is not empty and has no %s of an earlier build; remove it or choose another folder",
			dir, sumsName)
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// At once, so that a build that fails leaves a folder that the next one may replace.
	return dir, os.WriteFile(filepath.Join(dir, sumsName), nil, 0o644)
}

// list prints the results.
func list(dist string, out io.Writer) error {
	entries, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s:\n", dist)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			fmt.Fprintf(out, "%12s  %s\n", "", e.Name()+"/")
			continue
		}
		fmt.Fprintf(out, "%12d  %s\n", info.Size(), e.Name())
	}
	return nil
}

func parseTargets(s string) (all []target, err error) {
	for name := range strings.SplitSeq(s, ",") {
		found := false
		for _, t := range allTargets {
			if t.String() == name {
				all, found = append(all, t), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%q is none of %v", name, allTargets)
		}
	}
	return all, nil
}
