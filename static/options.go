package static

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"

	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/internal/sys"
)

// Options configure how files are served. Nil or the zero value is the safe
// default. New copies them; what they point to must not be changed afterwards.
type Options struct {
	// Index lists the file names that are tried, in order, as the index of a
	// folder. Nil means index.html; an empty slice means none.
	Index []string
	// Listing enables listings of folders that have no index, as an HTML page or,
	// for requests with ?format=json or an Accept that prefers it, as JSON. At
	// most 100,000 entries are listed. At most four listings are generated at the
	// same time; up to 64 further requests wait, and those beyond that receive
	// 503. A listing is cached for a second, or for twice the time it took to
	// generate.
	Listing bool
	// Dotfiles enables names that begin with a dot. Without it they receive 404,
	// except for /.well-known/ (RFC 8615). A link of another name that leads to
	// one within the folder is followed.
	Dotfiles bool
	// Hidden are patterns of files and folders that are treated as missing: they receive
	// 404, are not listed, are neither an index nor a compressed form of another file, and
	// a hidden folder hides all that is in it. Patterns are those of Rule.Match, here in
	// any case of letters; one without a slash is for a name in any folder. What a pattern
	// hides, FILE.br, FILE.zst and FILE.gz beside it included, Dotfiles does not show. A
	// link of another name that leads to a hidden file is followed.
	Hidden []string
	// Follow are absolute paths of folders outside of the one that is served. Links may lead
	// into them, by an absolute target or a relative one, also from one link to the next, 40
	// at most, and back. Each link on the way must be in the folder or below one of these
	// paths, and lead there, as Follow has them or as they are without links; the comparison
	// is by whole names, so /srv/a is not a prefix of /srv/ab. A link that leads out is not
	// followed if its target is a dotfile, or hidden by Hidden, by the path below the prefix.
	// Whoever may make links in the folder, or below a prefix, can have all of these served.
	// Nil means that no link leads out. It is an error if a folder does not exist, for an
	// fs.FS, and on systems other than Unix.
	Follow []string
	// Types are media types by the end of a file's name, from a dot on, as
	// ".foo": "application/x-foo". Case does not matter, and the longest applies. They have
	// precedence over the types that chert and the system know, and Rules over them.
	Types map[string]string
	// Try lists what is tried in order, instead of the file and then the folder of the
	// path. The first that exists is sent as if it had been requested. {path} stands for
	// the path of the request, which begins with a slash, and ends in one if the client
	// has written one; "{path}.html" is the file of that name. What ends in a slash is a
	// folder, for its index or listing: "{path}/" redirects to the path with a slash, as
	// usual. The last may be a status, as in "=410". If none exists, SPA and NotFound
	// apply. The last one must exist if it has no {path}. A request for a dotfile has none
	// of them, and neither does {path} lead to one.
	Try []string
	// Guarded reports names of files and folders, without the leading slash, that another
	// handler is for, with other rules about who may have them; the page of a folder, which
	// is its index or listing, has a slash at its end. They are sent for no path but their
	// own, which that handler has: Try does not lead to them, they are neither an index nor
	// a compressed form of another file, and FILE.br, FILE.zst and FILE.gz beside one, and
	// an index of a folder whose page is guarded, are treated as missing. Listings leave out
	// the files, and the folders whose page is guarded. SPA and NotFound may name one.
	// Guarded must be safe for concurrent use and not keep the name; it is called on the
	// fast path. Nil means that there are none.
	Guarded func(name string) bool
	// CleanURLs sends /about.html for /about, and redirects /about.html and /about/ to it,
	// and /docs/index.html to /docs/, with 301 and the query. It is Try with "{path}",
	// "{path}.html" and "{path}/", and cannot be used with another one. A folder and a page
	// may have the same name: /about is the page then, /about/ the folder.
	CleanURLs bool
	// SPA is the file that is sent, with status 200, for paths that do not
	// exist and that a browser navigates to: GET or HEAD with text/html in
	// Accept or, if that says nothing, with no dot in the last segment.
	SPA string
	// NotFound is the file that is sent as the body of 404 responses. Without
	// it, browsers receive an HTML page and other clients a line of text.
	NotFound string
	// Rules set fields by file pattern. All rules that match apply, in order.
	Rules []Rule
	// Immutable adds "Cache-Control: public, max-age=31536000, immutable" to
	// files with a hash in their name, such as app.3f9ac21b.js: scripts, style
	// sheets, source maps, WebAssembly, fonts and images in whose name a dot, dash
	// or underscore is followed by 8 or more characters of hexadecimal, or of the
	// base64url or base32 of Vite, Rollup and esbuild, that do not look like words and
	// a number. What might be either, and one without a digit, passes for no hash. A
	// rule overrides it, and adds the field to other files.
	Immutable bool
	// NoPrecompressed disables the search for .br, .zst and .gz files beside a
	// file. By default they are used if the file's type is compressible and they
	// are not more than two seconds older than it.
	NoPrecompressed bool
	// NoCompression disables compression of files that have no such sibling.
	NoCompression bool
	// CompressMax is the largest file, in bytes, that is compressed on the fly, but
	// never one larger than a quarter of CacheBytes. Default 8 MiB; negative: no
	// other limit.
	CompressMax int64
	// CacheBytes is the memory, in bytes, for small files, their heads,
	// compressed forms and listings. Default 64 MiB; negative: none, and no
	// compression on the fly.
	CacheBytes int64
	// CacheFileSize is the largest file, in bytes, that is kept in memory. Default
	// 16 KiB; negative: none is.
	CacheFileSize int64
	// OpenFiles is the number of descriptors of larger files that are kept open.
	// Default 4096 or a sixteenth of the process's limit, whichever is less;
	// negative: none.
	OpenFiles int
	// Logger receives errors of the file system, at level Error and at most one a
	// second, and links that lead out of the folder, at level Warn and at most one a
	// minute. Default slog.Default.
	Logger *slog.Logger
}

// A Rule sets fields of responses.
type Rule struct {
	// Match is a pattern for the path, without its leading slash, of the file
	// that is sent: * and ? within a segment, ** for any segments, [a-z],
	// {one,other}. A pattern without a slash is matched against the last
	// segment only, so "*" matches all files; "" is an error.
	Match string
	// Header are the fields to set; "" removes one. Fields that frame the
	// message cannot be set, and Content-Type cannot be removed. Responses
	// without a file's content do not get fields about content, and errors do
	// not get fields that let a cache store them.
	Header map[string]string
}

// The defaults.
const (
	defaultCompressMax = 8 << 20
	defaultCacheBytes  = 64 << 20
	defaultFileSize    = 16 << 10
	defaultOpenFiles   = 4096
	// compressMin is the smallest file that is worth compressing.
	compressMin = 512
)

// config is Options with the defaults set. Immutable.
type config struct {
	Options
	rules  []rule
	hiding filename.Set
	types  map[string]string // by lower case
	try    []filename.Candidate
}

func newConfig(o *Options) (config, error) {
	var c config
	if o != nil {
		c.Options = *o
	}
	if c.Index == nil {
		c.Index = []string{"index.html"}
	}
	c.CompressMax = cmp.Or(c.CompressMax, defaultCompressMax)
	c.CacheBytes = cmp.Or(c.CacheBytes, defaultCacheBytes)
	c.CacheFileSize = cmp.Or(c.CacheFileSize, defaultFileSize)
	if c.CacheBytes < 0 {
		c.CacheFileSize, c.NoCompression = -1, true
	}
	// One file must not fill the whole cache.
	c.CacheFileSize = min(c.CacheFileSize, c.CacheBytes/4)
	if most := max(c.CacheBytes/4, 0); c.CompressMax < 0 || c.CompressMax > most {
		c.CompressMax = most
	}
	if c.OpenFiles == 0 {
		c.OpenFiles = min(defaultOpenFiles, sys.MaxFiles()/16)
	}
	if c.CleanURLs {
		if len(c.Try) > 0 {
			return c, errTryAndClean
		}
		c.Try = cleanTry
	}
	var err error
	if c.try, err = parseTry(c.Try); err != nil {
		return c, fmt.Errorf("static: %w", err)
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	for _, name := range c.Index {
		if name == "" || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
			return c, fmt.Errorf("static: Index: %q is not a file name", name)
		}
		if c.dotfile(name) {
			return c, fmt.Errorf("static: Index: %q is a dotfile, which Options.Dotfiles would have to allow", name)
		}
	}
	if c.hiding, err = filename.NewSet(c.Hidden); err != nil {
		return c, fmt.Errorf("static: Hidden: %w", err)
	}
	c.types = make(map[string]string, len(c.Types))
	for suffix, typ := range c.Types {
		if err := filename.CheckType(suffix, typ); err != nil {
			return c, fmt.Errorf("static: Types: %w", err)
		}
		c.types[strings.ToLower(suffix)] = typ
	}
	for i := range c.Rules {
		r, err := newRule(&c.Rules[i])
		if err != nil {
			return c, fmt.Errorf("static: Rules[%d]: %w", i, err)
		}
		c.rules = append(c.rules, r)
	}
	return c, nil
}

// typeOf returns the type in Options.Types of a file, "" if there is none.
func (c *config) typeOf(name string) string {
	if len(c.types) == 0 {
		return ""
	}
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	for i := strings.IndexByte(name, '.'); i >= 0; {
		name = name[i:]
		if typ, ok := c.types[name]; ok {
			return typ
		}
		if i = strings.IndexByte(name[1:], '.'); i >= 0 {
			i++
		}
	}
	return ""
}

// lastTried returns the file at the end of Try that has the same name for every request, ""
// if there is none.
func (c *config) lastTried() string {
	if n := len(c.try); n > 0 && c.try[n-1].Fixed && !strings.HasSuffix(c.try[n-1].Before, "/") {
		return c.try[n-1].Before
	}
	return ""
}

// checkFiles checks the files that the options name.
func (c *config) checkFiles(s source) error {
	last := c.lastTried()
	for _, o := range []struct {
		option string
		name   *string
	}{{"SPA", &c.SPA}, {"NotFound", &c.NotFound}, {"Try", &last}} {
		if *o.name == "" {
			continue
		}
		name := strings.TrimPrefix(path.Clean("/"+*o.name), "/")
		if c.hiding.Has(name) {
			return fmt.Errorf("static: %s: %q is hidden by Options.Hidden", o.option, *o.name)
		}
		st, err := stat{}, error(fs.ErrInvalid)
		if name != "" && s.localName(name) {
			st, err = s.stat(name)
		}
		switch {
		case err != nil && isGone(err):
			return fmt.Errorf("static: %s: there is no file %q in the folder", o.option, *o.name)
		case err != nil:
			return fmt.Errorf("static: %s: cannot stat %q: %w", o.option, *o.name, err)
		case !st.regular:
			return fmt.Errorf("static: %s: %q is not a file", o.option, *o.name)
		}
		*o.name = name
	}
	return nil
}

// checkDir returns an error if dir cannot be served.
func checkDir(dir string) error {
	i, err := os.Stat(dir)
	switch {
	case err == nil && !i.IsDir():
		return fmt.Errorf("static: %s is not a folder", dir)
	case err != nil:
		return fmt.Errorf("static: %w", err)
	}
	return nil
}
