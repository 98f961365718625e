package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/internal/successor"
)

// access determines who may connect to a socket: on Linux, every process that may write to its file. The zero value
// leaves the mode and group of a new file, which other users usually cannot write to: a proxy that runs as another
// user is refused.
type access struct {
	mode  fs.FileMode // 0: according to the umask
	group string      // a name or a number; "": that of the process
}

const wantAccess = "want unix:/path?mode=0660&group=www-data; either may be left out"

// parseSocket parses the text after "unix:". A question mark ends the path.
func parseSocket(s string) (endpoint, error) {
	path, query, options := strings.Cut(s, "?")
	e := endpoint{network: "unix", address: path}
	if path == "" {
		return endpoint{}, errors.New("want a path after unix:, as in unix:/run/chert.sock")
	}
	// Package net treats a leading @ as a name outside the file system.
	if strings.HasPrefix(path, "@") {
		return endpoint{}, errors.New("want a path after unix:; abstract sockets are not supported")
	}
	values, err := url.ParseQuery(query)
	if options && (err != nil || len(values) == 0) {
		return endpoint{}, errors.New(wantAccess)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch all := values[key]; {
		case len(all) > 1:
			return endpoint{}, fmt.Errorf("%s is given twice", key)
		case key == "mode":
			n, err := strconv.ParseUint(all[0], 8, 32)
			if err != nil || n == 0 || n > 0o777 {
				return endpoint{}, errors.New("want a mode such as 0660, in octal")
			}
			e.access.mode = fs.FileMode(n)
		case key == "group" && all[0] != "":
			e.access.group = all[0]
		default:
			return endpoint{}, errors.New(wantAccess)
		}
	}
	return e, nil
}

// String returns what follows the path.
func (a access) String() string {
	var all []string
	if a.mode != 0 {
		all = append(all, fmt.Sprintf("mode=%04o", a.mode))
	}
	if a.group != "" {
		all = append(all, "group="+url.QueryEscape(a.group))
	}
	if all == nil {
		return ""
	}
	return "?" + strings.Join(all, "&")
}

// socketFile is the file of a listening socket.
type socketFile struct {
	path string      // one of its names, if it has several through links
	made fs.FileInfo // nil if it has been replaced or removed
	// As the system made it.
	mode fs.FileMode
	gid  int
	// inherited: a process before this one made it.
	inherited bool
	denied    error // the access, when this process began to serve
}

// ours reports whether info is of that file; another may have its name by now. While the socket is open, the system
// gives its inode number to no other file.
func (f *socketFile) ours(info fs.FileInfo) bool { return os.SameFile(info, f.made) }

// isAt reports whether path is a name of the file.
func (f *socketFile) isAt(path string) bool {
	now, err := os.Lstat(path)
	return err == nil && f.ours(now)
}

// remove may be called more than once, best before the socket is closed: as long as it accepts, no program takes the
// file for one that a dead process left. Afterwards a successor's file may have the same inode number, hence the times.
func (f *socketFile) remove() {
	if f.made == nil || !successor.Current().Owns(f.inherited) {
		return
	}
	if now, err := os.Lstat(f.path); err == nil && f.ours(now) && now.ModTime().Equal(f.made.ModTime()) {
		os.Remove(f.path)
	}
}

// apply sets the group and the mode of the file; what a leaves out becomes as the system made it. After an error both
// are as before.
func (f *socketFile) apply(a access) error {
	now, err := os.Lstat(f.path)
	if err == nil && !f.ours(now) {
		err = errors.New("another process has replaced it")
	}
	if err != nil {
		return fmt.Errorf("cannot set the mode of the socket %s: %w", quote(f.path), cause(err))
	}
	gid, mode, old := f.gid, f.mode, now.Mode().Perm()
	if a.group != "" {
		if gid, err = lookupGroup(a.group); err != nil {
			return err
		}
	}
	if a.mode != 0 {
		mode = a.mode
	}
	if gid != groupOf(now) {
		// Neither mode may ever be in force for the other's group.
		if err = os.Chmod(f.path, old&^0o070); err == nil {
			if err = os.Lchown(f.path, -1, gid); err != nil {
				os.Chmod(f.path, old)
			}
		}
		if err != nil {
			return fmt.Errorf("cannot give the socket %s to the group %s: %w; without privileges it must be a group "+
				"of the user (in a unit of systemd: SupplementaryGroups=, and SystemCallFilter=@chown)",
				quote(f.path), a.groupName(gid), cause(err))
		}
		old &^= 0o070
	}
	if mode == old {
		return nil
	}
	if err := os.Chmod(f.path, mode); err != nil {
		return fmt.Errorf("cannot set the mode of the socket %s: %w", quote(f.path), cause(err))
	}
	return nil
}

// groupName returns the name of a's group, which has the number gid, for an error.
func (a access) groupName(gid int) string {
	if a.group == "" {
		return strconv.Itoa(gid)
	}
	return strconv.Quote(a.group)
}

func lookupGroup(name string) (gid int, err error) {
	if g, err := user.LookupGroup(name); err == nil {
		name = g.Gid
	}
	// The system uses 32 bits of a number, in which 4294967296 is root's group, and all ones mean no change.
	n, err := strconv.ParseUint(name, 10, 32)
	if err != nil || n == math.MaxUint32 {
		return 0, fmt.Errorf("there is no group %q; give its name or number", name)
	}
	return int(n), nil
}
