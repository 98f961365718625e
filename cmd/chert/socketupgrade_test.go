//go:build linux || darwin

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// upgradableSocket starts a server at a port and at the socket s with an access. configure changes that, and the other
// addresses.
func upgradableSocket(t *testing.T, access string) (u *upgradable, sock string, configure func(access, others string)) {
	t.Helper()
	dir := shortDir(t)
	file, sock := filepath.Join(dir, "chert.toml"), filepath.Join(dir, "s")
	write(t, filepath.Join(dir, "www", "f"), "body")
	configure = func(access, others string) {
		write(t, file, fmt.Sprintf("listen = ['unix:%s%s', '127.0.0.1:0'%s]\n[[site]]\nhosts = ['*']\nroot = 'www'\n",
			sock, access, others))
	}
	configure(access, "")
	return startUpgradable(t, "serve", "--config", file), sock, configure
}

func hasMode(sock string, mode os.FileMode) bool {
	info, err := os.Lstat(sock)
	return err == nil && info.Mode().Perm() == mode
}

// The access to a socket is that of the process that serves, also if another has failed.
func TestUpgradeOfAccess(t *testing.T) {
	t.Parallel()
	u, sock, configure := upgradableSocket(t, "?mode=0666")
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	configure("?mode=0600", fmt.Sprintf(", '%s'", other.Addr()))
	u.fails("failed: ")
	checkAccess(t, sock, 0o666, os.Getgid())
	configure("?mode=0600&group=no+such+group", "")
	u.fails("there is no group")

	if err := os.Chmod(sock, 0o600); err != nil {
		t.Fatal(err)
	}
	configure("?mode=0666", "")
	u.signal(syscall.SIGHUP)
	for !strings.HasPrefix(u.line(), "chert: reloaded; ") {
	}
	checkAccess(t, sock, 0o666, os.Getgid())

	configure("?mode=0606", "")
	pid := u.upgrade()
	until(t, func() bool { return hasMode(sock, 0o606) })
	u.end(pid)
}

// A reload during an upgrade is one of the process that serves then.
func TestReloadDuringUpgrade(t *testing.T) {
	t.Parallel()
	u, sock, configure := upgradableSocket(t, "")
	pid := 0
	upTo := func(text string) {
		for {
			line := u.line()
			fmt.Sscanf(line, "chert: upgrade: process %d has taken over from ", &pid)
			if strings.HasPrefix(line, text) {
				return
			}
		}
	}
	reload := func(mode string) {
		configure("?mode="+mode, "")
		u.signal(syscall.SIGHUP)
		upTo("chert: the reload waits for the end of the upgrade\n")
	}
	u.script("echo began; until [ -e go ]; do sleep 0.01; done; exit 3")
	u.signal(syscall.SIGUSR2)
	upTo("began\n")
	reload("0606")
	write(t, filepath.Join(u.dir, "go"), "")
	upTo("chert: reloaded; ")
	checkAccess(t, sock, 0o606, os.Getgid())

	u.install()
	u.signal(syscall.SIGUSR2)
	upTo("chert: serving ") // it has read the configuration
	reload("0660")
	upTo("chert: reloaded; ")
	checkAccess(t, sock, 0o660, os.Getgid())
	for pid == 0 {
		upTo("")
	}
	u.end(pid)
}

// A socket whose file was removed is opened anew by the next process.
func TestUpgradeOfRemovedSocket(t *testing.T) {
	t.Parallel()
	u, sock, _ := upgradableSocket(t, "?mode=0606")
	for _, path := range []string{sock, u.control} {
		if err := os.Rename(path, path+".removed"); err != nil {
			t.Fatal(err)
		}
	}
	u.signal(syscall.SIGUSR2)
	pid := 0
	for pid == 0 {
		fmt.Sscanf(u.line(), "chert: upgrade: process %d has taken over from ", &pid)
	}
	checkAccess(t, sock, 0o606, os.Getgid())
	if status, body := get(t, newClient(t, sock), "http://unix/f"); status != 200 || body != "body" {
		t.Errorf("%d %q", status, body)
	}
	u.end(u.upgrade())
}
