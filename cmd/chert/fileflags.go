package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/static"
	"github.com/spf13/cobra"
)

// fileFlags are the flags that determine how a folder is served. Without any, it is served with the zero value of
// static.Options, and folders without an index are listed.
type fileFlags struct {
	index           indexFlag
	noListing       bool
	dotfiles        bool
	spa, notFound   innerFile
	spaAlone        bool // --spa was given without a file; set by seen
	rules           []static.Rule
	immutable       bool
	noPrecompressed bool
	noCompression   bool
	compressMax     sizeFlag
	cache           sizeFlag
	cacheFileSize   sizeFlag
	openFiles       countFlag
	names           []string // of all these flags; set by add
}

const defaultSPA = "index.html"

func (f *fileFlags) add(cmd *cobra.Command) {
	add := func(v value, name, usage string) {
		f.names = append(f.names, name)
		cmd.Flags().Var(v, name, usage)
	}
	addBool := func(p *bool, name, usage string) {
		f.names = append(f.names, name)
		addBool(cmd, p, name, "", usage)
	}
	f.compressMax, f.cache, f.cacheFileSize = sizeFlag{n: 8 << 20}, sizeFlag{n: 64 << 20, zero: true},
		sizeFlag{n: 16 << 10}

	add(&f.index, "index",
		"the file served for a folder; may be repeated, the first that exists is used; \"\" for none")
	addBool(&f.noListing, "no-listing", "do not list folders that have no index")
	addBool(&f.dotfiles, "dotfiles", "serve files and folders whose names begin with a dot, which are hidden otherwise")
	add(&f.spa, "spa", "send browsers this file where there is none, for single-page apps; alone: "+defaultSPA)
	cmd.Flags().Lookup("spa").NoOptDefVal = defaultSPA
	add(&f.notFound, "not-found", "the page for 404")
	add((*headerFlag)(&f.rules), "header",
		"set a header field on files: 'PATTERN=NAME: VALUE', or 'NAME: VALUE' on all;\n"+
			"no VALUE removes it; may be repeated")
	add((*cacheControlFlag)(&f.rules), "cache-control",
		"set Cache-Control on files: 'PATTERN=VALUE', or 'VALUE' on all; may be repeated")
	addBool(&f.immutable, "immutable",
		"let browsers cache files with a hash in their name, such as app.3f9ac21b.js,\nwithout revalidation")
	addBool(&f.noPrecompressed, "no-precompressed", "do not look for FILE.br, FILE.zst and FILE.gz")
	addBool(&f.noCompression, "no-compression", "do not compress anything")
	add(&f.compressMax, "compress-max", "the largest file that is compressed on request")
	add(&f.cache, "cache", "memory for small files; 0 for none")
	add(&f.cacheFileSize, "cache-file-size", "the largest file that is kept in memory")
	add(&f.openFiles, "open-files", "how many larger files are kept open")

	for _, name := range []string{"header", "cache-control", "compress-max", "cache", "cache-file-size", "open-files"} {
		mustComplete(cmd, name, cobra.NoFileCompletions)
	}
}

// seen records what the values do not show, once the command line is parsed, and returns those of these flags that
// were given.
func (f *fileFlags) seen(given func(flag string) bool) (all []string) {
	for _, name := range f.names {
		if given(name) {
			all = append(all, "--"+name)
		}
	}
	f.spaAlone = given("spa") && f.spa == defaultSPA
	return all
}

func (f *fileFlags) options() *static.Options {
	return &static.Options{
		Index: f.index, Listing: !f.noListing, Dotfiles: f.dotfiles, SPA: string(f.spa), NotFound: string(f.notFound),
		Rules: f.rules, Immutable: f.immutable, NoPrecompressed: f.noPrecompressed, NoCompression: f.noCompression,
		CompressMax: f.compressMax.n, CacheBytes: config.CacheBytes(f.cache.n), CacheFileSize: f.cacheFileSize.n,
		OpenFiles: int(f.openFiles),
	}
}

// indexFlag is the value of --index. nil is the default, empty is none.
type indexFlag []string

func (f *indexFlag) String() string {
	if *f == nil {
		return "index.html"
	}
	return strings.Join(*f, ",")
}

func (f *indexFlag) Type() string { return "name" }

func (f *indexFlag) Set(s string) error {
	if *f == nil {
		*f = []string{}
	}
	if s == "" {
		return nil
	}
	if !config.IsName(s) {
		return errors.New("want the name of a file, not a path")
	}
	*f = append(*f, s)
	return nil
}

// innerFile is the path of a file in the folder.
type innerFile string

func (f *innerFile) String() string { return string(*f) }

func (f *innerFile) Type() string { return "file" }

func (f *innerFile) Set(s string) error {
	s = strings.TrimPrefix(s, "/")
	if !fs.ValidPath(s) || s == "." {
		return errors.New("want a path within the folder")
	}
	*f = innerFile(s)
	return nil
}

// sizeFlag is a number of bytes.
type sizeFlag struct {
	n    int64
	zero bool // 0 is allowed
}

func (f *sizeFlag) String() string { return config.ShowSize(f.n) }

func (f *sizeFlag) Type() string { return "size" }

func (f *sizeFlag) Set(s string) error {
	n, err := config.ParseSize(s)
	if err == nil && n == 0 && !f.zero {
		err = errors.New("want more than 0")
	}
	if err == nil {
		f.n = n
	}
	return err
}

// countFlag is a number of things; 0 is the library's default.
type countFlag int

func (f *countFlag) String() string {
	if *f == 0 {
		return ""
	}
	return strconv.Itoa(int(*f))
}

func (f *countFlag) Type() string { return "number" }

func (f *countFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > config.MaxOpenFiles {
		return fmt.Errorf("want a number from 1 to %d", config.MaxOpenFiles)
	}
	*f = countFlag(n)
	return nil
}

// headerFlag adds the rules of --header. The last rule of either flag wins.
type headerFlag []static.Rule

func (f *headerFlag) String() string { return "" }

func (f *headerFlag) Type() string { return "rule" }

func (f *headerFlag) Set(s string) error {
	const form = `want 'PATTERN=NAME: VALUE', as in '*.html=Cache-Control: no-cache', or 'NAME: VALUE'`
	before, value, ok := strings.Cut(s, ":")
	if !ok {
		return errors.New(form)
	}
	pattern, name, ok := strings.Cut(before, "=")
	if !ok {
		pattern, name = config.MatchAll, before
	}
	if pattern == "" || name == "" {
		return errors.New(form)
	}
	return addRule((*[]static.Rule)(f), pattern, name, strings.TrimSpace(value))
}

// cacheControlFlag adds the rules of --cache-control.
type cacheControlFlag []static.Rule

func (f *cacheControlFlag) String() string { return "" }

func (f *cacheControlFlag) Type() string { return "rule" }

// directives are the directives that a value may begin with (RFC 9111 section 5.2.2, RFC 5861, RFC 8246); it has no
// pattern then.
var directives = map[string]bool{
	"max-age": true, "s-maxage": true, "no-cache": true, "no-store": true, "no-transform": true, "private": true,
	"public": true, "must-revalidate": true, "must-understand": true, "proxy-revalidate": true, "immutable": true,
	"stale-while-revalidate": true, "stale-if-error": true,
}

func (f *cacheControlFlag) Set(s string) error {
	pattern, value, ok := strings.Cut(s, "=")
	if first, _, _ := strings.Cut(pattern, ","); !ok || directives[strings.ToLower(first)] {
		pattern, value = config.MatchAll, s
	}
	if pattern == "" || value == "" {
		return errors.New(`want 'PATTERN=VALUE', as in '*.html=no-cache' or '*=max-age=3600', or 'VALUE'`)
	}
	return addRule((*[]static.Rule)(f), pattern, "Cache-Control", value)
}

func addRule(rules *[]static.Rule, pattern, name, value string) error {
	if _, err := filename.ParsePattern(pattern); err != nil {
		return err
	}
	if err := wire.CheckField(name, value); err != nil {
		return fmt.Errorf("the field %q %w", name, err)
	}
	*rules = append(*rules, static.Rule{Match: pattern, Header: map[string]string{name: value}})
	return nil
}
