package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// A value is that of a flag.
type value interface {
	String() string
	Set(string) error
	Type() string // stands for the value in the help
}

// boolFlag is a flag that is on where it is given; see addBool.
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

// numberFlag is a whole number. Its bounds are checked with the other flags.
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

// instead says what to use for flags that others have and chert does not.
var instead = map[string]string{
	"tls": noTLS, "tls-cert": noTLS, "tls-key": noTLS, "cert": noTLS, "https": noTLS, "ssl": noTLS, "acme": noTLS,
	"port": listenPort, "p": listenPort,
	"host": listenHost, "bind": listenHost, "address": listenHost, "addr": listenHost,
	"root": folderArg, "dir": folderArg, "directory": folderArg, "d": folderArg,
	"cors": "use --header 'Access-Control-Allow-Origin: *'",
}

const (
	noTLS      = "chert serve has no TLS yet; put a proxy that has it in front (docs/proxy.md)"
	listenPort = "use --listen :8080, or --listen 8080 for this machine only"
	listenHost = "use --listen HOST:PORT"
	folderArg  = `the folder has no flag, as in "chert serve DIR"`
)

// explainFlag puts errors of the flag parser into chert's words. The flags' own are already.
func explainFlag(_ *cobra.Command, err error) error {
	var named interface{ GetSpecifiedName() string }
	if errors.As(err, &named) {
		if hint := instead[named.GetSpecifiedName()]; hint != "" {
			return fmt.Errorf("%w: %s", err, hint)
		}
	}
	return err
}
