package static

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/chert-http/chert/internal/sys"
)

// statOfInfo is statOf with Linux's additional data.
func statOfInfo(i fs.FileInfo) stat {
	s := statOf(i)
	if st, ok := i.Sys().(*syscall.Stat_t); ok {
		s.dev, s.ino, s.ctime = uint64(st.Dev), st.Ino, st.Ctim.Nano()
		s.info = nil
	}
	return s
}

// unwritten compares an open file with its earlier state. Renaming and
// unlinking change no byte.
func unwritten(_ *os.File, fd int, was *stat) error {
	var s sys.FileStat
	if e := sys.StatFd(fd, &s); e != 0 {
		return e
	}
	if s.Size != was.size || s.Mtime != was.mtime {
		return errWritten
	}
	return nil
}

// unlinked reports whether an open file has no name left.
func unlinked(fd int) bool {
	var s sys.FileStat
	return sys.StatFd(fd, &s) == 0 && s.Links == 0
}
