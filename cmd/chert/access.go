package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// access says who may connect to a socket: on Linux, whoever may write to its file. The zero value leaves what the
// system gives a new file, which other users cannot write to as a rule: a proxy that runs as one is refused.
type access struct {
	mode  fs.FileMode // 0: as the umask has it
	group string      // a name or a number; "": that of the process
}

const wantAccess = "want unix:/path?mode=0660&group=www-data; either may be left out"

// parseSocket reads what stands after "unix:". A question mark ends the path.
func parseSocket(s string) (endpoint, error) {
	path, query, options := strings.Cut(s, "?")
	e := endpoint{network: "unix", address: path}
	if path == "" {
		return endpoint{}, errors.New("want a path after unix:, as in unix:/run/chert.sock")
	}
	// Package net takes a leading @ for a name outside the file system.
	if strings.HasPrefix(path, "@") {
		return endpoint{}, errors.New("want a path after unix:; abstract sockets are not supported")
	}
	values, err := url.ParseQuery(query)
	if options && (err != nil || len(values) == 0) {
		return endpoint{}, errors.New(wantAccess)
	}
	for key, all := range values {
		switch {
		case len(all) > 1:
			return endpoint{}, fmt.Errorf("%s is there twice", key)
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

// String is what follows the path.
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

// apply gives a socket's file its group and mode. Until then it has the mode that the umask leaves.
func (a access) apply(path string) error {
	if a.group != "" {
		gid, err := lookupGroup(a.group)
		if err != nil {
			return err
		}
		// Before the mode, which must not hold for another group.
		if err := os.Lchown(path, -1, gid); err != nil {
			return fmt.Errorf("cannot give the socket %s to the group %q: %w; without privileges it must be a group of the user",
				quote(path), a.group, cause(err))
		}
	}
	if a.mode != 0 {
		if err := os.Chmod(path, a.mode); err != nil {
			return fmt.Errorf("cannot set the mode of the socket %s: %w", quote(path), cause(err))
		}
	}
	return nil
}

func lookupGroup(name string) (gid int, err error) {
	if g, err := user.LookupGroup(name); err == nil {
		name = g.Gid
	}
	if gid, err = strconv.Atoi(name); err != nil || gid < 0 {
		return 0, fmt.Errorf("there is no group %q; give its name or number", name)
	}
	return gid, nil
}
