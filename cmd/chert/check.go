package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/certs"
	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/spf13/cobra"
)

// configChecks are the checks that package config leaves to the command.
var configChecks = config.Checks{
	Listen: func(before []string, s string) error {
		var all endpoints
		for _, other := range before {
			all.Set(other) // these are valid
		}
		return all.Set(s)
	},
	Log:    func(s string) error { return new(logFormat).Set(s) },
	Folder: checkFolder,
	Certificate: func(cert, key string) error {
		_, err := certs.Load(cert, key, time.Now())
		return err
	},
	ClientCA: func(file string) error {
		_, err := certs.LoadPool(file)
		return err
	},
	RateStore:   checkStore,
	RateFailure: checkFailure,
}

const checkLong = `Read a configuration file and report all mistakes in it, a line for each:

  FILE:LINE:COLUMN: the mistake

Only the file and the folders that it names are opened: neither an address nor
the store of rate limits. Certificates that expire soon or are not for their hosts
are a warning on stderr. Exit codes: 0 if there are no mistakes, 1 if there are,
2 for a wrong command line.`

func newCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "check FILE",
		Short:   "Check a configuration file",
		Long:    checkLong,
		Example: "  chert check /etc/chert.toml && kill -HUP $(pidof chert)",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New(`want one file, as in "chert check FILE"`)
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return check(args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

func check(file string, stdout, stderr io.Writer) error {
	cfg, err := config.Load(file, configChecks)
	if err == nil {
		var all *sites
		if err = checkExposed(cfg, cfg.ACME.Storage); err == nil {
			all, err = buildSites(cfg, nil, slog.New(slog.DiscardHandler))
		}
		if err == nil {
			all.close()
			for _, text := range fileWarnings(cfg) {
				fmt.Fprintf(stderr, "%s: warning: %s\n", file, text)
			}
			fmt.Fprintf(stdout, "%s: ok, %s\n", file, showCount(cfg))
			return nil
		}
		err = fmt.Errorf("%s: %w", file, err)
	}
	// Not by report: lines of compilers begin with the file, and editors expect
	// that.
	fmt.Fprintln(stderr, err)
	return failure{errSaid}
}
