package main

import (
	"encoding/json"
	"io/fs"
	"net"
	"os"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/successor"
)

// socketNote is what a process notes of the file of a socket for its successor.
type socketNote struct {
	File string      `json:"file"` // as identityOf
	Mode fs.FileMode `json:"mode"`
	GID  int         `json:"gid"`
}

// keepUnix has a successor inherit a socket, until drop is called.
func keepUnix(e endpoint, l net.Listener, file *socketFile) (drop func()) {
	u, ok := l.(*net.UnixListener)
	if !ok {
		return nil
	}
	return successor.Current().Keep(&successor.Kept{
		Network: e.network, Address: e.address,
		Note: func() []byte {
			if file.made == nil {
				return nil
			}
			b, err := json.Marshal(socketNote{identityOf(file.made), file.mode, file.gid})
			if err != nil {
				return nil
			}
			return b
		},
		Sockets: func() ([]int, error) {
			fd, err := accept.Copy(u)
			return []int{fd}, err
		},
		Confirmed: func() {
			if file.inherited && file.made != nil {
				file.denied = file.apply(e.access)
			}
		},
	})
}

// takeUnix returns the socket of an endpoint, whose path may be written in another way, that a
// process before this one has opened.
func takeUnix(e endpoint) (*successor.Socket, bool) {
	p := successor.Current()
	for _, s := range p.Passed() {
		if (endpoint{network: s.Network, address: s.Address}).same(e) {
			return p.Take(s.Network, s.Address)
		}
	}
	return nil, false
}

// inheritUnix returns the listener of a socket that a process before this one has opened. Its file gets e's access when
// this process serves: until then it may fail, and the other goes on with what it has.
func inheritUnix(e endpoint, s *successor.Socket) (listener, error) {
	l, err := accept.FileListener(s.FDs[0])
	if err != nil {
		return listener{}, explainUnix(e, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	file := inheritFile(e.address, s.Note)
	opened := listener{Listener: l, file: file}
	opened.drop = keepUnix(e, l, file)
	if e.access.group != "" && file.made != nil {
		if _, err := lookupGroup(e.access.group); err != nil {
			opened.close()
			return listener{}, err
		}
	}
	return opened, nil
}

// inheritFile returns the file of a socket according to a note. Another may be at its path by now.
func inheritFile(path string, note []byte) *socketFile {
	f := &socketFile{path: path, inherited: true}
	var n socketNote
	if json.Unmarshal(note, &n) != nil {
		return f
	}
	f.mode, f.gid = n.Mode, n.GID
	if now, err := os.Lstat(path); err == nil && n.File != "" && identityOf(now) == n.File {
		f.made = now
	}
	return f
}

// removeLeft removes the files of sockets that a process before this one had, and this one does
// not want.
func removeLeft(left []*successor.Socket) {
	for _, s := range left {
		if s.Network == "unix" {
			inheritFile(s.Address, s.Note).remove()
		}
	}
}
