package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

// apiMain compares the exported API with that of the latest release before the commit, and fails if programs that
// compile with that may not compile any more and the version promises that they do.
func apiMain(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("api", flag.ContinueOnError)
	flags.SetOutput(out)
	version := flags.String("version", "", "the `version` that the commit will have, by default that of its tag, or the release's\nnext patch")
	against := flags.String("against", "", "a `commit` or tag to compare with in place of the latest release")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := openSource(ctx, "")
	if err != nil {
		return err
	}
	defer s.close()
	before := *against
	if before == "" {
		if before, err = s.releaseBefore(ctx); err != nil {
			return err
		}
		if before == "" {
			fmt.Fprintln(out, "There is no release to compare with.")
			return nil
		}
	}
	if _, err := git(ctx, s, s.clones[1], "checkout", "--quiet", before); err != nil {
		return err
	}
	was, err := apiOf(ctx, s.clones[1])
	if err != nil {
		return err
	}
	is, err := apiOf(ctx, s.clones[0])
	if err != nil {
		return err
	}
	broken := compareAPI(was, is, out)
	switch {
	case broken == 0:
		fmt.Fprintf(out, "Programs that compile with %s compile with this.\n", before)
	case promised(before, *version):
		return fmt.Errorf("%d changes that %s may not make to %s", broken, *version, before)
	}
	return nil
}

// releaseBefore returns the latest tag of a release among the ancestors of the commit's parents; "" if there is none.
func (s *source) releaseBefore(ctx context.Context) (string, error) {
	tags, err := git(ctx, s, s.root, "tag", "--list", "v*", "--merged", s.commit, "--no-contains", s.commit)
	if err != nil {
		return "", err
	}
	all := slices.DeleteFunc(strings.Fields(tags), func(tag string) bool { return !semver.IsValid(tag) })
	if len(all) == 0 {
		return "", nil
	}
	return slices.MaxFunc(all, semver.Compare), nil
}

// promised reports whether a version must be compatible with one before it, by Semantic Versioning: within a major
// version or, before the first one, within a minor one. Without a version, or without two, it must be.
func promised(before, version string) bool {
	if !semver.IsValid(before) || !semver.IsValid(version) {
		return true
	}
	if semver.Major(before) == "v0" {
		return semver.MajorMinor(before) == semver.MajorMinor(version)
	}
	return semver.Major(before) == semver.Major(version)
}

// apiOf loads the packages of the module in dir that programs can import.
func apiOf(ctx context.Context, dir string) (map[string]*packages.Package, error) {
	config := &packages.Config{Context: ctx, Dir: dir, Env: append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOTOOLCHAIN="+toolchain),
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedFiles}
	loaded, err := packages.Load(config, "./...")
	if err != nil {
		return nil, err
	}
	all := map[string]*packages.Package{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		elements := strings.Split(p.PkgPath, "/")
		if p.Name != "main" && !slices.Contains(elements, "internal") && !slices.Contains(elements, "test") {
			all[p.PkgPath] = p
		}
	}
	if len(all) == 0 {
		return nil, errors.New(filepath.Base(dir) + " has no packages")
	}
	return all, nil
}

// compareAPI prints what has changed, and counts what is not compatible.
func compareAPI(was, is map[string]*packages.Package, out io.Writer) (broken int) {
	var paths []string
	for path := range was {
		paths = append(paths, path)
	}
	for path := range is {
		if was[path] == nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		switch {
		case is[path] == nil:
			broken++
			fmt.Fprintf(out, "%s: removed\n", path)
		case was[path] == nil:
			fmt.Fprintf(out, "%s: added\n", path)
		default:
			for _, c := range apidiff.Changes(was[path].Types, is[path].Types).Changes {
				mark := "compatible"
				if !c.Compatible {
					broken++
					mark = "NOT COMPATIBLE"
				}
				fmt.Fprintf(out, "%s: %s: %s\n", path, mark, c.Message)
			}
		}
	}
	return broken
}
