package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/static"
)

// openFolder opens the folder of a command line without a configuration file.
func (o *serveOptions) openFolder(errs *slog.Logger) (*static.Handler, error) {
	if err := o.explainFolder(); err != nil {
		return nil, err
	}
	opts := o.files.options()
	opts.Logger = errs
	for _, f := range []struct{ flag, name string }{{"--spa", opts.SPA}, {"--not-found", opts.NotFound}} {
		if f.name == "" {
			continue
		}
		if err := config.CheckFile(o.dir, f.name); err != nil {
			return nil, fmt.Errorf("%s: %w", f.flag, err)
		}
	}
	return static.New(o.dir, opts)
}

// sites passes a request to the site of its host. It is immutable.
type sites struct {
	table  vhost.Table[direct.Handler]
	files  []*static.Handler
	limits limiter // of its sites; it is not closed by them
	trace  *trace  // nil but for --explain
	// forward has the upstreams; nil for --explain.
	forward *upstreams
	logs    *logs
	// tokens makes what verifies tokens, nil for a check, and release ends their use.
	tokens  *verifiers
	release []func()
	// unknown responds to requests for hosts without a site.
	unknown direct.Handler
}

func newSites(l *logs) *sites {
	return &sites{logs: l, unknown: l.ofFile(misdirected).(direct.Handler)}
}

// buildSites opens the folders of all sites or of none. Their handlers note in t what they
// do, if that is not nil.
func buildSites(cfg *config.Config, l *logs, limits limiter, tokens *verifiers, up *upstreams, errs *slog.Logger,
	t *trace) (*sites, error) {
	s := newSites(l)
	s.limits, s.tokens, s.forward, s.trace = limits, tokens, up, t
	for _, site := range cfg.Sites {
		h, err := s.open(site, errs)
		if err != nil {
			s.close()
			return nil, err
		}
		s.add(site.Hosts, t.note("site", place(site.Hosts, site.At), withHSTS(h, hstsValue(site.TLS))))
	}
	for _, r := range cfg.Redirects {
		to, err := config.ParseTarget(r.To, nil)
		if err != nil {
			s.close()
			return nil, err // config has checked it
		}
		around, err := s.policies(errs).of(r.Policy)
		if err != nil {
			s.close()
			return nil, err
		}
		h := around(&redirect{to, r.Status}).(direct.Handler)
		s.add(r.Hosts, t.note("redirect", place(r.Hosts, r.At), withHSTS(h, hstsValue(r.TLS))))
	}
	return s, nil
}

// place names a site in messages.
func place(hosts []vhost.Pattern, at config.Position) string {
	all := make([]string, len(hosts))
	for i, h := range hosts {
		all[i] = string(h)
	}
	return strings.Join(all, ", ") + " in " + at.String()
}

func (s *sites) add(hosts []vhost.Pattern, h direct.Handler) {
	for _, p := range hosts {
		s.table.Add(p, h) // config has rejected duplicates
	}
}

func (s *sites) close() {
	for _, h := range s.files {
		h.Close()
	}
	for _, f := range s.release {
		f()
	}
}

// misdirected responds to a request for a host that has no site. RFC 9110 section 15.5.20: the request was directed
// at a server that is unable to produce an authoritative response for the target URI.
var misdirected = direct.NewResponse(http.StatusMisdirectedRequest,
	http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
	[]byte("421 no site of that name is served here\n"))

// TakesAhead is what wire.TakesAhead asks.
func (s *sites) TakesAhead() bool { return true }

// ServeDirect implements direct.Handler.
func (s *sites) ServeDirect(x *direct.Exchange) bool {
	h, ok := vhost.Find(&s.table, x.Host())
	if !ok {
		h = s.unknown
	}
	return x.Wire().Admits(h) && h.ServeDirect(x)
}

// ServeHTTP implements http.Handler.
func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, ok := vhost.Find(&s.table, r.Host)
	if !ok {
		h = s.unknown
	}
	h.ServeHTTP(w, r)
}
