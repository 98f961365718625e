package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of what the files of include have together.
const (
	maxIncluded      = 1000
	maxIncludedBytes = 16 << 20
)

// part is a file with sites and redirects: the main one, or one that include names.
type part struct {
	*doc
	dir              string // of the file
	sites, redirects []*table
}

// enter makes p the file that l reads.
func (l *loader) enter(p part) { l.doc, l.dir = p.doc, p.dir }

// includer reads the files that include names. Messages about its patterns are those of the
// main file.
type includer struct {
	*loader
	seen  []os.FileInfo // the main file first
	files int
	bytes int
	parts []part
}

// include reads the files that the main file names, each once. Each has sites and redirects
// only, so that what is for the whole server is in one place.
func (l *loader) include(t *table) []part {
	all, _ := t.list("include")
	if len(all) == 0 {
		return nil
	}
	i := &includer{loader: l}
	main, _ := os.Stat(l.file) // nil is the same as no other
	i.seen = append(i.seen, main)
	for _, it := range all {
		if !i.add(it) {
			break
		}
	}
	return i.parts
}

// errIncluded ends the reading.
var errIncluded = fmt.Errorf("there are more than %d files, or they have more than %s together", maxIncluded,
	ShowSize(maxIncludedBytes))

// add reads the files of one pattern. It reports whether there may be more.
func (i *includer) add(it item) bool {
	fail := func(err error) bool {
		i.errorf(it.at, "include: %q: %v", it.text, err)
		return !errors.Is(err, errIncluded)
	}
	if it.text == "" || strings.ContainsRune(it.text, 0) {
		return fail(errors.New(`want a file, or a pattern such as "sites/*.toml"`))
	}
	pattern := i.path(it.text)
	dir, base := filepath.Split(pattern)
	if !strings.ContainsAny(base, "*?[") {
		if err := i.read(pattern, true); err != nil {
			return fail(err)
		}
		return true
	}
	names, err := matching(dir, base)
	if err != nil {
		return fail(err)
	}
	for _, name := range names {
		if err := i.read(filepath.Join(dir, name), false); err != nil && !fail(fmt.Errorf("%q: %w", name, err)) {
			return false
		}
	}
	return true
}

// matching returns the names in a folder that a pattern is for, in their order. A folder that
// does not exist has none.
func matching(dir, pattern string) (names []string, err error) {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, errors.New("this is not a valid pattern")
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read its folder: %w", plain(err))
	}
	for _, e := range entries {
		name := e.Name()
		// What editors and package managers leave beside a file: a~, .#a, #a#.
		if strings.HasSuffix(name, "~") || name[0] == '.' || name[0] == '#' {
			continue
		}
		if ok, _ := filepath.Match(pattern, name); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// read reads one file, unless it has been read. named: the file itself was named, and not by
// a pattern.
func (i *includer) read(file string, named bool) error {
	info, err := os.Stat(file)
	if err == nil {
		for n, other := range i.seen {
			switch {
			case !os.SameFile(info, other):
			case n == 0 && named:
				return errors.New("this is the file itself")
			default:
				return nil
			}
		}
	}
	data, err := readPart(file)
	if err != nil {
		return err
	}
	i.seen = append(i.seen, info)
	i.files, i.bytes = i.files+1, i.bytes+len(data)
	if i.files > maxIncluded || i.bytes > maxIncludedBytes {
		return errIncluded
	}
	p := part{doc: &doc{file: file, isIncluded: true}, dir: filepath.Dir(file)}
	i.included = append(i.included, p.doc)
	t := p.parse(data)
	if t == nil {
		return nil
	}
	t.name = includedFile
	p.sites, p.redirects = t.tables("site", "[[site]]"), t.tables("redirect", "[[redirect]]")
	t.done()
	i.parts = append(i.parts, p)
	return nil
}

// includedFile is what messages call a file of include.
const includedFile = "a file of include"
