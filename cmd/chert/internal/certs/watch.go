package certs

import (
	"os"
	"time"
)

// A File is a set of files from which something is loaded, and again after any of
// them has changed. One goroutine uses it.
type File struct {
	paths []string
	load  func() error
	seen  []os.FileInfo // as of the last load; nil for a file that could not be read
	bad   error         // of the last load; nil if it worked
	said  bool          // bad has been reported
}

// NewFile returns a File for paths that have just been loaded: since are the
// stamps from before that. load is called again after a change; after an error
// what was loaded before stays.
func NewFile(since []os.FileInfo, load func() error, paths ...string) *File {
	return &File{paths: paths, load: load, seen: since}
}

// Stamps returns the state of files, in which changes will show. Links are
// followed, at every component of the path: a folder that is replaced by changing
// a link, as Kubernetes and certbot do, is a change of its files.
func Stamps(paths ...string) []os.FileInfo {
	all := make([]os.FileInfo, len(paths))
	for i, path := range paths {
		all[i], _ = os.Stat(path)
	}
	return all
}

// Check loads the files again if they have changed. It returns what is to be
// reported, each once: that they were loaded, or an error.
//
// Programs replace a certificate and its key one after the other. So an error is
// reported only when the files have not changed until the next call; until then
// they are loaded at every call.
func (f *File) Check() (loaded bool, err error) {
	now := Stamps(f.paths...)
	changed := !same(f.seen, now)
	if !changed && f.bad == nil {
		return false, nil
	}
	f.seen = now // from before the load: what changes during it is loaded again
	if f.bad = f.load(); f.bad == nil {
		f.said = false
		return true, nil
	}
	if changed {
		f.said = false
		return false, nil
	}
	if f.said {
		return false, nil
	}
	f.said = true
	return false, f.bad
}

func same(a, b []os.FileInfo) bool {
	for i := range a {
		switch {
		case a[i] == nil || b[i] == nil:
			if a[i] != b[i] {
				return false
			}
		case !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()):
			return false
		}
	}
	return true
}

// Interval is how often files are checked.
const Interval = 2 * time.Second
