//go:build !linux

package static

import (
	"io/fs"
	"os"
)

func statOfInfo(i fs.FileInfo) stat { return statOf(i) }

// unwritten compares an open file with its earlier state. Renaming and
// unlinking change no byte.
func unwritten(f *os.File, _ int, was *stat) error {
	i, err := f.Stat()
	if err != nil {
		return err
	}
	if i.Size() != was.size || i.ModTime().UnixNano() != was.mtime {
		return errWritten
	}
	return nil
}

// unlinked is not known here.
func unlinked(int) bool { return false }
