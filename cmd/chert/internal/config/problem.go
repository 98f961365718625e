package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one mistake in a file.
type Problem struct {
	File    string // as passed to Load, or an included one
	At      Position
	Message string
}

// A Position is a position in a file. Both numbers count from 1, Column in
// bytes; zero is the file as a whole. File is "" for the one passed to Load, and
// the path of one that it includes.
type Position struct {
	File         string
	Line, Column int
}

// String returns a text such as "line 3", with the file if that is an included one.
func (p Position) String() string {
	if p.File == "" {
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("line %d of %q", p.Line, p.File)
}

// Error returns "FILE:LINE:COLUMN: message", a single line.
func (p Problem) Error() string {
	if p.At.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.At.Line, p.At.Column, p.Message)
}

// Problems are all that Load found, in the order of the file, and then of those that it
// includes.
type Problems []Problem

// InText reports whether any has a position in the file, and is not about the
// file as a whole.
func (ps Problems) InText() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.At.Line != 0 })
}

// Error returns a line for each.
func (ps Problems) Error() string {
	all := make([]string, len(ps))
	for i, p := range ps {
		all[i] = p.Error()
	}
	return strings.Join(all, "\n")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.At.Column, b.At.Column))
	})
}
