//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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

// One that cannot be given away is not left behind.
func TestSocketAccessFails(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	oneLine(t, exitFailure, `chert: there is no group "no such group"; give its name or number`,
		"serve", t.TempDir(), "--listen", "unix:"+sock+"?group=no+such+group")
	if _, err := os.Lstat(sock); !os.IsNotExist(err) {
		t.Errorf("the socket file is still there: %v", err)
	}
}

// A reload changes the access to a socket that stays open.
func TestReloadAccess(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	config := func(access string) string {
		return fmt.Sprintf("listen = 'unix:%s%s'\n[[site]]\nhosts = ['*']\nroot = '.'\n", sock, access)
	}
	file := filepath.Join(folder(t, map[string]string{"chert.toml": config("?mode=0660")}), "chert.toml")
	p := start(t, "--config", file)
	checkAccess(t, sock, 0o660, os.Getgid())
	write(t, file, config("?mode=0606"))
	p.signal(syscall.SIGHUP)
	p.line() // that it has reloaded
	checkAccess(t, sock, 0o606, os.Getgid())
}
