package config

import (
	"path/filepath"
	"strings"
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
}

// Folders returns all folders that are served.
func (c *Config) Folders() (all []Folder) {
	for _, site := range c.Sites {
		all = append(all, Folder{site.Root, site.Options.Dotfiles})
		for _, r := range site.Routes {
			all = append(all, Folder{r.Root, r.Options.Dotfiles})
		}
	}
	return all
}

// Exposes reports whether a file or folder, which need not exist, can be reached in f.
// Names that begin with a dot are hidden.
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
	return true
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
