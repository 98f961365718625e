package config

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/static"
)

// options are how files are served, and where in the file each is set: some
// mistakes depend on the folder, and are found when that is known.
type options struct {
	static.Options
	spaAt, notFoundAt mark
	cacheSet, openSet bool
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
	precompressed, compression := !o.NoPrecompressed, !o.NoCompression
	t.boolean("listing", &o.Listing)
	t.boolean("dotfiles", &o.Dotfiles)
	t.boolean("immutable", &o.Immutable)
	t.boolean("precompressed", &precompressed)
	t.boolean("compression", &compression)
	o.NoPrecompressed, o.NoCompression = !precompressed, !compression
	if s, at, ok := t.str("spa"); ok {
		o.SPA, o.spaAt = l.inside("spa", s, at), l.mark(at)
	}
	if s, at, ok := t.str("not_found"); ok {
		o.NotFound, o.notFoundAt = l.inside("not_found", s, at), l.mark(at)
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
	header := l.headers(t)
	if t.m["headers"] == nil {
		l.errorf(t.spot.key, "%s sets no headers", t.name)
	}
	for _, it := range match {
		r := static.Rule{Match: it.text, Header: header}
		if err := r.Check(); err != nil {
			l.errorf(it.at, "%v", err)
		}
		all = append(all, r)
	}
	t.done()
	return all
}

// headers reads the table of fields of that key, by canonical name.
func (l *loader) headers(t *table) map[string]string {
	header := make(map[string]string)
	h := t.table("headers")
	if h == nil {
		return header
	}
	for _, name := range slices.Sorted(maps.Keys(h.m)) {
		value, at, ok := h.str(name)
		if !ok {
			continue
		}
		r := static.Rule{Match: MatchAll, Header: map[string]string{name: value}}
		if err := r.Check(); err != nil {
			if value != "" {
				at = h.spot.child(name).key
			}
			l.errorf(at, "%v", err)
			continue
		}
		header[http.CanonicalHeaderKey(name)] = value
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

// openShare returns how many descriptors each of so many folders may keep.
func openShare(folders int) int { return max(16, min(sharedOpen, sys.MaxFiles()/16)/folders) }

func (l *loader) site(t *table, base options, folders int) Site {
	s := Site{Hosts: l.claim(t), Policy: l.policy(t, Policy{})}
	root, at, ok := t.str("root")
	o := l.options(t, base)
	routes := t.tables("route", "[[site.route]]")
	t.done()
	s.Options = o.shared(folders)
	if t.m["root"] == nil && len(routes) == 0 {
		l.errorf(t.spot.key, "%s has no root, the folder to serve, and no [[site.route]]", t.name)
	}
	if ok {
		s.Root = l.root(root, at, o)
	}
	s.Routes = l.routes(routes, s, o, folders)
	return s
}

// shared returns the options with the part of a folder in what all of them share.
func (o options) shared(folders int) static.Options {
	if !o.cacheSet {
		o.CacheBytes = min(mostCache, max(leastCache, sharedCache/int64(max(folders, 1))))
	}
	if !o.openSet && folders > 1 {
		o.OpenFiles = openShare(folders)
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
	l.mustHave(dir, "spa", o.SPA, o.spaAt)
	l.mustHave(dir, "not_found", o.NotFound, o.notFoundAt)
	return dir
}

func (l *loader) mustHave(dir, key, name string, at mark) {
	if name == "" || !fs.ValidPath(name) {
		return
	}
	if err := CheckFile(dir, name); err != nil {
		at.errorf(at.Position, "%s: %v", key, err)
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
