package main

import (
	"net/http"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/middleware"
)

// proxiesFlag is the value of --trusted-proxy.
type proxiesFlag struct{ config.Proxies }

func (f *proxiesFlag) Set(s string) error { return f.Add(s) }

// Type is the name of the value in the help.
func (f *proxiesFlag) Type() string { return "cidr" }

// behind sets the address of a request, for h, to that of the client that trusted proxies report. The log, which is
// outside of it, sees it too: the request keeps it. With ids their ids of requests are used as well.
func behind(h http.Handler, p config.Proxies, ids bool) http.Handler {
	if len(p.Prefixes) == 0 && !p.Unix {
		return h
	}
	// config.Proxies.Add refuses the prefixes that RealIP would.
	return middleware.Must(middleware.RealIP(&middleware.RealIPOptions{Trusted: p.Prefixes, TrustLocal: p.Unix,
		Note: ids}))(h)
}
