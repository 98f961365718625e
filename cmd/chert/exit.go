package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The exit codes of every command.
const (
	exitOK      = 0
	exitFailure = 1 // the environment prevented it: a port in use, a folder missing, requests cut off
	exitUsage   = 2 // the command line was wrong
)

// failure marks an error that the command line did not cause. Every other error that reaches report is a usage error,
// because cobra's own errors are and cannot be distinguished by type.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// errSaid stands for errors that have been printed already.
var errSaid = errors.New("there are errors")

// report prints err as one line and returns its exit code. command is the command whose --help it recommends.
func report(stderr io.Writer, command string, err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errSaid) {
		return exitFailure
	}
	if f, ok := errors.AsType[failure](err); ok {
		fmt.Fprintf(stderr, "chert: %v\n", f.error)
		return exitFailure
	}
	fmt.Fprintf(stderr, "chert: %v; see \"%s --help\"\n", err, command)
	return exitUsage
}

// quote quotes a path for a message. It does not double backslashes, as %q would on Windows, but never lets control
// characters in a name reach the terminal.
func quote(path string) string {
	if strconv.CanBackquote(path) {
		return `"` + path + `"`
	}
	return strconv.Quote(path)
}
