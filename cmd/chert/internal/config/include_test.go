package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files into a new folder, and makes the folders whose names end in a slash.
func tree(t testing.TB, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		folder := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			folder = path
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if folder == path {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInclude(t *testing.T) {
	t.Parallel()
	site := func(host string) string { return fmt.Sprintf("[[site]]\nhosts = '%s'\nroot = 'www'\n", host) }
	dir := tree(t, map[string]string{
		"a[b]/c.toml": "include = ['sites/*.toml', 'own', 'sites/b.toml', '*.toml', 'none/*', 'hidden/.#[x]', 'hidden/*']\n" +
			"[defaults]\nlisting = true\n",
		"a[b]/sites/b.toml": site("b"), "a[b]/sites/a.toml": site("a") + "[[redirect]]\nhosts = 'r'\nto = 'http://a'\n",
		"a[b]/sites/a.toml~": "broken", "a[b]/sites/.c.toml": "broken", "a[b]/sites/#d.toml": "broken",
		"a[b]/hidden/x~": "broken", "a[b]/hidden/.#x": "broken", "a[b]/hidden/empty": "# nothing yet\n",
		"a[b]/own":  "[[site]]\nhosts = 'own'\nroot = 'www'\nlisting = false\n",
		"a[b]/www/": "", "a[b]/sites/www/": "",
	})
	base := filepath.Join(dir, "a[b]")
	cfg, err := Load(filepath.Join(base, "c.toml"), ofRates(checks))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range cfg.Sites {
		root, _ := filepath.Rel(base, s.Root)
		got = append(got, fmt.Sprint(s.Hosts[0], " ", filepath.ToSlash(root), " ", s.Options.Listing))
	}
	for _, r := range cfg.Redirects {
		got = append(got, string(r.Hosts[0]))
	}
	for _, file := range cfg.Included {
		name, _ := filepath.Rel(base, file)
		got = append(got, filepath.ToSlash(name))
	}
	want := "a sites/www true, b sites/www true, own www false, r, sites/a.toml, sites/b.toml, own, hidden/empty"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("\ngot  %s\nwant %s", s, want)
	}
}

func TestIncludeProblems(t *testing.T) {
	t.Parallel()
	const two = "include = ['a.toml', 'b.toml']\n"
	for _, tt := range []struct {
		name, main, a, b string
		want             []string
	}{
		{"host twice", two + good, "[[site]]\nhosts = ['x', '*']\nroot = 'www'\n", "[[redirect]]\nhosts = 'X'\nto = 'http://a'\n",
			[]string{`a.toml:2:15: host "*" has a site already, in DIR/c.toml:3:10`, `b.toml:2:9: host "x" has a site already, in DIR/a.toml:2:10`}},
		{"syntax", two + good, "hosts = \n", "", []string{"a.toml:1:9: "}},
		{"UTF-16", two + good, "\xff\xfe", "", []string{"a.toml: this is UTF-16; save it as UTF-8"}},
		{"all at once, in the order of files", two + "log = 1\n" + good, "[[site]]\nhosts = 'a'\nroot = 'no'\nspam = 1\n", "[[redirect]]\nhosts = 'b'\n",
			[]string{"c.toml:2:7: log wants", `a.toml:3:8: root: no such folder: "no"`, `a.toml:4:1: unknown key "spam" in [[site]]`, "b.toml:1:3: [[redirect]] goes nowhere"}},
		{"keys of the server", two + good, "listen = ':80'\n", "include = 'x'\n[defaults]\n",
			[]string{`a.toml:1:1: unknown key "listen" in a file of include; it is a key of the file that includes this one`,
				`b.toml:1:1: unknown key "include" in a file of include; it is a key of the file that includes this one`,
				`b.toml:2:2: unknown key "defaults" in a file of include`}},
		{"a file of the defaults", two + "[defaults]\nspa = 'x.html'\n", "[[site]]\nhosts = 'a'\nroot = 'www'\n", "", []string{`c.toml:3:7: spa: there is no file "x.html"`}},
		{"TLS", two + good + "tls_self = true\n", "[[site]]\nhosts = 'a'\nroot = 'www'\n", "", []string{"a.toml:1:3: it has no certificate"}},
		{"variables", two + good, "[[site]]\nhosts = 'a'\nroot = '${CHERT_NONE_SUCH}'\n", "", []string{"a.toml:3:8: the environment has no variable"}},
		{"no site at all", two, "", "# nothing\n", []string{"c.toml: no site"}},
		{"missing", "include = ['a.toml',\n 'gone.toml', 'gone/x']\n" + good, "", "",
			[]string{`c.toml:2:2: include: "gone.toml": no such file`, `c.toml:2:15: include: "gone/x": no such file`}},
		{"a folder", "include = ['www', '[vw]ww']\n" + good, "", "",
			[]string{`c.toml:1:12: include: "www": this is not a regular file`, `c.toml:1:19: include: "[vw]ww": "www": this is not a regular file`}},
		{"pattern", "include = 'x/[a'\n" + good, "", "", []string{`c.toml:1:11: include: "x/[a": this is not a valid pattern`}},
		{"itself", "include = './c.toml'\n" + good, "", "", []string{`c.toml:1:11: include: "./c.toml": this is the file itself`}},
		{"nothing", "include = ''\n" + good, "", "", []string{`c.toml:1:11: include: "": want a file, or a pattern such as "sites/*.toml"`}},
		{"type", "include = 1\n" + good, "", "", []string{"c.toml:1:11: include wants a string or a list of strings, not a number"}},
		{"too long", two + good, strings.Repeat("#", maxFile+1), "", []string{`c.toml:1:12: include: "a.toml": longer than 1 MiB`}},
	} {
		dir := tree(t, map[string]string{"c.toml": tt.main, "a.toml": tt.a, "b.toml": tt.b, "www/": ""})
		_, err := Load(filepath.Join(dir, "c.toml"), ofRates(checks))
		ps, _ := errors.AsType[Problems](err)
		ok := len(ps) == len(tt.want)
		for i := range min(len(ps), len(tt.want)) {
			want := strings.ReplaceAll(tt.want[i], "DIR", dir)
			ok = ok && strings.HasPrefix(ps[i].Error(), filepath.Join(dir, want[:6])+want[6:])
		}
		if !ok {
			t.Errorf("%s:\ngot  %v\nwant %q", tt.name, err, tt.want)
		}
	}
}

// Neither many files nor long ones use memory without bound.
func TestIncludeBounds(t *testing.T) {
	t.Parallel()
	many, long := map[string]string{"c.toml": "include = ['x/*', 'y/*']\n" + good, "www/": ""}, map[string]string{"www/": ""}
	for i := range maxIncluded + 1 {
		many[fmt.Sprintf("x/%d", i)] = ""
	}
	long["c.toml"] = many["c.toml"]
	for i := range maxIncludedBytes/maxFile + 1 {
		long[fmt.Sprintf("x/%d", i)] = "#" + strings.Repeat(" ", maxFile-1)
	}
	for _, files := range []map[string]string{many, long} {
		dir := tree(t, files)
		_, err := Load(filepath.Join(dir, "c.toml"), ofRates(checks))
		ps, _ := errors.AsType[Problems](err)
		if len(ps) != 1 || ps[0].At != (Position{1, 12}) || !strings.Contains(err.Error(), "there are more than 1000 files, or they have more than 16MiB together") {
			t.Errorf("%v", err)
		}
	}
}
