package static

import (
	"io/fs"
	"os"

	"github.com/chert-http/chert/internal/listing"
)

// rootTree is a tree that uses os.Root, which walks a name element by element.
type rootTree struct{ root *os.Root }

func openRootTree(dir string) (tree, error) {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return rootTree{r}, nil
}

func (t rootTree) close() error { return t.root.Close() }

func (t rootTree) stat(name string) (stat, error) {
	i, err := t.root.Stat(fsName(name))
	if err != nil {
		return stat{}, err
	}
	return statOfInfo(i), nil
}

func (t rootTree) peek(name string) (stat, error) { return t.stat(name) }

func (t rootTree) open(name string) (file, stat, error) {
	st, err := t.stat(name)
	if err == nil {
		err = st.kindError()
	}
	if err != nil {
		return nil, stat{}, err
	}
	// The name may be a different file by now: openFlags keep a pipe from
	// blocking until it has a writer.
	f, err := t.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, stat{}, err
	}
	w := fsFile{f}
	now, err := w.stat()
	if err == nil && !now.content(&st) {
		err = errChanging
	}
	if err != nil {
		f.Close()
		return nil, stat{}, err
	}
	return w, now, nil
}

// straight cannot be stricter: a link within the tree that has just been made is followed.
func (t rootTree) straight() tree { return t }

func (t rootTree) readLink(name string) (to string, ok bool, err error) {
	i, err := t.root.Lstat(fsName(name))
	if err != nil || i.Mode()&fs.ModeSymlink == 0 {
		return "", false, err
	}
	to, err = t.root.Readlink(name)
	return to, err == nil, err
}

func (t rootTree) list(name string, max int, link linkStat) (entries []listing.Entry, more bool, err error) {
	st, err := t.stat(name)
	if err != nil {
		return nil, false, err
	}
	if !st.folder {
		return nil, false, errOdd
	}
	d, err := t.root.OpenFile(fsName(name), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, false, err
	}
	defer d.Close()
	found, more, err := readDir(d, max)
	inside := func(entry string) (stat, error) { return t.stat(join(name, entry)) }
	if link == nil {
		link = inside
	}
	return listed(found, func(e fs.DirEntry) (stat, error) { return inside(e.Name()) }, link), more, err
}
