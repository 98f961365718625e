package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/adapt"
)

// included returns the source of the files that a configuration of nginx includes. Relative names begin at the folder
// of nginx.conf: that of the file, or the one above, as for a file of sites-enabled.
func included(file string) adapt.Source {
	dir := filepath.Dir(file)
	if above := filepath.Join(dir, ".."); !isFile(filepath.Join(dir, "nginx.conf")) &&
		isFile(filepath.Join(above, "nginx.conf")) {
		dir = above
	}
	return func(name string) (all []adapt.File, err error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		names := []string{name}
		if strings.ContainsAny(name, "*?[") {
			if names, err = filepath.Glob(name); err == nil {
				err = unreadable(filepath.Dir(name))
			}
			if err != nil {
				return nil, err
			}
			names = slices.DeleteFunc(names, func(n string) bool { // as in a shell
				return strings.HasPrefix(filepath.Base(n), ".") && !strings.HasPrefix(filepath.Base(name), ".")
			})
		}
		for _, n := range names {
			text, err := readConfiguration(n)
			if err != nil {
				return nil, err
			}
			all = append(all, adapt.File{Name: n, Text: text})
		}
		return all, nil
	}
}

// unreadable returns the error of a folder that a pattern is for, or was looked for in, and that may not be read: it
// looks empty to filepath.Glob, and nginx, which reads as root, finds the rules in it.
func unreadable(pattern string) error {
	if above := filepath.Dir(pattern); above != pattern && strings.ContainsAny(pattern, "*?[") {
		if err := unreadable(above); err != nil {
			return err
		}
	}
	folders := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		var err error
		if folders, err = filepath.Glob(pattern); err != nil {
			return err
		}
	}
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err == nil && info.IsDir() {
			var f *os.File
			if f, err = os.Open(folder); err == nil {
				f.Close()
			}
		}
		if errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// readConfiguration returns the text of a file that is not too long, and no pipe, which could have no end.
func readConfiguration(name string) (string, error) {
	switch info, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no %s", name)
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, adapt.MaxSize+1))
	if err == nil && len(text) > adapt.MaxSize {
		err = fmt.Errorf("%s is longer than 1 MiB", name)
	}
	return string(text), err
}
