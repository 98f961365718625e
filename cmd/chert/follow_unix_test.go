//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Links lead into the folders of follow, on both paths, and nowhere else; a file that must not be
// served may not be in one of them. The folders are relative to the file, by whichever path it is named.
func TestFollowSites(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"www/f": "f", "shared/f": "of shared", "shared2/f": "secret", "other/f": "secret", "shared/.dot": "secret"})
	for name, to := range map[string]string{
		"in": filepath.Join(dir, "shared"), "relative": "../shared/f", "longer": filepath.Join(dir, "shared2", "f"), "out": "../other/f",
		"dot": "../shared/.dot", "self": "self", "passwd": "/etc/passwd",
	} {
		if err := os.Symlink(to, filepath.Join(dir, "www", name)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "chert.toml")
	text := "[[site]]\nhosts = '*'\nroot = 'www'\nfollow = 'shared'\n"
	write(t, file, text)
	for _, name := range []string{file, "chert.toml"} {
		p := &proc{t: t, cmd: command(t, "serve", "--config", name, "--listen", "127.0.0.1:0")}
		p.cmd.Dir = dir
		p.begin()
		c := newClient(t, "")
		for path, want := range map[string]string{
			"f": "f", "in/f": "of shared", "relative": "of shared", "longer": "", "out": "", "dot": "", "self": "", "passwd": "", "in/.dot": "",
			"in/../../other/f": "", "in/%2e%2e/other/f": "",
		} {
			for range 3 {
				r := send(t, c, p.urls[0], path, "a.example", nil)
				served := r.status == 200 && r.body == want
				if served != (want != "") || strings.Contains(r.body, "secret") {
					t.Errorf("%s of %s: %d %q", path, name, r.status, r.body)
				}
			}
		}
	}
	hash := "a:$2a$04$r8kyErBM4qAZ4rbRWNmVmeqMTFn0Ghz0LYDzVwlvQ6gzyBbMU6KGO\n"
	write(t, filepath.Join(dir, "shared", "users"), hash)
	write(t, file, text+"basic_auth = { htpasswd = 'shared/users' }\n")
	if code, _, stderr := inProcess(t, "check", file); code == exitOK || !strings.Contains(stderr, "which is served, so clients could read it") {
		t.Errorf("%d %s", code, stderr)
	}
}
