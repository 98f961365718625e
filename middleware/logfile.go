package middleware

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenLog returns a LineWriter to the end of a file, which it creates with mode 0640
// (before umask) if there is none. Its folder must exist. Every write is appended
// (O_APPEND), so that several processes can share a file. o may be nil.
//
//	out, err := middleware.OpenLog("/var/log/shop/access.log", nil)
//	...
//	defer out.Close()
//	access := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: out})
//
// After the file has been renamed, Reopen goes on with a new one. It is an error if path is
// something else than a regular file or a device, such as a pipe, which could be
// waited for without end.
func OpenLog(path string, o *LineWriterOptions) (*LineWriter, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, err := openAppend(path)
	if err != nil {
		return nil, err
	}
	l := NewLineWriter(f, o)
	l.path = path
	return l, nil
}

var errNoLogFile = errors.New("middleware: LineWriter.Reopen: not made by OpenLog")

// Reopen opens the file of OpenLog again by its path, for after it has been renamed or
// removed, and closes the one before. A line that is written while Reopen is
// called is in either of them, whole; when it has returned, nothing is written to the
// one before any more. After an error that one is still in use. It may be called
// concurrently, and waits for a write in progress.
func (l *LineWriter) Reopen() error {
	if l.path == "" {
		return errNoLogFile
	}
	f, err := openAppend(l.path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	for l.writing {
		l.changed.Wait()
	}
	old, open := l.out.(*os.File)
	if open {
		l.out, l.torn = f, false
	}
	l.mu.Unlock()
	if !open { // after Close
		return f.Close()
	}
	return old.Close()
}

// closeFile closes the file of OpenLog. l.mu is held.
func (l *LineWriter) closeFile() error {
	f, open := l.out.(*os.File)
	if l.path == "" || !open {
		return nil
	}
	l.out = closedFile(l.path)
	return f.Close()
}

// A closedFile is a file that is opened for each Write, by its path: for the lines of
// responses that end after the log was closed.
type closedFile string

// Write implements io.Writer.
func (path closedFile) Write(p []byte) (int, error) {
	f, err := openAppend(string(path))
	if err != nil {
		return 0, err
	}
	n, err := f.Write(p)
	return n, errors.Join(err, f.Close())
}

// openAppend opens a log. Something else than a file is not opened at all, as others may see
// that; what has replaced a file since is closed again.
func openAppend(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !isLog(info) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotLog}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|logFlags, 0o640)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !isLog(info) {
		if err == nil {
			err = &fs.PathError{Op: "open", Path: path, Err: errNotLog}
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

var errNotLog = errors.New("this is not a regular file")

func isLog(info fs.FileInfo) bool {
	return info.Mode().IsRegular() || info.Mode()&fs.ModeCharDevice != 0
}
