package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/rfc/percent"
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
	table vhost.Table[direct.Handler]
	files []*static.Handler
}

// buildSites opens the folders of all sites or of none.
func buildSites(cfg *config.Config, errs *slog.Logger) (*sites, error) {
	s := &sites{}
	for _, site := range cfg.Sites {
		opts := site.Options
		opts.Logger = errs
		h, err := static.New(site.Root, &opts)
		if err != nil {
			s.close()
			return nil, err
		}
		s.files = append(s.files, h)
		s.add(site.Hosts, withHSTS(h, hstsValue(site.TLS)))
	}
	for _, r := range cfg.Redirects {
		s.add(r.Hosts, withHSTS(&redirect{to: r.To, status: r.Status}, hstsValue(r.TLS)))
	}
	return s, nil
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
}

// misdirected responds to a request for a host that has no site. RFC 9110 section 15.5.20: the request was directed
// at a server that is unable to produce an authoritative response for the target URI.
var misdirected = direct.NewResponse(http.StatusMisdirectedRequest,
	http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
	[]byte("421 no site of that name is served here\n"))

// ServeDirect implements direct.Handler.
func (s *sites) ServeDirect(x *direct.Exchange) bool {
	h, ok := vhost.Find(&s.table, x.Host())
	if !ok {
		x.Send(misdirected)
		return true
	}
	return h.ServeDirect(x)
}

// ServeHTTP implements http.Handler.
func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, ok := vhost.Find(&s.table, r.Host)
	if !ok {
		h = misdirected
	}
	h.ServeHTTP(w, r)
}

// redirect redirects every request.
type redirect struct {
	to     string // as in config.Redirect
	status int
}

// ServeDirect implements direct.Handler.
func (d *redirect) ServeDirect(x *direct.Exchange) bool {
	d.answer(x)
	return true
}

// ServeHTTP implements http.Handler.
func (d *redirect) ServeHTTP(w http.ResponseWriter, r *http.Request) { direct.Respond(w, r, d.answer) }

func (d *redirect) answer(x *direct.Exchange) {
	to := d.to
	if strings.Contains(to, "{host}") {
		host := vhost.Name(x.Host())
		if !plainHost(host) { // a site for every host sees any name that clients send
			x.Send(misdirected)
			return
		}
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		to = strings.ReplaceAll(to, "{host}", host)
	}
	// Last, and once: the client's text may contain {host}.
	if before, ok := strings.CutSuffix(to, "{uri}"); ok {
		to = string(percent.Append([]byte(before), targetURI(x), inTarget))
	}
	x.SetStatus(d.status)
	x.SetHeader("Location", to)
}

// plainHost reports whether a host is only a name or an address, with no byte that would end it in a URL.
func plainHost(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || 'z' < c) && (c < '0' || '9' < c) && strings.IndexByte("-._:", c) < 0 {
			return false
		}
	}
	return s != ""
}

// targetURI returns the path and query of a request; it begins with a slash.
func targetURI(x *direct.Exchange) string {
	if len(x.Wire().Target()) > 0 && x.Wire().Target()[0] == '/' {
		return string(x.Wire().Target())
	}
	// RFC 9112 section 3.2.2: the absolute form; and * of OPTIONS, which has no path.
	u := url.URL{Path: string(x.Path()), RawQuery: string(x.RawQuery())}
	if u.Path == "*" {
		u.Path = "/"
	}
	if uri := u.RequestURI(); strings.HasPrefix(uri, "/") {
		return uri
	}
	return "/"
}

// inTarget has the bytes that may be in a URL and would not end an attribute or a field; a percent sign is assumed to
// begin an escape.
var inTarget = percent.But("\"<>\\^`{|}")
