package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// openFolder opens dir to be served. Nothing outside it can be reached through the result, by ".." or by a link.
// The folder is found once: if another takes its name later, the first goes on being served.
func openFolder(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder; give the folder that holds it, as in \"chert serve DIR\"", quote(dir))
	}
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(dir)
	}
	if err == nil {
		// Opening needs leave to read the folder's list; finding a file in it needs leave to search it as well.
		if _, err = root.Stat("."); err != nil {
			root.Close()
		}
	}
	switch {
	case err == nil:
		return root, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no such folder: %s; give one that exists, as in \"chert serve DIR\"", quote(dir))
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("no permission to read the folder %s; change its permissions or run chert as a user who may",
			quote(dir))
	}
	return nil, fmt.Errorf("cannot open the folder %s: %w", quote(dir), err)
}

// folderFS is a root's file system with some errors changed: what cannot be there does not exist. These are a link
// that leaves the root, for which os.Root's error has no identity, and names the system takes for malformed.
// http.FileServerFS would answer them with 500, which says that the server is at fault.
type folderFS struct{ fs.FS }

// Open returns an *os.File, whose methods the file handler looks for.
func (f folderFS) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err == nil {
		return file, nil
	}
	if isNeverThere(err) {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return nil, err
}
