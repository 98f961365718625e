package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	const site = "[[site]]\nhosts = ['*']\nroot = 'www'\n"
	for _, tt := range []struct {
		name, text string
		code       int
		want       string // FILE stands for the file
	}{
		{"one site", site, exitOK, "FILE: ok, 1 site\n"},
		{"more", site + "[[site]]\nhosts = 'a'\nroot = 'www'\n[[redirect]]\nhosts = 'b'\nto = 'http://a/'\n", exitOK,
			"FILE: ok, 2 sites and 1 redirect\n"},
		{"errors", "listen = ['8O80']\n" + site + "spa = 'no.html'\n[[site.rules]]\nmatch = '[a'\nheaders = {Content-Length = '1', ETag = ''}\n",
			exitFailure, `FILE:1:11: listen: "8O80": want host:port, :port, a port, unix:/path or fd:NAME
FILE:5:7: spa: there is no file "no.html" in "DIR/www"
FILE:7:9: "[a" is not a valid pattern
FILE:8:12: the field "Content-Length" cannot be set
`},
		{"addresses", "listen = ['8080', 'unix:s', 'unix:./s?mode=0660', '127.0.0.1:8080', ':8080']\n" + site, exitFailure,
			`FILE:1:29: listen: "unix:./s?mode=0660": it is given already
FILE:1:51: listen: "127.0.0.1:8080": it is given already
FILE:1:69: listen: ":8080": it is every address of this machine, and 127.0.0.1:8080 is given already
`},
		{"no folder", "[[site]]\nhosts = ['*']\nroot = 'gone'\n[[site]]\nhosts = 'a'\nroot = 'www/f'\n", exitFailure,
			`FILE:3:8: root: no such folder: "DIR/gone"
FILE:6:8: root: this is not a folder: "DIR/www/f"
`},
		{"users that are served", site + "[[site.route]]\npath = '/x/{p...}'\nroot = 'secrets'\n[[site.route]]\npath = '/y'\nrespond = 200\n" +
			"[site.route.basic_auth]\nhtpasswd = 'secrets/users'\n", exitFailure,
			"FILE:11:12: the file of users \"DIR/secrets/users\" is in the folder \"DIR/secrets\", which is served, so clients could read it; move it elsewhere\n"},
	} {
		dir := folder(t, map[string]string{"www/f": "", "secrets/users": "bob:$2a$04$r8kyErBM4qAZ4rbRWNmVmeqMTFn0Ghz0LYDzVwlvQ6gzyBbMU6KGO\n"})
		file := filepath.Join(dir, "c.toml")
		write(t, file, tt.text)
		code, stdout, stderr := inProcess(t, "check", file)
		want := strings.NewReplacer("FILE", file, "DIR", dir).Replace(tt.want)
		got, other := stderr, stdout
		if tt.code == exitOK {
			got, other = stdout, stderr
		}
		if code != tt.code || got != want || other != "" {
			t.Errorf("%s: %d, %q\ngot  %s\nwant %s", tt.name, code, other, got, want)
		}
	}
	code, stdout, stderr := inProcess(t, "check", "/nowhere/c.toml")
	if code != exitFailure || stdout != "" || stderr != "/nowhere/c.toml: no such file\n" {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}

// A password without TLS is a warning, and no mistake.
func TestCheckPlainPassword(t *testing.T) {
	t.Parallel()
	file := filepath.Join(folder(t, nil), "c.toml")
	write(t, file, "[[site]]\nhosts = 'a.example'\n[[site.route]]\npath = '/x'\nrespond = 200\n"+
		"[site.route.basic_auth]\nusers = { bob = '$2a$04$r8kyErBM4qAZ4rbRWNmVmeqMTFn0Ghz0LYDzVwlvQ6gzyBbMU6KGO' }\n")
	code, stdout, stderr := inProcess(t, "check", file)
	if code != exitOK || stdout != file+": ok, 1 site\n" || stderr != file+`: warning: basic_auth of the site for "a.example" is without TLS, `+
		"so passwords can be read on the way, unless a proxy in front speaks TLS\n" {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}

// docs is the folder with the documentation of the format.
var docs = filepath.Join("..", "..", "docs")

// The example must stay valid: people begin with a copy of it.
func TestExampleConfig(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(docs, "chert.toml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "chert.toml")
	// Its folders are made where the copy looks for them.
	roots := regexp.MustCompile(`(?m)^root = "(.*)"`)
	for _, m := range roots.FindAllSubmatch(text, -1) {
		root := filepath.Join(dir, filepath.FromSlash(string(m[1])))
		for _, name := range []string{"index.html", "404.html"} {
			write(t, filepath.Join(root, name), name)
		}
	}
	ca := newCA(t)
	ca.server(filepath.Join(dir, "tls"), "example.com", "example.com")
	write(t, filepath.Join(dir, "tls", "clients.pem"), string(ca.pair.Cert))
	write(t, filepath.Join(dir, "tls", "users"), "bob:$2a$04$r8kyErBM4qAZ4rbRWNmVmeqMTFn0Ghz0LYDzVwlvQ6gzyBbMU6KGO\n")
	write(t, file, string(text))
	if code, stdout, stderr := inProcess(t, "check", file); code != exitOK || !strings.HasPrefix(stdout, file+": ok, ") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	// And all that is commented out, which is the rest of what there is.
	all := regexp.MustCompile(`(?m)^# ?(\[*[a-z_.]+\]* *(=.*)?)$`).ReplaceAllString(string(text), "$1")
	// A file has listen and log once: what is commented out is their other form.
	write(t, file, strings.NewReplacer("listen = [\":8080\"]\n", "", "log = \"combined\"\n", "",
		"${CHERT_SECRET}", clusterSecret).Replace(all))
	if code, stdout, stderr := inProcess(t, "check", file); code != exitOK {
		t.Errorf("without the # before its lines: %d %s%s\n%s", code, stdout, stderr, all)
	}
	// The page has every key that the example has, and the other way round.
	page, err := os.ReadFile(filepath.Join(docs, "config.md"))
	if err != nil {
		t.Fatal(err)
	}
	inPage, inExample := make(map[string]bool), make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_]+`(?:, `[a-z_]+`)*) \\|").FindAllStringSubmatch(string(page), -1) {
		for key := range strings.SplitSeq(row[1], ", ") {
			inPage[strings.Trim(key, "`")] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z_]+) =`).FindAllStringSubmatch(all, -1) {
		inExample[m[1]] = true
	}
	for key := range inPage {
		if !inExample[key] {
			t.Errorf("the example does not show %s", key)
		}
	}
	for key := range inExample {
		if !inPage[key] {
			t.Errorf("docs/config.md does not describe %s", key)
		}
	}
}
