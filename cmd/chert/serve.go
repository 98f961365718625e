package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/spf13/cobra"
)

// serveOptions is the command line of "chert serve".
type serveOptions struct {
	runFlags
	dir     string
	config  string        // if "", dir is served, or forward
	forward *config.Proxy // of "chert proxy"; nil otherwise
	files   fileFlags
	tls     tlsFlags
	rates   rateFlags
	conns   connFlags
	proxies proxiesFlag
	given   func(flag string) bool
}

// title is what the admin page begins with.
func (o *serveOptions) title(what string) string {
	if o.forward != nil {
		return "chert proxy: " + showUpstream(o.forward.Upstream)
	}
	return "chert serve " + what
}

// check checks the flags together. args are the remaining arguments.
func (o *serveOptions) check(cmd *cobra.Command, args []string) error {
	o.given = cmd.Flags().Changed
	files := append(o.files.seen(o.given), o.tls.seen(o.given)...)
	if err := o.runFlags.check(o.given); err != nil {
		return err
	}
	switch {
	case !o.given("config"):
	case "c"+o.config == "config": // "-config" is -c with the value "onfig"
		return errOneDash("config")
	case o.config == "":
		return errors.New("--config wants the name of a file")
	case len(args) > 0:
		return errors.New("--config and a folder contradict each other; the folders of a configuration are in its file")
	case len(files) > 0:
		return fmt.Errorf("--config and %s contradict each other; write it into the file", files[0])
	}
	if o.given("rate-store") {
		if err := checkStore(string(o.rates.store)); err != nil {
			return fmt.Errorf("--rate-store: %w", err)
		}
	}
	o.dir = "."
	if len(args) > 0 {
		o.dir = args[0]
	}
	if o.config != "" {
		return nil // the file may have what these flags require
	}
	if err := o.tls.check(o.given); err != nil {
		return err
	}
	if err := o.checkUpgrade(); err != nil {
		return err
	}
	_, err := o.rates.over(config.RateLimit{}, false, o.given)
	return err
}

// checkUpgrade checks that --http-redirect is another address than those of --listen.
func (o *serveOptions) checkUpgrade() error {
	if o.tls.redirect.text == "" {
		return nil
	}
	all, _ := o.addresses()
	one, _ := parseEndpoint(o.tls.redirect.text)
	for _, other := range all {
		if err := one.clash(other); err != nil {
			return fmt.Errorf("--http-redirect %s: %w", one, err)
		}
	}
	return nil
}

const serveLong = `Serve the files of a folder, the current one if none is given, or the sites of
a configuration file.

Only this machine can reach the server unless --listen or $PORT opens it:
--listen :8080 opens it to the network. A unix socket takes a mode and a group:
unix:/run/chert.sock?mode=0660&group=www-data. Links that lead out of the folder
are not followed. Names that begin with a dot are hidden.

With --tls-cert, --tls-self or --tls-auto every address speaks TLS. Certificates
are loaded again when their files change. --tls-auto accepts the terms of the
authority, by default Let's Encrypt.

SIGHUP opens the folder again, or reads the configuration file again: no
connection is dropped, and a file with mistakes changes nothing. "chert check
FILE" reports them beforehand.

SIGTERM, SIGQUIT or SIGINT (Ctrl-C) stops it after the running requests are
done; a second one stops it at once. Exit codes: 0 after a clean stop, 1 after
a failure (requests cut off included), 2 for a wrong command line.`

const serveExample = `  chert serve --open                     the current folder, in a browser on this machine
  chert serve /srv/www --listen :8080    for the network
  chert serve dist --spa --immutable     a single-page app
  chert serve --header '*.html=Cache-Control: no-cache' --not-found 404.html
  chert serve /srv/www --listen :8080 --rate-limit 100/s --rate-store redis://127.0.0.1:6379/0
  chert serve /srv/www --listen 'unix:/run/chert.sock?mode=0660&group=www-data' --log json
  chert serve --config /etc/chert.toml   many sites
  chert serve --tls-self --listen 8443   with TLS, for development
  chert serve /srv/www --listen :443 --http-redirect :80 --tls-auto example.com`

func newServeCmd() *cobra.Command {
	o := serveOptions{runFlags: runFlags{log: logOff}}
	cmd := &cobra.Command{
		Use:     "serve [DIR]",
		Short:   "Serve the files of a folder",
		Long:    serveLong,
		Example: serveExample,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1 && cmd.Flags().Changed("spa"):
				return fmt.Errorf("one folder at most, not %d; the file of --spa is given as --spa=FILE", len(args))
			case len(args) > 1:
				return fmt.Errorf("one folder at most, not %d; a name with spaces needs quotes", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			if err := serve(&o, running(cmd), cmd.ErrOrStderr()); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *serveOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	o.runFlags.add(cmd)
	f.StringVarP(&o.config, "config", "c", "", "serve the sites of this `file` instead of a folder")
	mustComplete(cmd, "config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	o.tls.add(cmd)
	o.files.add(cmd)
	o.rates.add(cmd)
	o.conns.add(cmd)
	f.Var(&o.proxies, "trusted-proxy", "trust this proxy's X-Forwarded-For: an address, a prefix such as 10.0.0.0/8, "+
		"or unix;\nmay be repeated. Rate limits and logs then use the forwarded client address")
	mustComplete(cmd, "trusted-proxy", cobra.NoFileCompletions)
}

// startLine is printed on stdout, for people and for scripts that use port 0.
func startLine(up *setup, ls []listener) string {
	line := "chert: serving " + up.what + " at " + showAll(ls) + opensHint(up.listen, up.chosen) + networkLine(ls,
		net.InterfaceAddrs)
	if up.tls != nil && up.tls.trust != "" {
		line += "\nchert: the certificate is signed by an authority of chert's own; clients must trust " +
			quote(up.tls.trust) +
			", as in curl --cacert; chert cert --help says how browsers do"
	}
	return line
}
