package static

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/chert-http/chert/internal/listing"
	"github.com/chert-http/chert/internal/sys"
)

// beneathTree is a tree that uses openat2: one call for a name of any depth,
// and the kernel guarantees that it stays below the folder.
type beneathTree struct {
	dir *os.File
	fd  int // dir's
	// noLinks: names lead through no link.
	noLinks bool
}

// openTree opens dir in the best way the system has.
func openTree(dir string) (tree, error) {
	if !sys.HaveBeneath {
		return openRootTree(dir)
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	t := beneathTree{dir: d, fd: int(d.Fd())}
	if _, err := t.stat(""); err != nil {
		// An old kernel, or a sandbox that does not know the call. A folder that
		// may be read but not searched also ends here; os.Root reports that.
		d.Close()
		return openRootTree(dir)
	}
	return t, nil
}

func (t beneathTree) close() error { return t.dir.Close() }

func (t beneathTree) straight() tree {
	t.noLinks = true
	return t
}

func (t beneathTree) openAt(name string, flags int) (fd int, err error) {
	open := sys.OpenBeneath
	if t.noLinks {
		open = sys.OpenStraight
	}
	fd, e := open(t.fd, fsName(name), flags)
	switch {
	case e == 0:
		return fd, nil
	case t.noLinks && e == syscall.ELOOP:
		return -1, errChanging // there was no link when the name was resolved
	}
	return -1, beneathError(e)
}

func (t beneathTree) readLink(name string) (to string, ok bool, err error) {
	t.noLinks = true
	fd, err := t.openAt(name, sys.OpenLink)
	if err != nil {
		return "", false, err
	}
	defer sys.Close(fd)
	var s sys.FileStat
	if e := sys.StatFd(fd, &s); e != 0 || !s.IsLink() {
		return "", false, errnoOf(e)
	}
	to, e := sys.ReadLink(fd)
	return to, e == 0, errnoOf(e)
}

func errnoOf(e sys.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// beneathError is an error of one of the calls. A link that leads out is
// treated as missing.
func beneathError(e sys.Errno) error {
	if isOut(e) {
		return errOut
	}
	return e
}

func (t beneathTree) stat(name string) (stat, error) {
	// O_PATH touches neither devices nor pipes.
	fd, err := t.openAt(name, sys.OpenPath)
	if err != nil {
		return stat{}, err
	}
	defer sys.Close(fd)
	return statFd(fd)
}

func (t beneathTree) peek(name string) (stat, error) { return t.look(fsName(name), true) }

// look is a stat that may lead out.
func (t beneathTree) look(name string, follow bool) (stat, error) {
	var s sys.FileStat
	if e := sys.StatAt(t.fd, name, follow, &s); e != 0 {
		return stat{}, beneathError(e)
	}
	return statOfSys(&s), nil
}

func (t beneathTree) open(name string) (file, stat, error) {
	st, err := t.look(fsName(name), true)
	if err != nil && isGone(err) {
		return nil, stat{}, err
	}
	if err != nil || !st.regular {
		// Nothing about it may be disclosed before it is known to be inside.
		if st, err = t.stat(name); err != nil {
			return nil, stat{}, err
		}
		if err = st.kindError(); err == nil {
			err = errChanging
		}
		return nil, stat{}, err
	}
	// The name may be a different file by now: OpenFile's flags keep a pipe
	// from blocking until it has a writer.
	fd, err := t.openAt(name, sys.OpenFile)
	if err != nil {
		return nil, stat{}, err
	}
	now, err := statFd(fd)
	if err == nil && !now.content(&st) {
		err = errChanging
	}
	if err != nil {
		sys.Close(fd)
		return nil, stat{}, err
	}
	return &rawFile{fd: fd, name: name}, now, nil
}

func (t beneathTree) list(name string, max int, link linkStat) (entries []listing.Entry, more bool, err error) {
	fd, err := t.openAt(name, sys.OpenFolder)
	if err != nil {
		return nil, false, err
	}
	if link == nil {
		link = func(entry string) (stat, error) { return t.stat(join(name, entry)) }
	}
	d := os.NewFile(uintptr(fd), name)
	defer d.Close()
	found, more, err := readDir(d, max)
	in := beneathTree{fd: fd}
	own := func(e fs.DirEntry) (stat, error) { return in.look(e.Name(), false) }
	return listed(found, own, link), more, err
}

func statFd(fd int) (stat, error) {
	var s sys.FileStat
	if e := sys.StatFd(fd, &s); e != 0 {
		return stat{}, e
	}
	return statOfSys(&s), nil
}

func statOfSys(s *sys.FileStat) stat {
	return stat{
		folder: s.IsFolder(), regular: s.IsRegular(), size: s.Size,
		mtime: s.Mtime, ctime: s.Ctime, dev: s.Dev, ino: s.Ino,
	}
}

// rawFile is a descriptor without the cost of an os.File: most are read once
// and closed.
type rawFile struct {
	fd   int
	name string
	file *os.File // owns fd, if not nil
}

func (f *rawFile) Read(p []byte) (int, error) {
	n, e := sys.ReadFile(f.fd, p)
	switch {
	case e != 0:
		return 0, e
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (f *rawFile) stat() (stat, error) { return statFd(f.fd) }

func (f *rawFile) disk() *os.File {
	if f.file == nil {
		f.file = os.NewFile(uintptr(f.fd), f.name)
	}
	return f.file
}

func (f *rawFile) Close() error {
	if f.file != nil {
		return f.file.Close()
	}
	if e := sys.Close(f.fd); e != 0 {
		return e
	}
	return nil
}

// changing reports whether another try may succeed after err.
func changing(err error) bool { return errors.Is(err, errChanging) || errors.Is(err, fs.ErrClosed) }
