package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A module is one that a binary contains, with its licences.
type module struct {
	path, version string
	dir           string
	packages      map[string]bool // folders of those that are compiled in
	texts         []licenceText
}

// A licenceText is a file with a licence.
type licenceText struct {
	name string // its path in the module
	id   string // of SPDX; "" for a NOTICE and the like, which go with another file
	text string
}

var (
	licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-._].*)?$`)
	noticeName  = regexp.MustCompile(`(?i)^(notice|patents|authors|copyright)([-._].*)?$`)
)

// listedPackage is what "go list" prints of a package.
type listedPackage struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// modules returns the modules that the program contains on any of the targets, the standard library among them, sorted.
// A module without a licence that is known here is an error.
func modules(ctx context.Context, s *source, all []*binary) ([]*module, error) {
	found := map[string]*module{}
	for _, b := range all {
		out, err := output(goCommand(ctx, s.clones[0], b.target, "list", "-deps",
			"-json=ImportPath,Dir,Standard,Module", "./cmd/chert"))
		if err != nil {
			return nil, err
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p listedPackage
			if err := d.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Standard || p.Module == nil || p.Module.Main {
				continue
			}
			m := found[p.Module.Path]
			if m == nil {
				m = &module{path: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir,
					packages: map[string]bool{}}
				found[m.path] = m
			}
			m.packages[p.Dir] = true
		}
	}
	root, err := output(goCommand(ctx, s.clones[0], host, "env", "GOROOT"))
	if err != nil {
		return nil, err
	}
	goroot := strings.TrimSpace(string(root))
	list := []*module{{path: "std", version: toolchain, dir: goroot, packages: map[string]bool{goroot: true}}}
	for _, m := range found {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *module) int { return strings.Compare(a.path, b.path) })
	for _, m := range list {
		if err := m.read(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// read reads the licences in the folders of the packages and above them. Those of the root are for all of the module.
func (m *module) read() error {
	folders := map[string]bool{m.dir: true}
	for dir := range m.packages {
		for ; dir != m.dir; dir = filepath.Dir(dir) {
			if len(dir) <= len(m.dir) {
				return fmt.Errorf("%s is not in %s", dir, m.dir)
			}
			folders[dir] = true
		}
	}
	known := false
	for dir := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() || !licenceName.MatchString(e.Name()) && !noticeName.MatchString(e.Name()) ||
				strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			name, err := filepath.Rel(m.dir, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			l := licenceText{name: filepath.ToSlash(name), id: identify(string(text)),
				text: strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n ")}
			if licenceName.MatchString(e.Name()) && l.id == "" {
				return fmt.Errorf("the licence of %s in %s is not known; if it permits what a release does, add it to phrases",
					m.path, l.name)
			}
			known = known || l.id != ""
			m.texts = append(m.texts, l)
		}
	}
	if !known {
		return fmt.Errorf("%s %s has no licence in %s", m.path, m.version, m.dir)
	}
	slices.SortFunc(m.texts, func(a, b licenceText) int { return strings.Compare(a.name, b.name) })
	return nil
}

// phrases identify licences: all of a line must be in a text whose spaces are single and whose letters are small.
// Those that a release under MIT could not contain as they are, such as the GPL, are not here.
var phrases = []struct {
	id  string
	all []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}},
	{"MPL-2.0", []string{"mozilla public license", "2.0"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
	{"CC0-1.0", []string{"cc0 1.0 universal"}},
	{"BSD-3-Clause", []string{"redistributions of source code must retain",
		"redistributions in binary form must reproduce", "neither the name"}},
	{"BSD-3-Clause", []string{"redistributions of source code must retain",
		"redistributions in binary form must reproduce", "may not be used to endorse"}},
	{"BSD-2-Clause", []string{"redistributions of source code must retain",
		"redistributions in binary form must reproduce"}},
	{"MIT", []string{"permission is hereby granted, free of charge",
		"the above copyright notice and this permission notice"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose"}},
}

// identify returns the identifiers of SPDX for a text, joined with AND if it has several licences, "" if it has none
// that is known.
func identify(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	var ids []string
	bsd := false
	for _, p := range phrases {
		has := !slices.ContainsFunc(p.all, func(s string) bool { return !strings.Contains(text, s) })
		if !has || slices.Contains(ids, p.id) || bsd && strings.HasPrefix(p.id, "BSD") {
			continue
		}
		bsd = bsd || strings.HasPrefix(p.id, "BSD")
		ids = append(ids, p.id)
	}
	return strings.Join(ids, " AND ")
}

// expression is the licence of a whole module, for its entry in a bill of materials.
func (m *module) expression() string {
	var ids []string
	for _, l := range m.texts {
		for id := range strings.SplitSeq(l.id, " AND ") {
			if id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return strings.Join(ids, " AND ")
}

var copyrightLine = regexp.MustCompile(`(?im)^\W*(copyright (\(c\)|©|[0-9]).*|.*\bcopyright (?:\(c\)|©) [0-9].*)$`)

// copyright writes chert's licence and those of the modules in Debian's format 1.0.
func copyright(own string, all []*module) []byte {
	var b bytes.Buffer
	b.WriteString("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n" +
		"Upstream-Name: chert\nSource: " + homepage + "\n")
	stanza := func(files string, l licenceText) {
		fmt.Fprintf(&b, "\nFiles: %s\nCopyright:", files)
		lines := copyrightLine.FindAllString(l.text, -1)
		if len(lines) == 0 {
			lines = []string{"the authors of " + strings.TrimSuffix(files, "/*")}
		}
		for _, line := range lines {
			fmt.Fprintf(&b, " %s\n", strings.TrimSpace(line))
		}
		id := l.id
		if id == "" {
			id = "notice" // of a file with another licence
		}
		fmt.Fprintf(&b, "License: %s\n", strings.ReplaceAll(id, " AND ", " and "))
		for line := range strings.SplitSeq(l.text, "\n") {
			line = strings.TrimRight(line, " \t\f")
			if line == "" {
				line = "."
			}
			fmt.Fprintf(&b, " %s\n", line)
		}
	}
	stanza("*", licenceText{id: "MIT", text: strings.TrimSpace(own)})
	for _, m := range all {
		for _, l := range m.texts {
			stanza(m.path+"@"+m.version+"/"+strings.TrimPrefix(filepath.ToSlash(filepath.Dir(l.name))+"/", "./")+"*", l)
		}
	}
	return b.Bytes()
}
