package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/spf13/cobra"
)

const proxyLong = `Forward requests to servers: a reverse proxy. ADDR is host:port, a port of this
machine, unix:/path, http://HOST or https://HOST; several share the requests.

Only this machine can reach the proxy unless --listen or $PORT opens it. WebSockets
and other upgrades, event streams and trailers pass through. X-Forwarded-For,
-Proto, -Host and -Port are set; those of --trusted-proxy are added to. A server
that fails gets no requests for a while, and requests are tried again only where
that is safe.

Sites, routes, canaries and all else are in a file: "chert serve --config FILE".`

const proxyExample = `  chert proxy 9000                             what listens on port 9000
  chert proxy 9000 --listen :443 --tls-auto example.com --http-redirect :80
  chert proxy 10.0.0.1:8080 10.0.0.2:8080 --check /healthz --listen :8080
  chert proxy 10.0.0.1:8080 10.0.0.2:8080 --balance 'hash cookie:session'
  chert proxy https://api.example.com --host upstream
  chert proxy unix:/run/app.sock --log json --admin 9080`

func newProxyCmd() *cobra.Command {
	o := serveOptions{runFlags: runFlags{log: logOff}}
	var balance, check, host string
	cmd := &cobra.Command{
		Use:               "proxy ADDR...",
		Short:             "Forward requests to servers",
		Long:              proxyLong,
		Example:           proxyExample,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New(`want an address, as in "chert proxy 127.0.0.1:9000"`)
			}
			up, err := config.NewUpstream(args, balance, check)
			if err != nil {
				return err
			}
			if err := config.CheckProxyHost(host); host != "" && err != nil {
				return fmt.Errorf("--host: %w", err)
			}
			o.forward = &config.Proxy{Upstream: up, Host: host}
			if err := o.check(cmd, nil); err != nil {
				return err
			}
			listen, _ := o.addresses()
			for _, s := range up.Options.Servers {
				if slices.ContainsFunc(listen, func(e endpoint) bool { return e.isAt(s.Addr) }) {
					return fmt.Errorf("%s is where chert itself listens; choose another address with --listen", s.Addr)
				}
			}
			o.dir = ""
			if err := serve(&o, running(cmd), cmd.ErrOrStderr()); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.runFlags.add(cmd)
	f.StringVar(&balance, "balance", "least", "how a server is chosen: `policy` least, round-robin, "+
		"'hash client|uri|path|header:NAME|cookie:NAME|query:NAME',\nor sticky")
	f.StringVar(&check, "check", "", "ask servers for this `path` every 5s, and use those that answer 2xx")
	f.StringVar(&host, "host", "", "the Host field for the servers: `name`, or \"upstream\" for their address; "+
		"by default the client's")
	o.tls.add(cmd)
	o.rates.add(cmd)
	o.conns.add(cmd)
	f.Var(&o.proxies, "trusted-proxy", "trust this proxy's X-Forwarded-For: an address, a prefix such as 10.0.0.0/8, "+
		"or unix;\nmay be repeated")
	// Not "hash KEY": shells do not agree on how a word with a space is completed.
	mustComplete(cmd, "balance", cobra.FixedCompletions([]string{"least", "round-robin", "sticky"},
		cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"check", "host", "trusted-proxy"} {
		mustComplete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// loadForward is load of "chert proxy".
func (s *server) loadForward(up *setup) (*setup, error) {
	cfg := s.o.tls.config()
	cfg.Sites[0].Proxy, cfg.Upstreams = s.o.forward, []*config.Upstream{s.o.forward.Upstream}
	if err := s.secure(up, cfg); err != nil {
		return nil, err
	}
	limits, err := s.limits(cfg)
	if err == nil {
		err = s.openLogs(up, cfg)
	}
	if err != nil {
		limits.close()
		return nil, err
	}
	all, err := s.build(up, cfg, limits)
	if err != nil {
		limits.close()
		up.logs.close()
		return nil, err
	}
	if !cfg.Sites[0].TLS.Auto {
		up.hosts = nil
	}
	up.what = "upstream " + quote(showUpstream(s.o.forward.Upstream))
	if err := s.generate(up, cfg, limits, all); err != nil {
		all.close()
		return nil, err
	}
	up.gen.release = all.release
	return up, nil
}
