package static

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/internal/listing"
)

// This file follows links out of the folder, into those of Options.Follow. The folder and
// each of these is a tree that is open. With /srv/www served and Follow of /srv/shared,
// where www/img is a link to ../shared/img, and shared/img/new one to 2026, the name
// img/new/a.png is resolved segment by segment:
//
//	www     "img"       a link: "../shared/img" takes its place
//	www     ".."        leaves the tree: /srv
//	/srv    "shared"    enters the tree /srv/shared; any other name would be errOut
//	shared  "img"
//	shared  "img/new"   a link: "2026"
//	shared  "img/2026"
//	shared  "img/2026/a.png"
//
// What is read outside of a tree is the text of links, never the file system. The name that
// is left is opened below the last tree, in which nothing may be a link any more: what has
// been replaced since leads nowhere (where there is openat2) or stays below that tree
// (os.Root).

const (
	// maxLinks is how many links are followed for a name, as the kernel does.
	maxLinks = 40
	// maxSegments bounds the segments that all of them have.
	maxSegments = 1000
)

// linkedSource is a folder whose links may lead into others.
type linkedSource struct {
	*dirSource
	others []*dirSource
	hidden func(name string) bool
}

// follow returns the source s with the links of c.Follow; s itself with an error.
func follow(s source, c *config) (source, error) {
	root, ok := s.(*dirSource)
	if !ok {
		return s, errors.New("static: Follow: an fs.FS itself decides which links it follows")
	}
	out := &linkedSource{dirSource: root, hidden: c.hidden}
	fail := func(err error) (source, error) {
		for _, o := range out.others {
			o.close()
		}
		return s, fmt.Errorf("static: Follow: %w", err)
	}
	for _, prefix := range c.Follow {
		if err := filename.CheckFollow(prefix); err != nil {
			return fail(err)
		}
		o := &dirSource{dir: filepath.Clean(prefix), real: true}
		now, err := o.openNow()
		if err != nil {
			return fail(err)
		}
		o.cur.Store(now)
		out.others = append(out.others, o)
	}
	root.real = true
	now, err := root.openNow()
	if err != nil {
		return fail(err)
	}
	root.cur.Swap(now).leave()
	return out, nil
}

func (s *linkedSource) stat(name string) (stat, error) {
	st, err := s.dirSource.stat(name)
	if !leadsOut(err) {
		return st, err
	}
	o, name, err := s.resolve(name)
	if err != nil {
		return stat{}, err
	}
	defer o.leave()
	return o.straight().stat(name)
}

// peek resolves the links again: the same file may not be permitted any more.
func (s *linkedSource) peek(name string) (stat, error) { return s.stat(name) }

func (s *linkedSource) open(name string) (file, stat, error) {
	f, st, err := s.dirSource.open(name)
	if !leadsOut(err) {
		return f, st, err
	}
	o, name, err := s.resolve(name)
	if err != nil {
		return nil, stat{}, err
	}
	defer o.leave()
	return o.straight().open(name)
}

func (s *linkedSource) list(name string, max int) (entries []listing.Entry, more bool, err error) {
	link := func(entry string) (stat, error) { return s.stat(join(name, entry)) }
	o, err := s.enter()
	if err != nil {
		return nil, false, err
	}
	entries, more, err = o.list(name, max, link)
	o.leave()
	if !leadsOut(err) {
		return entries, more, err
	}
	o, there, err := s.resolve(name)
	if err != nil {
		return nil, false, err
	}
	defer o.leave()
	entries, more, err = o.straight().list(there, max, link)
	return slices.DeleteFunc(entries, func(e listing.Entry) bool { return s.hidden(join(there, e.Name)) }), more, err
}

func (s *linkedSource) moved() bool {
	moved := s.dirSource.moved()
	for _, o := range s.others {
		moved = o.moved() || moved
	}
	return moved
}

func (s *linkedSource) close() error {
	for _, o := range s.others {
		o.close()
	}
	return s.dirSource.close()
}

// resolve follows the links in a name. The result is a name without links in a tree, on
// which the caller must call leave.
func (s *linkedSource) resolve(name string) (*opened, string, error) {
	w := walk{s: s, rest: name}
	var err error
	if w.in, err = s.enter(); err == nil {
		err = w.run()
	}
	if err != nil {
		w.leave()
		return nil, "", err
	}
	return w.in, w.at, nil
}

// A walk is a name that is being resolved.
type walk struct {
	s    *linkedSource
	in   *opened // the tree that it is in; nil outside of all
	at   string  // what is resolved: a name in the tree, or outside an absolute path; without links
	rest string  // what is not; without empty segments and "."

	links, segments int
}

func (w *walk) leave() {
	if w.in != nil {
		w.in.leave()
		w.in = nil
	}
}

func (w *walk) run() error {
	for w.rest != "" {
		if w.in == nil && !strings.HasPrefix(w.rest+"/", "../") {
			if err := w.enter(); err != nil {
				return err
			}
			continue // what the tree's path has is no longer in rest
		}
		if w.segments++; w.segments > maxSegments {
			return fs.ErrNotExist
		}
		var segment string
		segment, w.rest, _ = strings.Cut(w.rest, "/")
		switch {
		case segment == "..":
			w.up()
		default:
			if err := w.down(segment); err != nil {
				return err
			}
		}
	}
	if w.in == nil {
		if err := w.enter(); err != nil {
			return err
		}
	}
	if w.s.hidden(w.at) {
		return fs.ErrNotExist
	}
	return nil
}

// up goes to the folder that at is in.
func (w *walk) up() {
	if w.in != nil && w.at == "" {
		real := w.in.real
		w.leave()
		w.at = real
	}
	if w.in == nil {
		w.at = filepath.Dir(w.at)
		return
	}
	w.at = w.at[:max(strings.LastIndexByte(w.at, '/'), 0)]
}

// down goes to a file or folder in at, or to where a link of that name leads.
func (w *walk) down(segment string) error {
	name := join(w.at, segment)
	to, ok, err := w.in.readLink(name)
	if err != nil {
		return err
	}
	if !ok {
		w.at = name
		return nil
	}
	if w.links++; w.links > maxLinks || w.s.hidden(name) {
		return fs.ErrNotExist
	}
	w.rest = plainSegments(to, w.rest)
	if strings.HasPrefix(to, "/") {
		w.leave()
		w.at = "/"
	}
	return nil
}

// plainSegments joins paths without empty segments and ".".
func plainSegments(paths ...string) string {
	var all []string
	for _, p := range paths {
		for segment := range strings.SplitSeq(p, "/") {
			if segment != "" && segment != "." {
				all = append(all, segment)
			}
		}
	}
	return strings.Join(all, "/")
}

// enter goes from outside into the tree that the path of at and rest leads to: the one with
// the longest path.
func (w *walk) enter() error {
	var tree *dirSource
	var at, rest string
	longest := -1
	for _, s := range append([]*dirSource{w.s.dirSource}, w.s.others...) {
		o, err := s.enter()
		if err != nil {
			return err
		}
		real := o.real
		o.leave()
		for _, path := range []string{s.dir, real} {
			if len(path) <= longest {
				continue
			}
			if name, ok := below(w.at, path); ok {
				tree, longest, at, rest = s, len(path), name, w.rest
			} else if name, ok := below(path, w.at); ok {
				if left, ok := below(w.rest, name); ok {
					tree, longest, at, rest = s, len(path), "", left
				}
			}
		}
	}
	if tree == nil {
		return errOut
	}
	o, err := tree.enter()
	w.in, w.at, w.rest = o, at, rest
	return err
}

// below returns the rest of a clean path that is prefix or below it.
func below(path, prefix string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, prefix)
	if !ok || rest == "" || strings.HasSuffix(prefix, "/") {
		return rest, ok
	}
	return strings.CutPrefix(rest, "/")
}
