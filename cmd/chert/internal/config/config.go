package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/static"
	"github.com/pelletier/go-toml/v2"
)

// Config is the content of a file.
type Config struct {
	Listen          []Listen       // nil if the file has none
	Log             Log            // Format is "" if the file has none
	ShutdownTimeout *time.Duration // nil if the file has none
	Timeouts        Timeouts
	Admin           string // where package admin is served; in the form of --listen; "" for none
	MaxConns        *int   // nil if the file has none, as below
	MaxConnsPerAddr *int   // 0: no limit
	Proxies         Proxies
	RateLimit       RateLimit
	Cluster         Cluster
	HTTP3           bool   // on addresses that do not name their protocols
	HTTP3EarlyData  bool   // 0-RTT
	HTTPRedirect    string // where plain HTTP is redirected; in the form of --listen; "" for none
	ACME            ACME
	Sites           []Site
	Redirects       []Redirect
	Errors          map[int]*middleware.ErrorPage // of all errors for which no site has a page
	Upstreams       []*Upstream                   // by name, and then those of addresses
}

// Site is what is served for its hosts: a folder, routes, or both.
type Site struct {
	At      Position
	Hosts   []vhost.Pattern
	Root    string // "" for none; it serves what no route matches
	Options static.Options
	Rewrite []middleware.RewriteRule // of paths in Root
	Proxy   *Proxy                   // in the place of Root; nil for none
	Policy                           // of all responses of the site, except where a route has another
	Routes  []Route
	TLS     TLS
}

// Redirect sends all requests for its hosts elsewhere.
type Redirect struct {
	At     Position
	Hosts  []vhost.Pattern
	To     string // as ParseTarget describes
	Status int
	TLS    TLS
	Policy Policy // its fields only
}

// Checks are functions for what only the command can check. None may be nil.
type Checks struct {
	// An address to listen on, after those before it; checks only its form.
	Listen func(before []string, s string) error
	Log    func(string) error // a format of the log of requests
	Folder func(string) error // a folder to serve
	// The files of a certificate and its key, and of the authorities of clients.
	Certificate func(cert, key string) error
	ClientCA    func(file string) error
	// The form of the store of limits, and its failure policy.
	RateStore, RateFailure func(string) error
}

// MaxConns is the largest value of Config.MaxConns.
const MaxConns = 1 << 30

// maxFile is the largest file that is read, in bytes.
const maxFile = 1 << 20

// Load reads the file and checks everything that can be checked without serving
// it. The error is Problems. Relative paths in the file are relative to its
// folder.
func Load(file string, checks Checks) (*Config, error) {
	d := &doc{file: file}
	var cfg *Config
	if data, err := read(file); err != nil {
		d.errorf(Position{}, "%v", err)
	} else {
		cfg = d.load(data, checks)
	}
	if len(d.problems) > 0 {
		d.problems.sort()
		return nil, d.problems
	}
	return cfg, nil
}

func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("no such file")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read it: %w", plain(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read it: %w", plain(err))
	}
	if len(data) > maxFile {
		return nil, errors.New("longer than 1 MiB")
	}
	return data, nil
}

// readPart reads a file that the configuration names. One that is not regular, such as a
// pipe, could be waited for without end.
func readPart(file string) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("this is not a regular file")
	}
	return read(file)
}

// plain returns an error of package os without the path, which the message has
// already.
func plain(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// Editors on Windows begin files with these.
var (
	utf8BOM  = []byte("\xef\xbb\xbf")
	utf16BOM = [][]byte{[]byte("\xff\xfe"), []byte("\xfe\xff")}
)

func (d *doc) load(data []byte, checks Checks) *Config {
	l := &loader{doc: d, checks: checks}
	l.in("")
	t := l.parse("", topOfFile, data)
	var included []*table
	if t != nil {
		included = l.include(t)
	}
	if len(l.problems) > 0 {
		return nil // what follows from a variable that is not set, or a file that cannot be read, would hide it
	}
	return l.config(t, included)
}

// parse reads the tables of a file, which is "" for the one that includes others. It
// returns nil if that is not TOML.
func (l *loader) parse(file, name string, data []byte) *table {
	if slices.ContainsFunc(utf16BOM, func(bom []byte) bool { return bytes.HasPrefix(data, bom) }) {
		l.errorf(Position{File: file}, "this is UTF-16; save it as UTF-8")
		return nil
	}
	data = bytes.TrimPrefix(data, utf8BOM) // UTF-8 has only one byte order to mark
	var m map[string]any
	if err := toml.Unmarshal(data, &m); err != nil {
		at := Position{File: file}
		if de, ok := errors.AsType[*toml.DecodeError](err); ok {
			at.Line, at.Column = de.Position()
		}
		text := strings.TrimPrefix(err.Error(), "toml: ")
		if text == "key site already exists as a table, but should be an array table" {
			text = "[[site]] comes after a table such as [[site.route]]; the tables of a site follow it"
		}
		l.errorf(at, "%s", text)
		return nil
	}
	l.secret("the configuration", cmp.Or(file, l.file), Position{File: file})
	spot := positions(file, data)
	spot.key.File = file
	for key := range m {
		m[key] = l.expand(m[key], spot.child(key))
	}
	return &table{doc: l.doc, name: name, m: m, spot: spot}
}

// loader makes a Config from tables.
type loader struct {
	*doc
	dir    string // of the file that is being read; absolute
	checks Checks
	hosts  vhost.Table[Position] // and where each is named

	log     Log      // of the file
	secrets []secret // files that no site may serve

	named  map[string]*Upstream // of [upstream.NAME]
	byAddr map[string]*Upstream // of addresses in the place of names
}

// in makes relative paths those of a file, which is "" for the one that includes others. What is made of them is the
// same by whichever name the file is loaded: chert serve reloads it by its absolute one.
func (l *loader) in(file string) {
	if file == "" {
		file = l.file
	}
	l.dir = filepath.Dir(file)
	if abs, err := filepath.Abs(l.dir); err == nil {
		l.dir = abs
	}
}

func (l *loader) config(t *table, included []*table) *Config {
	cfg := &Config{}
	cfg.Listen = l.listen(t)
	if own := l.logOf(t, Log{}); own != nil {
		cfg.Log, l.log = *own, *own
	}
	if timeout, ok := t.duration("shutdown_timeout"); ok {
		cfg.ShutdownTimeout = &timeout
	}
	cfg.Timeouts = l.timeouts(t)
	if s, at, ok := t.str("admin"); ok {
		s = l.endpoint(s)
		if err := l.checks.Listen(addresses(cfg.Listen), s); err != nil {
			l.errorf(at, "admin: %v", err)
		} else {
			cfg.Admin = s
		}
	}
	cfg.MaxConns = t.count("max_conns", 1, MaxConns)
	cfg.MaxConnsPerAddr = t.count("max_conns_per_addr", 0, MaxConns)
	if p := l.proxies(t, "trusted_proxies"); p != nil {
		cfg.Proxies = *p
	}
	if cluster := t.table("cluster"); cluster != nil {
		cfg.Cluster = l.cluster(cluster)
	}
	if limit := t.table("rate_limit"); limit != nil {
		cfg.RateLimit = l.rateLimit(limit, cfg.Cluster.Store != "" && cfg.Cluster.Limits)
	}
	cfg.Errors, _ = l.errorPages(t, nil)
	l.tls(t, cfg)
	l.upstreams(t, cfg)
	base, baseTLS, limits := options{}, TLS{}, Limits{}
	if defaults := t.table("defaults"); defaults != nil {
		baseTLS = l.tlsOptions(defaults, TLS{})
		base = l.options(defaults, options{})
		limits = l.limits(defaults, Limits{})
		defaults.done()
	}
	sites, redirects := t.tables("site", "[[site]]"), t.tables("redirect", "[[redirect]]")
	for _, other := range included {
		sites = append(sites, other.tables("site", "[[site]]")...)
		redirects = append(redirects, other.tables("redirect", "[[redirect]]")...)
		other.done()
	}
	each := shareOf(countFolders(sites))
	var at []Position
	for _, s := range sites {
		l.in(s.file())
		tls := l.tlsOptions(s, baseTLS)
		site := l.site(s, cfg, tls, base, limits, each)
		l.autoNames(s, tls, site.Hosts)
		cfg.Sites, at = append(cfg.Sites, site), append(at, s.spot.key)
	}
	for _, r := range redirects {
		l.in(r.file())
		tls := l.tlsOptions(r, baseTLS)
		redirect := l.redirect(r)
		redirect.TLS = tls
		l.autoNames(r, tls, redirect.Hosts)
		cfg.Redirects, at = append(cfg.Redirects, redirect), append(at, r.spot.key)
	}
	l.in("")
	if limit := t.m["rate_limit"]; cfg.RateLimit.Store != "" && limit.(map[string]any)["limit"] == nil &&
		!cfg.siteRates() {
		l.noLimit(t.spot.child("rate_limit").key)
	}
	l.share(t, cfg)
	l.exposed(cfg)
	l.tlsTogether(t, cfg, at)
	t.done()
	if len(sites)+len(redirects) == 0 && len(l.problems) == 0 {
		l.errorf(Position{}, "no site; want at least one [[site]] or [[redirect]]")
	}
	return cfg
}

// path makes a relative path relative to the file's folder.
func (l *loader) path(p string) string { return inFolder(l.dir, p) }

func inFolder(dir, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

// claim reads the hosts of a site. No two may have the same.
func (l *loader) claim(t *table) (hosts []vhost.Pattern) {
	all, ok := t.list("hosts")
	list, _ := t.m["hosts"].([]any)
	switch {
	case t.m["hosts"] == nil:
		l.errorf(t.spot.key, `%s has no hosts; "*" stands for all that no other site is for`, t.name)
	case ok && len(all)+len(list) == 0:
		l.errorf(t.spot.child("hosts").key, `hosts is empty; "*" stands for all that no other site is for`)
	}
	for _, it := range all {
		p, err := vhost.Parse(it.text)
		if err != nil {
			l.errorf(it.at, "host %q: %v", it.text, err)
			continue
		}
		if !l.hosts.Add(p, it.at) {
			l.errorf(it.at, "host %q has a site already, in %v", p, l.seen(l.hosts.Get(p), it.at))
			continue
		}
		hosts = append(hosts, p)
	}
	return hosts
}

// seen returns a position for a message about another one, which names its own file only.
func (l *loader) seen(p, from Position) Position {
	if p.File == from.File {
		p.File = ""
	} else if p.File == "" {
		p.File = l.file
	}
	return p
}

func (l *loader) redirect(t *table) Redirect {
	r := Redirect{At: t.spot.key, Hosts: l.claim(t), Status: 301}
	to, at, ok := t.str("to")
	switch {
	case ok:
		r.To = to
		if _, err := ParseTarget(to, nil); err != nil {
			l.errorf(at, "to: %v", err)
		}
	case t.m["to"] == nil:
		l.errorf(t.spot.key, `%s goes nowhere; want to = "https://example.com{uri}"`, t.name)
	}
	l.redirectStatus(t, &r.Status)
	l.fields(t, &r.Policy)
	t.done()
	return r
}

func (l *loader) redirectStatus(t *table, to *int) {
	n, at, ok := t.number("status")
	if !ok {
		return
	}
	switch n {
	case 301, 302, 303, 307, 308:
		*to = int(n)
	default:
		l.errorf(at, "status wants 301 or 308 (for good), 302 or 307 (for now), or 303")
	}
}
