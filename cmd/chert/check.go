package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/certs"
	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/ratelimit"
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

If the file is no TOML, one that it includes cannot be read, or a variable is not set,
only that is reported: what follows from it would hide it.

Only the file and the folders that it names are opened: neither an address nor
the store of rate limits or of [cluster]; of that it says what is shared. Names of
upstream servers are looked up, for 3 s at most, and a warning says which have no
address. Certificates that expire soon or are not for their hosts are a warning on
stderr, as is what is permitted and probably not meant. With http3 the records for
the DNS are printed. Exit codes: 0 if there are no mistakes, 1 if there are, 2 for a
wrong command line.

--explain sends a request through the handlers of the file, without a server, and
prints the site, the route, each step with its result, and the response. The
limits of the rate, and certificates of clients, are not looked at.`

const checkExample = `  chert check /etc/chert.toml && kill -HUP $(pidof chert)
  chert check new.toml --against /etc/chert.toml
  chert check /etc/chert.toml --explain https://example.com/a/b --from 192.0.2.1
  chert check /etc/chert.toml --explain https://example.com/ --header 'Authorization: Basic YTpi'`

func newCheckCmd() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:     "check FILE",
		Short:   "Check a configuration file",
		Long:    checkLong,
		Example: checkExample,
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
			for _, name := range []string{"header", "method", "from", "at"} {
				if cmd.Flags().Changed(name) && o.target == "" {
					return fmt.Errorf("--%s is for a request that --explain describes", name)
				}
			}
			if o.against != "" && o.target != "" {
				return errors.New("--against and --explain contradict each other; leave one out")
			}
			return check(args[0], &o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.target, "explain", "", "tell what happens to a request for this `URL`, step by step")
	f.StringArrayVar(&o.fields, "header", nil, "a `field` of that request, \"NAME: VALUE\"; may be repeated")
	f.StringVar(&o.method, "method", http.MethodGet, "the `method` of that request")
	f.StringVar(&o.from, "from", "127.0.0.1", "the `address` it comes from, or \"unix\"")
	f.StringVar(&o.against, "against", "", "tell which share of the keys of upstreams with a hash move\nfrom the "+
		"servers of this `file`, an older one")
	f.StringVar(&o.at, "at", "", "the `address` it comes to, as in listen; plain HTTP comes to\nhttp_redirect "+
		"otherwise, if there is one")
	return cmd
}

// check prints what is wrong with a file, or what happens to the request of o.
func check(file string, o *explainOptions, stdout, stderr io.Writer) error {
	if o.target != "" {
		if _, err := o.request(); err != nil {
			return err
		}
	}
	cfg, err := config.Load(file, configChecks)
	if err == nil {
		discard := slog.New(slog.DiscardHandler)
		pool := &upstreamPool{errs: discard}
		defer pool.close()
		var up *upstreams
		var all *sites
		if err = checkExposed(cfg, cfg.ACME.Storage); err == nil {
			if up, _, err = pool.open(unchecked(cfg), config.Proxies{}); err == nil {
				all, err = buildSites(cfg, nil, limiter{store: ratelimit.NewMemory(nil)}, nil, up, discard, nil)
			}
		}
		if err == nil {
			all.close()
			for _, text := range slices.Concat(fileWarnings(cfg), doubts(cfg), unresolved(cfg)) {
				fmt.Fprintf(stderr, "%s: warning: %s\n", file, text)
			}
			if o.target != "" {
				return explain(cfg, o, stdout)
			}
			fmt.Fprintf(stdout, "%s: ok, %s\n", file, showCount(cfg))
			if cfg.Cluster.Store != "" {
				fmt.Fprintf(stdout, "%s: shared with other instances: %s\n", file, cmp.Or(
					strings.Join(cfg.Cluster.Shared(), ", "), "nothing"))
			}
			for i, record := range dnsRecords(cfg) {
				if i == 0 {
					fmt.Fprintf(stdout, "%s: with these records of the DNS browsers begin by HTTP/3:\n", file)
				}
				fmt.Fprintln(stdout, record)
			}
			if o.against != "" {
				return compare(pool, up, o.against, stdout, stderr)
			}
			return nil
		}
		err = fmt.Errorf("%s: %w", file, err)
	}
	// Not by report: lines of compilers begin with the file, and editors expect
	// that.
	fmt.Fprintln(stderr, err)
	return failure{errSaid}
}
