//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A proxy that runs as another user reaches a socket that has a mode for it.
func TestSocketAccess(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	group := strconv.Itoa(os.Getgid())
	p := start(t, folder(t, map[string]string{"f": "through"}), "--listen", "unix:"+sock+"?mode=0661&group="+group)
	if len(p.urls) != 1 || p.urls[0] != "unix:"+sock {
		t.Errorf("serves at %q", p.urls)
	}
	checkAccess(t, sock, 0o661, os.Getgid())
	if status, body := get(t, newClient(t, sock), "http://unix/f"); status != 200 || body != "through" {
		t.Errorf("%d %q", status, body)
	}
	p.signal(syscall.SIGQUIT) // as nginx is stopped
	p.waitFor(exitOK)
	if _, err := os.Lstat(sock); !os.IsNotExist(err) {
		t.Errorf("the socket file is still there: %v", err)
	}
}

// fresh is the mode of a new socket.
var fresh = func() os.FileMode {
	mask := syscall.Umask(0o022)
	syscall.Umask(mask)
	return 0o777 &^ os.FileMode(mask)
}()

func checkAccess(t *testing.T, sock string, mode os.FileMode, gid int) {
	t.Helper()
	info, err := os.Lstat(sock)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t).Gid; info.Mode().Perm() != mode || int(got) != gid {
		t.Errorf("the socket has mode %v and group %d, want %v and %d", info.Mode(), got, mode, gid)
	}
}

// A socket whose group cannot be set is removed.
func TestSocketAccessFails(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	oneLine(t, exitFailure, `chert: there is no group "no such group"; give its name or number`,
		"serve", t.TempDir(), "--listen", "unix:"+sock+"?group=no+such+group")
	if _, err := os.Lstat(sock); !os.IsNotExist(err) {
		t.Errorf("the socket file is still there: %v", err)
	}
}

func TestLookupGroup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"no such group", "", "-1", "1.5", "0x10", "4294967295", "4294967296", "18446744073709551616"} {
		if gid, err := lookupGroup(name); err == nil {
			t.Errorf("%q is the group %d", name, gid)
		}
	}
	for _, gid := range []int{0, os.Getgid(), 65534} {
		if got, err := lookupGroup(strconv.Itoa(gid)); err != nil || got != gid {
			t.Errorf("%d: got %d, %v", gid, got, err)
		}
	}
}

// A reload changes the access to a socket that stays open.
func TestReloadAccess(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	config := func(access string) string {
		return fmt.Sprintf("listen = 'unix:%s%s'\n[[site]]\nhosts = ['*']\nroot = 'www'\n", sock, access)
	}
	file := filepath.Join(folder(t, map[string]string{"chert.toml": config("?mode=0660"), "www/f": ""}), "chert.toml")
	p := start(t, "--config", file)
	checkAccess(t, sock, 0o660, os.Getgid())
	for _, tt := range []struct {
		access string
		mode   os.FileMode
	}{
		{"?mode=0606", 0o606},
		{"", fresh}, // what is left out is as in a socket that was made so
		{"?group=" + strconv.Itoa(os.Getgid()), fresh},
		{"?mode=0666", 0o666},
	} {
		write(t, file, config(tt.access))
		p.reload()
		checkAccess(t, sock, tt.mode, os.Getgid())
	}
}

// A group that is left out is that of the process again.
func TestSocketGroup(t *testing.T) {
	t.Parallel()
	other := otherGroup(t)
	sock := filepath.Join(shortDir(t), "s")
	l, err := listen(net.Listen, endpoint{network: "unix", address: sock, access: access{group: strconv.Itoa(other), mode: 0o660}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	checkAccess(t, sock, 0o660, other)
	if err := l.file.apply(access{mode: 0o606}); err != nil {
		t.Fatal(err)
	}
	checkAccess(t, sock, 0o606, os.Getgid())
	// Neither a group nor a mode is changed in part.
	if err := l.file.apply(access{mode: 0o666, group: "no such group"}); err == nil {
		t.Error("a group that is not there was given")
	}
	checkAccess(t, sock, 0o606, os.Getgid())
	// Nor what another process has put in its place.
	if err := os.Remove(sock); err != nil {
		t.Fatal(err)
	}
	write(t, sock, "another's")
	os.Chmod(sock, 0o600)
	if err := l.file.apply(access{mode: 0o666}); err == nil {
		t.Error("the file of another was changed")
	}
	checkAccess(t, sock, 0o600, os.Getgid())
}

// otherGroup is a group that the user is in beside the first.
func otherGroup(t *testing.T) int {
	t.Helper()
	if os.Getuid() == 0 {
		return os.Getgid() + 1
	}
	all, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, gid := range all {
		if gid != os.Getgid() {
			return gid
		}
	}
	t.Skip("the user is in one group only")
	return 0
}

// A reload that fails leaves every socket as it was, whatever came before the failure.
func TestReloadAccessFails(t *testing.T) {
	t.Parallel()
	one, two := filepath.Join(shortDir(t), "s"), filepath.Join(shortDir(t), "s")
	config := func(a, b, more string) string {
		return fmt.Sprintf("listen = ['unix:%s%s', 'unix:%s%s'%s]\n[[site]]\nhosts = ['*']\nroot = 'www'\n", one, a, two, b, more)
	}
	file := filepath.Join(folder(t, map[string]string{"chert.toml": config("?mode=0660", "", ""), "www/f": ""}), "chert.toml")
	p := start(t, "--config", file)
	for _, text := range []string{
		config("?mode=0666", "?group=no+such+group", ""), // after one was changed
		config("?mode=0666", "?mode=0600", ", 'unix:"+one+"/not/a/folder'"),
	} {
		write(t, file, text)
		p.refuse()
		checkAccess(t, one, 0o660, os.Getgid())
		checkAccess(t, two, fresh, os.Getgid())
	}
	// What was not changed does not count as changed.
	write(t, file, config("?mode=0666", "", ""))
	p.reload()
	checkAccess(t, one, 0o666, os.Getgid())
}

// Nor does a failure after all sockets are open and have their access leave anything.
func TestReloadAccessUndone(t *testing.T) {
	t.Parallel()
	one, two := filepath.Join(shortDir(t), "s"), filepath.Join(shortDir(t), "s")
	dir, keys := folder(t, map[string]string{"www/f": ""}), t.TempDir()
	config := func(listen, tls string) string {
		return fmt.Sprintf("listen = [%s]\ntls_storage = '%s'\n[[site]]\nhosts = ['a.example']\nroot = 'www'\n%s = true\n",
			listen, keys, tls)
	}
	file := filepath.Join(dir, "chert.toml")
	write(t, file, config("'unix:"+one+"?mode=0660'", "tls_self"))
	p := start(t, "--config", file)
	p.line() // whom to trust
	// The authority could not connect to a socket, which is known when it is open.
	write(t, file, config("'unix:"+one+"?mode=0666', 'unix:"+two+"'", "tls_auto"))
	if said := p.refuse(); !strings.Contains(said, "an address that the authority can connect to") {
		t.Errorf("another mistake: %s", said)
	}
	checkAccess(t, one, 0o660, os.Getgid())
	if _, err := os.Lstat(two); !os.IsNotExist(err) {
		t.Errorf("the new socket is there: %v", err)
	}
	// What was undone does not count as done.
	write(t, file, config("'unix:"+one+"?mode=0666'", "tls_self"))
	p.reload()
	checkAccess(t, one, 0o666, os.Getgid())
}
