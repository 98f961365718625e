package static

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/listing"
)

// A source provides files: a folder of the system, or an fs.FS. Names are
// relative, clean, with slashes; "" is the folder itself. All methods are safe
// for concurrent use.
type source interface {
	// localName reports whether name is valid for the source.
	localName(name string) bool
	// stat describes what name is. Links are followed within the source.
	stat(name string) (stat, error)
	// peek is stat for comparing with an earlier one: quicker, and its result
	// must not be disclosed, since a link may have led out.
	peek(name string) (stat, error)
	// open opens a regular file; a folder returns errFolder, anything else errOdd.
	open(name string) (file, stat, error)
	// list reads the entries of a folder, at most max of them; more reports
	// whether there are others. What is not served is left out.
	list(name string, max int) (entries []listing.Entry, more bool, err error)
	// moved reports whether the source's folder has been replaced; the new one
	// is used from then on.
	moved() bool
	// keeps reports whether descriptors of files can be kept open.
	keeps() bool
	close() error
}

// A file is an open regular file that is read from its beginning.
type file interface {
	io.ReadCloser
	stat() (stat, error)
	// disk returns the file as an *os.File, or nil if it is none. Closing
	// either closes both.
	disk() *os.File
}

var (
	errFolder = errors.New("static: a folder")
	// errOdd is for a name that exists and is not served: a device, a pipe, a
	// socket.
	errOdd = errors.New("static: neither a file nor a folder")
	// errOut is for a name or link that leads out of the folder.
	errOut = errors.New("static: leads out of the folder")
	// errChanging is for a file that was written to while it was read.
	errChanging = errors.New("static: the file changes while it is read")
)

// leadsOut reports whether err means that a link leads out of the folder. The
// error of os.Root has neither a number nor an identity, only its text.
func leadsOut(err error) bool {
	if errors.Is(err, errOut) {
		return true
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return isOut(e)
	}
	p, ok := errors.AsType[*fs.PathError](err)
	return ok && p.Err.Error() == "path escapes from parent"
}

// stat determines whether a name still has the same content. Immutable.
type stat struct {
	folder, regular bool
	size            int64
	mtime           int64 // ns since 1970; noTime if there is none
	ctime           int64 // 0 where the system has none
	dev, ino        uint64
	info            fs.FileInfo // instead of dev and ino; nil with them
}

// noTime is the time of files that have none, such as embed.FS's.
const noTime = -1 << 63

// same reports whether the file is unchanged between a and b.
func (a *stat) same(b *stat) bool { return a.ctime == b.ctime && a.content(b) }

// content reports whether both are of one file that was not written to between them.
func (a *stat) content(b *stat) bool {
	if a.size != b.size || a.mtime != b.mtime || a.dev != b.dev || a.ino != b.ino || a.folder != b.folder ||
		a.regular != b.regular {
		return false
	}
	return a.info == nil || b.info == nil || !sameFileKnown(a.info) || os.SameFile(a.info, b.info)
}

// sameFileKnown reports whether os.SameFile supports such files: it supports
// only the system's, and reports all others as different.
func sameFileKnown(i fs.FileInfo) bool { return os.SameFile(i, i) }

func statOf(i fs.FileInfo) stat {
	s := stat{folder: i.IsDir(), regular: i.Mode().IsRegular(), size: i.Size(), mtime: noTime, info: i}
	if t := i.ModTime(); !t.IsZero() {
		s.mtime = t.UnixNano()
	}
	return s
}

// kindError is open's error for anything but a regular file.
func (a *stat) kindError() error {
	switch {
	case a.regular:
		return nil
	case a.folder:
		return errFolder
	}
	return errOdd
}

// entry is the file's entry in a listing.
func (a *stat) entry(name string, link bool) listing.Entry {
	return listing.Entry{Name: name, Dir: a.folder, Link: link, Size: a.size, Modified: a.modified()}
}

// modified is zero if there is no such time, or it is the Unix epoch, as in net/http: no file is from then.
func (a *stat) modified() time.Time {
	if a.mtime == noTime || a.mtime == 0 {
		return time.Time{}
	}
	return time.Unix(0, a.mtime)
}

// sameFolder reports whether i is of the folder that is open as id.
func sameFolder(i fs.FileInfo, id *stat) bool {
	if id.info != nil {
		return os.SameFile(i, id.info)
	}
	now := statOfInfo(i)
	return now.dev == id.dev && now.ino == id.ino
}
