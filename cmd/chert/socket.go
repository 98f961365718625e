package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/chert-http/chert/internal/sys"
)

// listenUnix opens a socket file. It replaces one that a dead process left; any other file in its place is an error.
func listenUnix(open openFunc, e endpoint) (listener, error) {
	if s, ok := takeUnix(e); ok {
		if _, err := os.Lstat(e.address); !errors.Is(err, fs.ErrNotExist) {
			return inheritUnix(e, s)
		}
		// Its file has been removed, so that no client can reach it.
		for _, fd := range s.FDs {
			sys.Close(fd)
		}
	}
	if err := removeStale(e); err != nil {
		return listener{}, err
	}
	l, err := open(e.network, e.address)
	if err != nil {
		return listener{}, explainUnix(e, err)
	}
	// It would remove any file of that name when it is closed; socketFile.remove removes its own.
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	made, err := os.Lstat(e.address)
	if err != nil {
		l.Close()
		return listener{}, explainUnix(e, err)
	}
	file := &socketFile{path: e.address, made: made, mode: made.Mode().Perm(), gid: groupOf(made)}
	opened := listener{Listener: l, file: file}
	opened.drop = keepUnix(e, l, file)
	if err := opened.file.apply(e.access); err != nil {
		opened.close()
		return listener{}, err
	}
	return opened, nil
}

// removeStale removes e's socket file if no process listens on it.
//
// If two processes start at the same time, both may find the file stale, and the later takes the name from the
// earlier. A lock file would prevent it.
func removeStale(e endpoint) error {
	path := e.address
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explainUnix(e, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket; choose another path for --listen or remove it", quote(path))
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
		return fmt.Errorf("the socket %s is in use; stop the program that holds it or choose another path for --listen",
			quote(path))
	}
	// Only a refusal proves that no process listens. A full queue or a missing permission does not.
	if !isRefused(err) {
		return fmt.Errorf("cannot tell whether the socket %s is in use (%w); remove it if not", quote(path), cause(err))
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("cannot replace the unused socket %s: %w", quote(path), cause(err))
	}
	return nil
}

func explainUnix(e endpoint, err error) error {
	path := quote(e.address)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no folder for the socket %s; create %s first", path, quote(filepath.Dir(e.address)))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to create the socket %s; choose a folder you may write to", path)
	case isAddrInUse(err):
		// Another process was faster.
		return fmt.Errorf("the socket %s is in use; choose another path for --listen", path)
	case len(e.address) > 100 && isBadName(err):
		return fmt.Errorf("the path of the socket %s is too long; the system takes about 100 bytes", path)
	}
	return fmt.Errorf("cannot listen on the socket %s: %w", path, cause(err))
}

// cause removes what packages net and os add to the system's error, which would name the path again.
func cause(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}
