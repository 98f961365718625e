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
	exitFailure = 1 // the world said no: a port taken, a folder missing, requests cut off
	exitUsage   = 2 // the command line was wrong
)

// failure marks an error that the command line did not cause. Every other error that reaches report is one of usage,
// because cobra's own errors are and cannot be told apart by type.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// errSaid stands for errors that are printed already.
var errSaid = errors.New("there are errors")

// report prints err as one line and returns the exit code it stands for. command is what --help should be asked of.
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

// quote shows a path in a message. It leaves backslashes alone, which %q would double on Windows, but never lets
// control characters in a name reach the terminal.
func quote(path string) string {
	if strconv.CanBackquote(path) {
		return `"` + path + `"`
	}
	return strconv.Quote(path)
}
