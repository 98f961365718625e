package config

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/static"
)

// options are how files are served, and where in the file each is set: some
// mistakes depend on the folder, and are found when that is known.
type options struct {
	static.Options
	spaAt, notFoundAt, tryAt Position
	cacheSet, openSet        bool
}

// options reads the keys that [defaults], [[site]] and [[site.route]] have in common. Keys that
// t does not have are as in base; its rules come after base's.
func (l *loader) options(t *table, base options) options {
	o := base
	if all, ok := t.list("index"); ok {
		o.Index = make([]string, 0, len(all)) // not nil: an empty list is not the default
		for _, it := range all {
			if !IsName(it.text) {
				l.errorf(it.at, "index wants names of files, not %q", it.text)
				continue
			}
			o.Index = append(o.Index, it.text)
		}
	}
	l.try(t, &o)
	precompressed, compression := !o.NoPrecompressed, !o.NoCompression
	t.boolean("listing", &o.Listing)
	t.boolean("dotfiles", &o.Dotfiles)
	t.boolean("immutable", &o.Immutable)
	t.boolean("precompressed", &precompressed)
	t.boolean("compression", &compression)
	o.NoPrecompressed, o.NoCompression = !precompressed, !compression
	if s, at, ok := t.str("spa"); ok {
		o.SPA, o.spaAt = l.inside("spa", s, at), at
	}
	if s, at, ok := t.str("not_found"); ok {
		o.NotFound, o.notFoundAt = l.inside("not_found", s, at), at
	}
	if n, _, ok := t.size("cache"); ok {
		o.CacheBytes, o.cacheSet = CacheBytes(n), true
	}
	l.positive(t, "cache_file_size", &o.CacheFileSize)
	l.positive(t, "compress_max", &o.CompressMax)
	if n, at, ok := t.number("open_files"); ok {
		if n < 1 || n > MaxOpenFiles {
			l.errorf(at, "open_files wants a number from 1 to %d", MaxOpenFiles)
		} else {
			o.OpenFiles, o.openSet = int(n), true
		}
	}
	l.fileOptions(t, &o)
	o.Rules = slices.Clone(o.Rules)
	for _, r := range t.tables("rules", ruleName(t.name)) {
		o.Rules = append(o.Rules, l.rules(r)...)
	}
	return o
}

// MaxOpenFiles is the largest number of files to be kept open.
const MaxOpenFiles = 1 << 20

// IsName reports whether s can be the name of a file in a folder.
func IsName(s string) bool { return fs.ValidPath(s) && s != "." && !strings.ContainsAny(s, "/\\\x00") }

// CacheBytes converts a size for which 0 means none to static's form.
func CacheBytes(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

func ruleName(table string) string { return "[[" + strings.Trim(table, "[]") + ".rules]]" }

func (l *loader) positive(t *table, key string, to *int64) {
	n, at, ok := t.size(key)
	if ok && n == 0 {
		l.errorf(at, "%s wants more than 0", key)
	} else if ok {
		*to = n
	}
}

// inside checks the path of a file in the folder. "" is none; a site can use it
// to override the defaults.
func (l *loader) inside(key, s string, at Position) string {
	name := strings.TrimPrefix(s, "/")
	if name != "" && !fs.ValidPath(name) {
		l.errorf(at, "%s wants a path within root, not %q", key, s)
	}
	return name
}

// rules reads one table of rules. match may be a list; without it the rule is
// for all files.
func (l *loader) rules(t *table) (all []static.Rule) {
	match, ok := t.list("match")
	if !ok {
		match = []item{{MatchAll, t.spot.key}}
	}
	header := l.headers(t, wire.CheckField)
	if t.m["headers"] == nil {
		l.errorf(t.spot.key, "%s sets no headers", t.name)
	}
	for _, it := range match {
		if _, err := filename.ParsePattern(it.text); err != nil {
			l.errorf(it.at, "%v", err)
		}
		all = append(all, static.Rule{Match: it.text, Header: header})
	}
	t.done()
	return all
}

// headers reads the table of that key.
func (l *loader) headers(t *table, check func(name, value string) error) map[string]string {
	return l.fieldsOf(t, "headers", check)
}

// fieldsOf reads a table of fields, by canonical name.
func (l *loader) fieldsOf(t *table, key string, check func(name, value string) error) map[string]string {
	header := make(map[string]string)
	h := t.table(key)
	if h == nil {
		return header
	}
	for _, name := range slices.Sorted(maps.Keys(h.m)) {
		value, at, ok := h.str(name)
		if !ok {
			continue
		}
		if err := check(name, value); err != nil {
			if value != "" {
				at = h.spot.child(name).key
			}
			l.errorf(at, "the field %q %v", name, err)
			continue
		}
		canonical := http.CanonicalHeaderKey(name)
		if _, twice := header[canonical]; twice {
			l.errorf(h.spot.child(name).key, "the field %q is there twice: the case of letters does not count", name)
			continue
		}
		header[canonical] = value
	}
	return header
}

// MatchAll is the pattern of a rule for all files.
const MatchAll = "**"

// Folders without limits of their own share these, in equal parts.
const (
	sharedCache = 256 << 20
	mostCache   = 64 << 20
	leastCache  = 256 << 10
	sharedOpen  = 4096
)

// A share is what each folder without limits of its own has.
type share struct {
	cache int64
	files int // 0: the default of static.Options
}

// shareOf divides among so many folders.
func shareOf(folders int) share {
	s := share{cache: min(mostCache, max(leastCache, sharedCache/int64(max(folders, 1))))}
	if folders > 1 {
		s.files = max(16, min(sharedOpen, sys.MaxFiles()/16)/folders)
	}
	return s
}

func (l *loader) site(t *table, cfg *Config, tls TLS, base options, limits Limits, each share) Site {
	s := Site{At: t.spot.key, Hosts: l.claim(t), Policy: l.policy(t, Policy{Limits: limits}), TLS: tls}
	s.ClientCert, s.TLS.ClientOptional = l.clientCert(t, nil, tls, false)
	s.Limits = s.Limits.own(s.Hosts)
	root, at, ok := t.str("root")
	before := len(t.asked)
	o := l.options(t, base)
	fileKeys := t.asked[before:]
	l.siteErrors(t, &o, &s.Policy)
	s.Rewrite = l.rewrite(t)
	if s.Proxy = l.forward(t, cfg, o, s.Rewrite); s.Proxy == nil {
		l.misplaced(t)
	} else if t.m["root"] != nil {
		l.errorf(t.spot.key, "%s has root and proxy; want one of them, and routes for the other", t.name)
	}
	if t.m["root"] == nil && t.m["proxy"] == nil && t.m["rewrite"] != nil {
		l.errorf(t.spot.child("rewrite").key, "rewrite of a site is for its root or proxy, and there is none")
	}
	routes := t.tables("route", "[[site.route]]")
	t.done()
	l.noFiles(t, fileKeys, routes)
	s.Options = o.shared(each)
	if t.m["root"] == nil && t.m["proxy"] == nil && len(routes) == 0 {
		l.errorf(t.spot.key, "%s has no root, the folder to serve, no proxy and no [[site.route]]", t.name)
	}
	if ok {
		s.Root = l.root(root, at, o)
	}
	s.Routes = l.routes(routes, cfg, s, o, each)
	return s
}

// noFiles reports the keys of files of a site that has no root, nor a route with one that they could be for.
func (l *loader) noFiles(t *table, fileKeys []string, routes []*table) {
	hasRoot := func(t *table) bool { return t.m["root"] != nil }
	if hasRoot(t) || slices.ContainsFunc(routes, hasRoot) {
		return
	}
	for _, key := range fileKeys {
		if t.m[key] != nil && !slices.Contains(sharedKeys, key) {
			l.errorf(t.spot.child(key).key, "%s is for files, and neither %s nor a route of it has root", key, t.name)
		}
	}
}

// shared returns the options with the part of a folder in what all of them share.
func (o options) shared(each share) static.Options {
	if !o.cacheSet {
		o.CacheBytes = each.cache
	}
	if !o.openSet && each.files > 0 {
		o.OpenFiles = each.files
	}
	return o.Options
}

// root checks a folder and the files that o names in it. It returns "" if it cannot be
// served.
func (l *loader) root(root string, at Position, o options) string {
	if root == "" {
		l.errorf(at, `root is empty; "." is the folder of this file`)
		return ""
	}
	dir := l.path(root)
	if err := l.checks.Folder(dir); err != nil {
		l.errorf(at, "root: %v", err)
		return ""
	}
	l.mustHave(dir, "spa", o.SPA, o.spaAt, &o.Options)
	l.mustHave(dir, "not_found", o.NotFound, o.notFoundAt, &o.Options)
	l.mustHave(dir, "try", lastTried(o.Try), o.tryAt, &o.Options)
	return dir
}

func (l *loader) mustHave(dir, key, name string, at Position, o *static.Options) {
	if name == "" || !fs.ValidPath(name) {
		return
	}
	if err := CheckFile(dir, name); err != nil {
		l.errorf(at, "%s: %v", key, err)
	} else if hidden, err := filename.NewSet(o.Hidden); err == nil && hidden.Has(name) {
		l.errorf(at, "%s: %q is hidden by hidden", key, name)
	}
}

// CheckFile reports whether dir has a regular file of that name, a
// slash-separated path. Links that lead out of dir are not followed.
func CheckFile(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return plain(err)
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return fmt.Errorf("there is no file %q in %q", name, dir)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q in %q is not a file", name, dir)
	}
	return nil
}
