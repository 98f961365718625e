package main

import (
	"os"
	"path/filepath"
	"runtime"
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
		{exitUsage, "want one file", nil}, {exitFailure, "chert: " + filepath.Join(dir, "gone") + ": no such file\n", []string{filepath.Join(dir, "gone")}},
		{exitFailure, dir + ": cannot read it: ", []string{dir}},
	} {
		if code, _, stderr := inProcess(t, append([]string{"adapt"}, tt.args...)...); code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: %d %s", tt.args, code, stderr)
		}
	}
}

// Files that a configuration of nginx includes are read from the folder of nginx.conf, also for one that is itself
// included; a name that is a pattern is for no hidden files.
func TestAdaptIncludes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, enabled, snippet := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "sites-enabled"), filepath.Join(dir, "snippets", "keep.conf")
	write(t, file, "http { include mime.types; include sites-enabled/*; include conf.d/*.conf; include gone.conf; include snippets; }\n")
	write(t, filepath.Join(enabled, "a"), "server { listen 8080; server_name a.example;\nroot /w; include snippets/keep.conf; }\n")
	write(t, filepath.Join(enabled, "b"), "server { listen 8080; server_name b.example; root /w; }\n")
	write(t, filepath.Join(enabled, ".c"), "}")
	write(t, snippet, "\ndeny all; magic on;\n")
	code, stdout, stderr := inProcess(t, "adapt", file)
	want := file + ":1: include gone.conf is left out: there is no " + filepath.Join(dir, "gone.conf") + "\n" +
		file + ":1: include snippets is left out: " + filepath.Join(dir, "snippets") + " is no file\n" +
		file + ":1: include may say who may have it, so nobody may: deny is \"all\"\n" + snippet + ":2: magic is left out\n"
	if code != exitFailure || stderr != want || !strings.Contains(stdout, "deny = [\"all\"]\n\n[[site]]\nhosts = [\"b.example\"]") {
		t.Errorf("%d %s\nwant %s\n%s", code, stderr, want, stdout)
	}
	code, stdout, stderr = inProcess(t, "adapt", filepath.Join(enabled, "a"))
	if code != exitFailure || stderr != snippet+":2: magic is left out\n" || !strings.Contains(stdout, "deny = [\"all\"]") {
		t.Errorf("%d %s\n%s", code, stderr, stdout)
	}
	if runtime.GOOS != "windows" { // which has no such names; a line of its own would be no comment of the output
		write(t, filepath.Join(enabled, "c\ndeny = []"), "magic on;")
		write(t, file, "http { include sites-enabled/c*; }\n")
		if _, stdout, _ = inProcess(t, "adapt", file); !strings.Contains(stdout, "c?deny = []:1: magic is left out\n") {
			t.Error(stdout)
		}
		write(t, file, "http { include snippets/*; }\n")
	}
	write(t, snippet, "}\n")
	code, stdout, stderr = inProcess(t, "adapt", file)
	if want := snippet + ":1: a } without a {\n"; code != exitFailure || stderr != want || stdout != "" {
		t.Errorf("%d %s %s, want %s", code, stdout, stderr, want)
	}
}

// What is cut off the path of a request that is forwarded is cut off every path, one with a line break in it too, and
// what is hidden there is compared with what is left.
func TestAdaptCutsEveryPath(t *testing.T) {
	t.Parallel()
	app := addrOfServer(echo(t, "app"))
	file := filepath.Join(t.TempDir(), "nginx.conf")
	write(t, file, "server { listen 80; server_name x; proxy_redirect off; location /api/ { proxy_pass http://"+app+"/; }\n"+
		"location /b { proxy_pass http://"+app+"/c; location /b/key { deny all; } }\n"+
		"location /d/ { rewrite ^/d/(.*)$ /$1 break; proxy_pass http://"+app+"; } }\n")
	_, text, _ := inProcess(t, "adapt", file)
	p, _ := startConfig(t, text, nil)
	for target, want := range map[string]string{
		"/api/x": "app GET /x ", "/api/x%0Ay": "app GET /x%0Ay ", "/api/%0A": "app GET /%0A ", "/b/x%0Ay": "app GET /c/x%0Ay ",
		"/d/x%0Ay": "app GET /x%0Ay ", "/b/key%0A": "",
	} {
		status, body := rawTo(t, p.urls[0], "x", target)
		if want == "" && status != 404 || !strings.HasPrefix(body, want) {
			t.Errorf("%s: %d %q, want %q", target, status, body, want)
		}
	}
}
