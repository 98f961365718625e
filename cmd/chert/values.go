package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A value is the value of a flag.
type value interface {
	String() string
	Set(string) error
	Type() string // its name in the help
}

// boolFlag is a flag without a value; see addBool.
type boolFlag bool

func (f *boolFlag) String() string { return strconv.FormatBool(bool(*f)) }

func (f *boolFlag) Type() string { return "bool" }

func (f *boolFlag) Set(s string) error {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return errors.New("wants no value, or true or false")
	}
	*f = boolFlag(b)
	return nil
}

// addBool adds a flag that needs no value.
func addBool(cmd *cobra.Command, p *bool, name, shorthand, usage string) {
	cmd.Flags().VarP((*boolFlag)(p), name, shorthand, usage)
	cmd.Flags().Lookup(name).NoOptDefVal = "true"
}

// durationFlag is a time such as "5s".
type durationFlag time.Duration

func (f *durationFlag) String() string { return time.Duration(*f).String() }

func (f *durationFlag) Type() string { return "duration" }

func (f *durationFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("wants a time such as 5s, 100ms or 1m30s")
	}
	*f = durationFlag(d)
	return nil
}

// numberFlag is an integer. Its bounds are checked with the other flags.
type numberFlag int

func (f *numberFlag) String() string { return strconv.Itoa(int(*f)) }

func (f *numberFlag) Type() string { return "number" }

func (f *numberFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("wants a number")
	}
	*f = numberFlag(n)
	return nil
}

// explainFlag rewrites errors of the flag parser. Those of chert's own flags
// stay.
func explainFlag(cmd *cobra.Command, err error) error {
	if name := oneDash(err); name != "" && cmd.Flags().Lookup(name) != nil {
		return errOneDash(name)
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err // chert has the flag, and its value is missing
	}
	if hint := hintOfFlag(cmd, unknown.GetSpecifiedName()); hint != "" {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}

// hintOfFlag tells what chert has in the place of a flag that cmd does not have, "" if nothing is known.
func hintOfFlag(cmd *cobra.Command, name string) string {
	if !cmd.HasParent() && len(name) == 1 {
		return insteadOfCommand["-"+name]
	}
	if hint := config.InsteadOfFlag(name); hint != "" {
		return hint
	}
	var own, others []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { own = append(own, f.Name) })
	for _, other := range cmd.Root().Commands() {
		has := other.Flags()
		if !other.Hidden && (has.Lookup(name) != nil || len(name) == 1 && has.ShorthandLookup(name) != nil) {
			others = append(others, `"`+other.CommandPath()+`"`)
		}
	}
	if len(others) > 0 {
		return "it is a flag of " + strings.Join(others, ", ")
	}
	if near := config.Nearest(name, own); near != "" {
		return "perhaps --" + near
	}
	return ""
}

// oneDash returns the name of a flag with one dash, as package flag would take it, which is read as
// shorthands: of "-listen" as -l with the value "isten". It returns "" for other errors.
func oneDash(err error) string {
	var group string
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		group = invalid.GetFlag().Shorthand + invalid.GetValue()
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		group = unknown.GetSpecifiedShortnames()
	}
	name, _, _ := strings.Cut(group, "=")
	if len(name) < 2 {
		return ""
	}
	return name
}

func errOneDash(name string) error {
	return fmt.Errorf("unknown flag: -%s: it has two dashes: --%s", name, name)
}
