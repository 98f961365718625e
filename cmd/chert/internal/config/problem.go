package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing that is wrong in a file.
type Problem struct {
	File    string // as Load was given it
	At      Position
	Message string
}

// A Position is a place in a file. Both count from 1, Column in bytes; zero is
// the file as a whole.
type Position struct{ Line, Column int }

// Error is "FILE:LINE:COLUMN: message", a single line.
func (p Problem) Error() string {
	if p.At.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.At.Line, p.At.Column, p.Message)
}

// Problems are all that Load found, in the order of the file.
type Problems []Problem

// InText reports whether any is of a place in the file, and not of the file as a
// whole.
func (ps Problems) InText() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.At != Position{} })
}

// Error is a line for each.
func (ps Problems) Error() string {
	all := make([]string, len(ps))
	for i, p := range ps {
		all[i] = p.Error()
	}
	return strings.Join(all, "\n")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
}
