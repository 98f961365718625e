package main

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/basicauth"
	"github.com/chert-http/chert/middleware/forwardauth"
)

// policies makes the middleware of sites and routes. Those that share an authentication
// share what it remembers, and those that share a limit what it counts.
type policies struct {
	trace      *trace // nil but for --explain
	logs       *logs
	limits     limiter
	errs       *slog.Logger
	sites      *sites
	tokens     map[*config.JWT]func(http.Handler) http.Handler
	forward    map[*forwardauth.Options]*forwardauth.Forward
	auth       map[*basicauth.Options]func(http.Handler) http.Handler
	rates      map[*config.SiteRate]func(http.Handler) http.Handler
	concurrent map[*config.Concurrent]func(http.Handler) http.Handler
}

func (s *sites) policies(errs *slog.Logger) *policies {
	return &policies{
		trace: s.trace, logs: s.logs, limits: s.limits, errs: errs, sites: s,
		tokens:     make(map[*config.JWT]func(http.Handler) http.Handler),
		forward:    make(map[*forwardauth.Options]*forwardauth.Forward),
		auth:       make(map[*basicauth.Options]func(http.Handler) http.Handler),
		rates:      make(map[*config.SiteRate]func(http.Handler) http.Handler),
		concurrent: make(map[*config.Concurrent]func(http.Handler) http.Handler),
	}
}

// step is one middleware of a policy. Its name is the key of the file.
type step struct {
	name string
	wrap func(http.Handler) http.Handler
}

// of returns the middleware of a policy. Around a direct.Handler it is one.
func (p *policies) of(c config.Policy) (func(http.Handler) http.Handler, error) {
	var all []step // the first is the outermost
	for _, log := range p.logs.of(c.Log) {
		all = append(all, step{"log", log})
	}
	if len(c.Headers)+len(c.HeaderRules) > 0 {
		headers, err := middleware.Headers(&middleware.HeadersOptions{Set: c.Headers, Rules: c.HeaderRules})
		if err != nil {
			return nil, err
		}
		all = append(all, step{"headers", headers})
	}
	if len(c.Errors) > 0 {
		pages, err := middleware.ErrorPages(&middleware.ErrorPagesOptions{Pages: c.Errors})
		if err != nil {
			return nil, err
		}
		all = append(all, step{"errors", pages})
	}
	if c.Access != nil {
		access, err := middleware.IPFilter(c.Access)
		if err != nil {
			return nil, err
		}
		all = append(all, step{"allow, deny", access})
	}
	if c.ClientCert != nil {
		cert, err := p.clientCert(c.ClientCert)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	if c.Auth != nil {
		auth, ok := p.auth[c.Auth]
		if !ok {
			var err error
			if auth, err = basicauth.New(c.Auth); err != nil {
				return nil, err
			}
			p.auth[c.Auth] = auth
		}
		all = append(all, step{"basic_auth", auth})
	}
	if c.JWT != nil {
		tokens, err := p.tokensOf(c.JWT)
		if err != nil {
			return nil, err
		}
		all = append(all, tokens)
	}
	if c.Forward != nil {
		forward, err := p.forwardOf(c.Forward)
		if err != nil {
			return nil, err
		}
		all = append(all, forward)
	}
	limits, err := p.limited(c.Limits)
	if err != nil {
		return nil, err
	}
	all = append(all, limits...)
	return func(h http.Handler) http.Handler {
		for _, s := range slices.Backward(all) {
			h = p.trace.step(s)(h)
		}
		return h
	}, nil
}

// clientCert returns what looks at the certificate of a client, but for --explain.
func (p *policies) clientCert(o *middleware.ClientCertOptions) (step, error) {
	if p.trace != nil {
		return step{"client_certificate, not looked at", func(h http.Handler) http.Handler { return h }}, nil
	}
	wrap, err := middleware.ClientCert(o)
	return step{"client_certificate", wrap}, err
}

// tokensOf returns what verifies tokens, but for a check: that fetches no keys.
func (p *policies) tokensOf(c *config.JWT) (step, error) {
	if p.sites.tokens == nil {
		return step{"jwt, not verified", func(h http.Handler) http.Handler { return h }}, nil
	}
	wrap := p.tokens[c]
	if wrap == nil {
		v, release, err := p.sites.tokens.use(c)
		if err != nil {
			return step{}, err
		}
		p.sites.release = append(p.sites.release, release)
		wrap = v.Wrap
		p.tokens[c] = wrap
	}
	return step{"jwt", wrap}, nil
}

// forwardOf returns what asks another server, but for --explain. Its idle connections close
// by themselves.
func (p *policies) forwardOf(o *forwardauth.Options) (step, error) {
	if p.trace != nil {
		return step{"forward_auth, not asked", func(h http.Handler) http.Handler { return h }}, nil
	}
	f, ok := p.forward[o]
	if !ok {
		own := *o
		own.Logger = p.errs
		var err error
		if f, err = forwardauth.New(&own); err != nil {
			return step{}, err
		}
		p.forward[o] = f
	}
	return step{"forward_auth", f.Wrap}, nil
}

// limited returns the middleware of limits. A request that one refuses is not counted by
// those after it.
func (p *policies) limited(c config.Limits) (all []step, err error) {
	if c.Rate != nil {
		rate, ok := p.rates[c.Rate]
		if !ok {
			limit, err := p.limits.limit(c.Rate.Name, c.Rate.Rates)
			if err != nil {
				return nil, err
			}
			rate = func(next http.Handler) http.Handler {
				h := limit(next)
				if _, ok := h.(direct.Handler); !ok {
					return onOrdinary{h}
				}
				return h
			}
			p.rates[c.Rate] = rate
		}
		all = append(all, step{"rate", rate})
	}
	if c.Concurrent != nil {
		concurrent, ok := p.concurrent[c.Concurrent]
		if !ok {
			concurrent = middleware.InFlight(&middleware.InFlightOptions{Max: -1, PerClient: c.Concurrent.Max})
			p.concurrent[c.Concurrent] = concurrent
		}
		all = append(all, step{"concurrent", concurrent})
	}
	if c.Body > 0 {
		all = append(all, step{"body", middleware.BodyLimit(&middleware.BodyLimitOptions{MaxSize: c.Body})})
	}
	return append(all, p.timed(c)...), nil
}

// timed returns the middleware of limits that bound times. The bandwidth is the last: those
// before it do not see a request again for it. For --explain there is nothing to wait for.
func (p *policies) timed(c config.Limits) (all []step) {
	if d := c.BodyTime; d > 0 {
		all = append(all, step{"body_timeout", middleware.BodyTimeout(&middleware.BodyTimeoutOptions{Limit: d})})
	}
	if d := c.ResponseTime; d > 0 {
		all = append(all, step{"response_timeout",
			middleware.ResponseTimeout(&middleware.ResponseTimeoutOptions{Limit: d})})
	}
	if c.Bandwidth.Rate > 0 {
		bandwidth := step{"bandwidth, no wait", func(h http.Handler) http.Handler { return h }}
		if p.trace == nil {
			bandwidth = step{"bandwidth", middleware.Bandwidth((*middleware.BandwidthOptions)(&c.Bandwidth))}
		}
		all = append(all, bandwidth)
	}
	return all
}
