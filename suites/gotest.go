package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// id names a test; without a test it is the package as a whole.
type id struct{ pkg, test string }

func (i id) String() string {
	if i.test == "" {
		return i.pkg
	}
	return i.pkg + " " + i.test
}

// result is how a test ended.
type result struct {
	state  string // pass, fail or skip, as go test has it
	output string
}

// results are those of one run.
type results struct {
	tests   map[id]*result
	onChert map[id]bool // test functions that made a server of chert
	servers int         // of chert that were made
	took    time.Duration
}

// command is the go command in a folder. What the caller's environment says
// about workspaces and flags does not hold here.
func command(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = dir
	c.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		// Some tests look at CI to do more than they would on a desk.
		return slices.Contains([]string{"GOFLAGS", "GOWORK", "CI", "PWD"}, name)
	})
	c.Env = append(append(c.Env, "PWD="+dir), env...)
	// The go command passes it on to the tests that it runs.
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	return c
}

// goJSON decodes what the go command prints.
func goJSON(ctx context.Context, v any, dir string, env []string, args ...string) error {
	out, err := goOutput(ctx, dir, env, args...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, v)
}

// goList decodes what the go command prints, one value after the other.
func goList[T any](ctx context.Context, dir string, args ...string) (list []T, err error) {
	out, err := goOutput(ctx, dir, nil, args...)
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var v T
		if err := dec.Decode(&v); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
}

func goOutput(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	c := command(ctx, dir, env, args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, stderr.Bytes(), out)
	}
	return out, nil
}

// test runs go test in a tree. Tests that fail are results, not an error.
func (t tree) test(ctx context.Context, env, args []string, verbose io.Writer) (*results, error) {
	begun := time.Now()
	all := slices.Concat([]string{"test", "-json", "-count=1", "-vet=off"}, t.args, args, t.packages)
	c := command(ctx, t.dir, slices.Concat(t.env, env), all...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	r, build, readErr := read(stdout, verbose)
	err = c.Wait()
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case readErr != nil:
		return nil, readErr
	case build != "":
		return nil, fmt.Errorf("it does not build:\n%s", build)
	case err != nil && !errors.As(err, &exit), len(r.tests) == 0:
		return nil, fmt.Errorf("go %s: %v\n%s", strings.Join(all, " "), err, stderr.Bytes())
	}
	r.took = time.Since(begun)
	return r, nil
}

// read collects the events of go test -json.
func read(from io.Reader, verbose io.Writer) (r *results, build string, err error) {
	r = &results{tests: make(map[id]*result)}
	dec := json.NewDecoder(from)
	for {
		var e struct{ Action, Package, Test, Output string }
		if err := dec.Decode(&e); err == io.EOF {
			return r, build, nil
		} else if err != nil {
			return nil, "", fmt.Errorf("the output of go test: %w", err)
		}
		io.WriteString(verbose, e.Output)
		at := id{e.Package, e.Test}
		if r.tests[at] == nil && e.Package != "" {
			r.tests[at] = new(result)
		}
		switch e.Action {
		case "build-output":
			build += e.Output
		case "output":
			r.tests[at].output += e.Output
		case "pass", "fail", "skip":
			r.tests[at].state = e.Action
		}
	}
}
