package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxIncluded is how many files may be included.
const maxIncluded = 10_000

// include reads the files that include of t names. Each has sites and redirects, and
// nothing else, so that what is true for all sites is in one place. An included file
// includes no other.
func (l *loader) include(t *table) (all []*table) {
	patterns, _ := t.list("include")
	seen := map[string]bool{filepath.Clean(l.file): true}
	for _, p := range patterns {
		files, err := l.included(p.text)
		if err != nil {
			l.errorf(p.at, "include: %q: %v", p.text, err)
			continue
		}
		for _, file := range files {
			if file = filepath.Clean(file); seen[file] {
				continue
			}
			if seen[file] = true; len(seen) > maxIncluded {
				l.errorf(p.at, "include: %q: there are more than %d files", p.text, maxIncluded)
				return all
			}
			data, err := readPart(file)
			if err != nil {
				l.errorf(p.at, "include: %q: %v", file, err)
				continue
			}
			if part := l.parse(file, topOfIncluded, data); part != nil {
				all = append(all, part)
			}
		}
	}
	return all
}

// included returns the files that a pattern matches, in the order of their names, or the one
// that it is the name of.
func (l *loader) included(pattern string) ([]string, error) {
	path := inFolder(filepath.Dir(l.file), pattern) // messages name them as they do l.file
	switch {
	case pattern == "":
		return nil, errors.New("want the name of a file, or a pattern")
	case !strings.ContainsAny(pattern, `*?[`):
		_, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, errors.New("no such file")
		}
		return []string{path}, plain(err)
	}
	// Glob ignores folders that cannot be read or do not exist.
	files, err := filepath.Glob(path)
	if err != nil {
		return nil, errors.New("this is not a valid pattern")
	}
	// What editors leave behind is not meant.
	files = slices.DeleteFunc(files, func(file string) bool {
		name := filepath.Base(file)
		return name[0] == '.' || strings.HasSuffix(name, "~")
	})
	return files, nil
}
