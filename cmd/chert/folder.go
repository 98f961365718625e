package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// The reasons not to serve a folder.
var (
	errNoFolder   = errors.New("no such folder")
	errNotAFolder = errors.New("this is not a folder")
	errForbidden  = errors.New("no permission to read the folder")
)

// checkFolder reports why dir cannot be served.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%w: %s", errNotAFolder, quote(dir))
	}
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			// Opening requires permission to read the folder's list; finding a file in it also requires permission to
			// search it.
			_, err = root.Stat(".")
			root.Close()
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s", errNoFolder, quote(dir))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w %s", errForbidden, quote(dir))
	}
	return fmt.Errorf("cannot open the folder %s: %w", quote(dir), cause(err))
}

// explainFolder is checkFolder for the command line: its errors suggest a remedy.
func (o *serveOptions) explainFolder() error {
	err := checkFolder(o.dir)
	switch {
	case errors.Is(err, errNotAFolder) && o.files.spaAlone:
		return fmt.Errorf("%s is not a folder; the file of --spa comes after an equals sign: --spa=FILE", quote(o.dir))
	case errors.Is(err, errNoFolder) && o.files.spaAlone:
		return fmt.Errorf("%w; the file of --spa comes after an equals sign: --spa=FILE", err)
	case errors.Is(err, errNoFolder) && isPort(o.dir):
		return fmt.Errorf("%w; for the port: --listen :%s", err, o.dir)
	case errors.Is(err, errNotAFolder):
		return fmt.Errorf("%s is not a folder; give the folder that holds it, as in \"chert serve DIR\"", quote(o.dir))
	case errors.Is(err, errNoFolder):
		return fmt.Errorf("%w; give one that exists, as in \"chert serve DIR\"", err)
	case errors.Is(err, errForbidden):
		return fmt.Errorf("%w; change its permissions or run chert as a user with permission", err)
	}
	return err
}

// isPort reports whether s is what other servers take as a port where chert takes a folder.
func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}
