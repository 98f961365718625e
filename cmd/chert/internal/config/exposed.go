package config

import (
	"path/filepath"
	"strings"

	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/static"
)

// A secret is a file that no site may serve.
type secret struct {
	what string
	file string
	at   Position
}

func (l *loader) secret(what, file string, at Position) {
	l.secrets = append(l.secrets, secret{what, file, at})
}

// exposed reports the secrets that a folder has.
func (l *loader) exposed(cfg *Config) {
	for _, s := range l.secrets {
		for _, folder := range cfg.Folders() {
			if folder.Exposes(s.file) {
				l.errorf(s.at, "%s %q is in the folder %q, which is served, so clients could read it; "+
					"move it elsewhere", s.what, s.file, folder.Root)
				break
			}
		}
	}
}

// A Folder is served by a site or a route.
type Folder struct {
	Root     string
	Dotfiles bool // those are served too
	hidden   filename.Set
}

// Folders returns all folders that are served.
func (c *Config) Folders() (all []Folder) {
	add := func(root string, o *static.Options) {
		hidden, _ := filename.NewSet(o.Hidden) // an error was reported
		all = append(all, Folder{root, o.Dotfiles, hidden})
		for _, other := range o.Follow { // into which links may lead, by other names
			all = append(all, Folder{Root: other, Dotfiles: o.Dotfiles})
		}
	}
	for i := range c.Sites {
		site := &c.Sites[i]
		add(site.Root, &site.Options)
		for j := range site.Routes {
			add(site.Routes[j].Root, &site.Routes[j].Options)
		}
	}
	return all
}

// Exposes reports whether a file or folder, which need not exist, can be reached in f,
// where it may be hidden.
func (f Folder) Exposes(path string) bool {
	if f.Root == "" || path == "" {
		return false
	}
	rel, err := filepath.Rel(Resolve(f.Root), Resolve(path))
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return false
	}
	for _, part := range strings.Split(rel, string(filepath.Separator)) {
		if !f.Dotfiles && part != "." && part != ".well-known" && strings.HasPrefix(part, ".") {
			return false
		}
	}
	return !f.hidden.Has(filepath.ToSlash(rel))
}

// Resolve returns the absolute path without links, as far as it exists.
func Resolve(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(Resolve(parent), filepath.Base(path))
	}
	return path
}
