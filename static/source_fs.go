package static

import (
	"io"
	"io/fs"
	"os"

	"github.com/chert-http/chert/internal/listing"
)

// fsSource is an fs.FS, which decides what can be reached: os.DirFS follows
// links out of its folder.
type fsSource struct{ fsys fs.FS }

// fsName is name in the form of package fs.
func fsName(name string) string {
	if name == "" {
		return "."
	}
	return name
}

func (s fsSource) localName(name string) bool { return fs.ValidPath(fsName(name)) }

func (s fsSource) stat(name string) (stat, error) {
	i, err := fs.Stat(s.fsys, fsName(name))
	if err != nil {
		return stat{}, err
	}
	return statOfInfo(i), nil
}

func (s fsSource) peek(name string) (stat, error) { return s.stat(name) }

func (s fsSource) open(name string) (file, stat, error) {
	// Checked first, since opening a pipe of os.DirFS would block.
	st, err := s.stat(name)
	if err == nil {
		err = st.kindError()
	}
	if err != nil {
		return nil, stat{}, err
	}
	f, err := s.fsys.Open(fsName(name))
	if err != nil {
		return nil, stat{}, err
	}
	w := fsFile{f}
	now, err := w.stat()
	if err == nil {
		err = now.kindError()
	}
	if err != nil {
		f.Close()
		return nil, stat{}, err
	}
	return w, now, nil
}

func (s fsSource) list(name string, max int) (entries []listing.Entry, more bool, err error) {
	f, err := s.fsys.Open(fsName(name))
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, false, errFolder
	}
	found, more, err := readDir(dir, max)
	own := func(d fs.DirEntry) (stat, error) {
		i, err := d.Info()
		if err != nil {
			return stat{}, err
		}
		return statOfInfo(i), nil
	}
	return listed(found, own, func(entry string) (stat, error) { return s.stat(join(name, entry)) }), more, err
}

func (s fsSource) moved() bool  { return false }
func (s fsSource) keeps() bool  { return false }
func (s fsSource) close() error { return nil }

// fsFile is an open file of an fs.FS.
type fsFile struct{ fs.File }

func (f fsFile) stat() (stat, error) {
	i, err := f.File.Stat()
	if err != nil {
		return stat{}, err
	}
	return statOfInfo(i), nil
}

func (f fsFile) disk() *os.File {
	d, _ := f.File.(*os.File)
	return d
}

// join is a name in a folder.
func join(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

// listed makes the entries of a listing: links are stat'ed by link, and all others by own.
func listed(found []fs.DirEntry, own func(d fs.DirEntry) (stat, error), link linkStat) []listing.Entry {
	list := make([]listing.Entry, 0, len(found))
	for _, d := range found {
		var st stat
		var err error
		isLink := d.Type()&fs.ModeSymlink != 0
		if isLink {
			st, err = link(d.Name())
		} else {
			st, err = own(d)
		}
		if err != nil || !st.folder && !st.regular {
			continue // gone, or a link to something not served
		}
		list = append(list, st.entry(d.Name(), isLink))
	}
	return list
}

// readDir reads at most max entries of a folder, and checks for one more.
func readDir(d fs.ReadDirFile, max int) (found []fs.DirEntry, more bool, err error) {
	for len(found) <= max {
		some, err := d.ReadDir(max + 1 - len(found))
		found = append(found, some...)
		if err == io.EOF || err == nil && len(some) == 0 {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	if len(found) > max {
		return found[:max], true, nil
	}
	return found, false, nil
}
