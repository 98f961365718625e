package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAdapt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, caddy := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "Caddyfile")
	write(t, file, "server { listen 8080; root www; }\n")
	write(t, caddy, ":8080 {\n\troot * www\n\tfile_server\n\tphp_fastcgi x\n}\n")
	write(t, filepath.Join(dir, "www", "f"), "f")
	code, stdout, stderr := inProcess(t, "adapt", file)
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "listen = [\":8080\"]") {
		t.Fatalf("%d %s %s", code, stdout, stderr)
	}
	out := filepath.Join(dir, "chert.toml")
	write(t, out, stdout)
	if code, stdout, stderr := inProcess(t, "check", out); code != exitOK || !strings.HasSuffix(stdout, "ok, 1 site\n") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	code, stdout, stderr = inProcess(t, "adapt", caddy)
	want := caddy + ":4: php_fastcgi is left out: "
	if code != exitFailure || !strings.HasPrefix(stderr, want) || !strings.Contains(stdout, "\n# "+want) || !strings.Contains(stdout, "root = \"www\"") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	other := filepath.Join(dir, "sites.txt")
	if err := os.Rename(caddy, other); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		code int
		want string
		args []string
	}{
		{exitFailure, "is left out", []string{"--from", "caddy", other}}, {exitFailure, other + ":2: \"root\" has no semicolon\n", []string{other}}, {exitUsage, `--from wants "nginx" or "caddy"`, []string{"--from", "apache", other}},
		{exitUsage, "want one file", nil}, {exitFailure, "no such file", []string{filepath.Join(dir, "gone")}},
	} {
		if code, _, stderr := inProcess(t, append([]string{"adapt"}, tt.args...)...); code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: %d %s", tt.args, code, stderr)
		}
	}
}
