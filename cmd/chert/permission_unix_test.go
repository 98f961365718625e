//go:build unix

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// unprivileged runs chert, as the user nobody if the test runs as root, whom permissions do not stop, and expects a
// failure with this line.
func unprivileged(t *testing.T, want string, args ...string) {
	t.Helper()
	cmd := command(t, args...)
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("cannot run chert as another user here: ", err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitFailure {
		t.Errorf("chert %q: %v, want exit code %d; stdout %q", args, err, exitFailure, stdout.String())
	}
	if got := stderr.String(); got != want+"\n" {
		t.Errorf("chert %q:\ngot  %s\nwant %s", args, got, want)
	}
}

func TestFolderPermission(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]fs.FileMode{
		"no access":   0,
		"list only":   0o444, // names could be listed, but no file opened
		"search only": 0o111,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(shortDir(t), "private")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			unprivileged(t, `chert: no permission to read the folder "`+dir+
				`"; change its permissions or run chert as a user with permission`, "serve", dir, "--listen", "127.0.0.1:0")
		})
	}
}

func TestPortPermission(t *testing.T) {
	t.Parallel()
	// Containers often permit all ports.
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if first, _ := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && first <= 1 {
		t.Skip("every port is open to every user here")
	}
	unprivileged(t, "chert: no permission to listen on 127.0.0.1:1; ports below 1024 need privileges,"+
		" others do not: try --listen 127.0.0.1:8080", "serve", "/", "--listen", "127.0.0.1:1")
}

func TestSocketPermission(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(dir, "s")
	unprivileged(t, `chert: no permission to create the socket "`+sock+`"; choose a folder you may write to`,
		"serve", "/", "--listen", "unix:"+sock)
}

func TestKeyPermission(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), shortDir(t)
	cert, key := ca.server(dir, "a", "a.example")
	if err := os.Chmod(key, 0); err != nil {
		t.Fatal(err)
	}
	www := shortDir(t)
	unprivileged(t, "chert: no permission to read "+quote(key)+"; run chert as the user it belongs to, or let that user's group read it",
		"serve", www, "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	unprivileged(t, "chert: no permission to write "+quote(filepath.Join(www, ".state", "self"))+"; choose a folder you may write to with --tls-storage",
		"serve", www, "--listen", "127.0.0.1:0", "--tls-self", "--tls-storage", filepath.Join(www, ".state"))
}

// A folder of included files that cannot be read may have the rules of who may have what.
func TestIncludePermission(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	file, rules := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "rules")
	write(t, file, "server { listen 80; server_name a.example; root /w; include rules/*.conf; }\n")
	write(t, filepath.Join(rules, "deny.conf"), "deny all;\n")
	if err := os.Chmod(rules, 0o111); err != nil {
		t.Fatal(err)
	}
	unprivileged(t, file+":1: include rules/*.conf is left out: open "+rules+": permission denied", "adapt", file)
}
