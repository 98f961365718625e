package static

import (
	"fmt"
	"io/fs"
	"log"
	"os"
	"path"
	"strings"

	"github.com/chert-http/chert/internal/sys"
)

// Options say how files are served. Nil or zero is the safe default. They are
// copied by New; what they point to must not be changed afterwards.
type Options struct {
	// Index are the names that are tried, in order, for a folder; nil is
	// index.html, empty is none.
	Index []string
	// Listing lists folders that have no index, as an HTML page or, for
	// requests with ?format=json or that prefer it by Accept, as JSON. At most
	// 100,000 entries are listed. At most four listings are made at the same time;
	// others wait, and beyond 64 of these requests are answered 503. A listing is
	// shown for a second, or for twice as long as it took to make.
	Listing bool
	// Dotfiles serves names that begin with a dot. Without it they do not
	// exist, but for /.well-known/ (RFC 8615). A link of another name that leads
	// to one within the folder is followed.
	Dotfiles bool
	// SPA is the file that is answered, with status 200, for paths that are not
	// there and that a browser navigates to: GET or HEAD with text/html in
	// Accept or, if that says nothing, with no dot in the last segment.
	SPA string
	// NotFound is the file that is the body of 404s; without it they are a page
	// for browsers and a line of text for others.
	NotFound string
	// Rules are fields by pattern. All that match apply, in order.
	Rules []Rule
	// Immutable adds "Cache-Control: public, max-age=31536000, immutable" to
	// files with a hash in their name, such as app.3f9ac21b.js. A rule overrides
	// it.
	Immutable bool
	// NoPrecompressed does not look for .br, .zst and .gz beside a file. They are
	// looked for if its type gains by compression, and not sent if they are more
	// than two seconds older than it.
	NoPrecompressed bool
	// NoCompression does not compress what has no such sibling.
	NoCompression bool
	// CompressMax is the largest file, in bytes, that is compressed on the fly.
	// 0 is 8 MiB.
	CompressMax int64
	// CacheBytes is the memory, in bytes, for small files, their heads,
	// compressed forms and listings. 0 is 64 MiB. Negative is none; nothing is
	// compressed on the fly then.
	CacheBytes int64
	// CacheFileSize is the largest file, in bytes, that is kept in memory. 0 is
	// 16 KiB, negative is none.
	CacheFileSize int64
	// OpenFiles is how many descriptors of larger files are kept open. 0 is 4096
	// or a sixteenth of what the process may have, whichever is less. Negative is
	// none.
	OpenFiles int
	// ErrorLog gets what the disk says, at most a line a second, and of links that
	// lead out of the folder a line a minute. Nil is the standard logger.
	ErrorLog *log.Logger
}

// A Rule sets fields of answers.
type Rule struct {
	// Match is a pattern for the path, without its leading slash, of the file
	// that is sent: * and ? within a segment, ** for any segments, [a-z],
	// {one,other}. A pattern without a slash is for the last segment alone, so
	// "*" is for all files; "" is an error.
	Match string
	// Header are the fields to set; "" removes one. Those that frame the
	// message cannot be set, and Content-Type cannot be removed. Answers other
	// than of files do not get those that are about content, and errors none
	// that let a cache keep them.
	Header map[string]string
}

// The defaults.
const (
	defaultCompressMax = 8 << 20
	defaultCacheBytes  = 64 << 20
	defaultFileSize    = 16 << 10
	defaultOpenFiles   = 4096
	// compressMin is the smallest file that is worth being compressed.
	compressMin = 512
)

// config is Options with the defaults set. Immutable.
type config struct {
	Options
	rules []rule
}

func newConfig(o *Options) (config, error) {
	var c config
	if o != nil {
		c.Options = *o
	}
	if c.Index == nil {
		c.Index = []string{"index.html"}
	}
	orDefault(&c.CompressMax, defaultCompressMax)
	orDefault(&c.CacheBytes, defaultCacheBytes)
	orDefault(&c.CacheFileSize, defaultFileSize)
	if c.CacheBytes < 0 {
		c.CacheFileSize, c.NoCompression = -1, true
	}
	// One file must not be all that the cache has room for.
	c.CacheFileSize = min(c.CacheFileSize, c.CacheBytes/4)
	c.CompressMax = min(c.CompressMax, max(c.CacheBytes/4, 0))
	if c.OpenFiles == 0 {
		c.OpenFiles = min(defaultOpenFiles, sys.MaxFiles()/16)
	}
	if c.ErrorLog == nil {
		c.ErrorLog = log.Default()
	}
	for _, name := range c.Index {
		if name == "" || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
			return c, fmt.Errorf("static: Index: %q is not a file name", name)
		}
		if c.hidden(name) {
			return c, fmt.Errorf("static: Index: %q is a dotfile, which Options.Dotfiles would have to allow", name)
		}
	}
	for i := range c.Rules {
		r, err := newRule(&c.Rules[i])
		if err != nil {
			return c, err
		}
		c.rules = append(c.rules, r)
	}
	return c, nil
}

func orDefault(n *int64, value int64) {
	if *n == 0 {
		*n = value
	}
}

// checkFiles finds the files that the options name.
func (c *config) checkFiles(s source) error {
	for _, o := range []struct {
		option string
		name   *string
	}{{"SPA", &c.SPA}, {"NotFound", &c.NotFound}} {
		if *o.name == "" {
			continue
		}
		name := strings.TrimPrefix(path.Clean("/"+*o.name), "/")
		st, err := stat{}, error(fs.ErrInvalid)
		if name != "" && s.localName(name) {
			st, err = s.stat(name)
		}
		switch {
		case err != nil && isGone(err):
			return fmt.Errorf("static: %s: there is no file %q in the folder", o.option, *o.name)
		case err != nil:
			return fmt.Errorf("static: %s: cannot look at %q: %w", o.option, *o.name, err)
		case !st.regular:
			return fmt.Errorf("static: %s: %q is not a file", o.option, *o.name)
		}
		*o.name = name
	}
	return nil
}

// checkDir says what is wrong with a folder that is to be served.
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
