package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInclude(t *testing.T) {
	t.Parallel()
	const main = "[defaults]\nlisting = true\n[[site]]\nhosts = 'main.example'\nroot = 'www'\n"
	for _, tt := range []struct {
		name, include string
		files         map[string]string
		hosts         string // of the sites and redirects, in order
		want          string // the problems; DIR stands for the folder
	}{
		{"a pattern", "'sites/*.toml'", map[string]string{
			"sites/b.toml": "[[site]]\nhosts = 'b.example'\nroot = 'b'\n", "sites/b/f": "",
			"sites/a.toml":       "\xef\xbb\xbf[[site]]\nhosts = 'a.example'\nroot = '../www'\n[[redirect]]\nhosts = 'r.example'\nto = 'https://a.example'\n",
			"sites/c.toml~":      "x",
			"sites/.#d.toml":     "x",
			"sites/e.conf":       "x",
			"sites/sub/f.toml":   "x",
			"sites/.hidden.toml": "x",
		}, "main.example a.example b.example r.example", ""},
		{"names, each once, and not the file itself", "['x.toml', '*.toml', './x.toml', 'none/*.toml']", map[string]string{
			"x.toml": "[[site]]\nhosts = 'x.example'\nroot = 'www'\n",
		}, "main.example x.example", ""},
		{"an empty file", "['.x.toml']", map[string]string{".x.toml": ""}, "main.example", ""},
		{"variables", "['${NO_SUCH_VARIABLE:-x}.toml']", map[string]string{
			"x.toml": "[[site]]\nhosts = '${NO_SUCH_VARIABLE:-x.example}'\nroot = 'www'\n",
		}, "main.example x.example", ""},
		{"missing", "['x.toml', '', '[', 'www']", nil, "", `DIR/main.toml:1:12: include: "x.toml": no such file
DIR/main.toml:1:22: include: "": want the name of a file, or a pattern
DIR/main.toml:1:26: include: "[": this is not a valid pattern
DIR/main.toml:1:31: include: "DIR/www": this is not a regular file
`},
		{"not TOML", "'x.toml'", map[string]string{"x.toml": "a = 1\n[[site]\n"}, "", "DIR/x.toml:2:7: expected ']]' to close array table name\n"},
		{"UTF-16", "'x.toml'", map[string]string{"x.toml": "\xff\xfea"}, "", "DIR/x.toml: this is UTF-16; save it as UTF-8\n"},
		{"other keys", "'x.toml'", map[string]string{"x.toml": "listen = ':80'\ninclude = 'y'\nnone = 1\n[defaults]\nlisting = false\n"}, "",
			`DIR/x.toml:1:1: unknown key "listen" in an included file; it belongs in the file that includes this one
DIR/x.toml:2:1: unknown key "include" in an included file; it belongs in the file that includes this one
DIR/x.toml:3:1: unknown key "none" in an included file
DIR/x.toml:4:2: unknown key "defaults" in an included file; it belongs in the file that includes this one
`},
		{"mistakes of each", "['a.toml', 'b.toml']", map[string]string{
			"a.toml": "[[site]]\nhosts = 'main.example'\nroot = 'none'\n[[site]]\nhosts = 'b.example'\nroot = 'www'\n",
			"b.toml": "[[site]]\nhosts = 'b.example'\nroot = 'www'\n[[site.route]]\npath = '/x/{a...}'\nroot = 'gone'\n" +
				"[[site.route]]\npath = '/x/{b...}'\nrespond = 200\n[[redirect]]\nhosts = 'main.example'\nto = 'x'\n",
		}, "", `DIR/a.toml:2:9: host "main.example" has a site already, in line 5 of "DIR/main.toml"
DIR/a.toml:3:8: root: no such folder: "none"
DIR/b.toml:2:9: host "b.example" has a site already, in line 5 of "DIR/a.toml"
DIR/b.toml:6:8: root: no such folder: "gone"
DIR/b.toml:8:8: the path "/x/{b...}" cannot be beside the one in line 5: both match the same requests
DIR/b.toml:11:9: host "main.example" has a site already, in line 5 of "DIR/main.toml"
DIR/b.toml:12:6: to: want an absolute URL, as in "https://example.com{uri}"
`},
		{"a variable that is not set", "'x.toml'", map[string]string{"x.toml": "[[site]]\nhosts = 'x'\nroot = '${NO_SUCH_VARIABLE}'\n"}, "",
			"DIR/x.toml:3:8: the environment has no variable NO_SUCH_VARIABLE; ${NO_SUCH_VARIABLE:-default} gives it a default\n"},
		{"served", "'x.toml'", map[string]string{"x.toml": "[[site]]\nhosts = 'x'\nroot = '.'\n"}, "",
			`DIR/main.toml: the configuration "DIR/main.toml" is in the folder "DIR", which is served, so clients could read it; move it elsewhere
DIR/x.toml: the configuration "DIR/x.toml" is in the folder "DIR", which is served, so clients could read it; move it elsewhere
`},
		{"hidden", "'www/.x.toml'", map[string]string{"www/.x.toml": "[[site]]\nhosts = 'x.example'\nroot = '.'\n"},
			"main.example x.example", ""},
		{"hidden by a pattern", "'conf/x.toml'", map[string]string{"conf/x.toml": "[[site]]\nhosts = 'x.example'\nroot = '.'\nhidden = '*.toml'\n" +
			"[[site.route]]\npath = '/f/{path...}'\nroot = '.'\n"}, "main.example x.example", ""},
		{"hidden but in a route", "'conf/x.toml'", map[string]string{"conf/x.toml": "[[site]]\nhosts = 'x.example'\nroot = '.'\nhidden = '*.toml'\n" +
			"[[site.route]]\npath = '/f/{path...}'\nroot = '.'\nhidden = []\n"}, "",
			`DIR/conf/x.toml: the configuration "DIR/conf/x.toml" is in the folder "DIR/conf", which is served, so clients could read it; move it elsewhere
`},
		{"not hidden", "'www/.x.toml'", map[string]string{"www/.x.toml": "[[site]]\nhosts = 'x.example'\nroot = '.'\ndotfiles = true\n"}, "",
			`DIR/www/.x.toml: the configuration "DIR/www/.x.toml" is in the folder "DIR/www", which is served, so clients could read it; move it elsewhere
`},
		{"no string", "1", nil, "", "DIR/main.toml:1:11: include wants a string or a list of strings, not a number\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write := func(name, text string) {
				file := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("www/f", "")
			write("main.toml", "include = "+tt.include+"\n"+main)
			for name, text := range tt.files {
				write(name, text)
			}
			cfg, err := Load(filepath.Join(dir, "main.toml"), checks)
			if err != nil {
				got := strings.NewReplacer(dir+string(filepath.Separator), "DIR/", dir, "DIR").Replace(err.Error()) + "\n"
				if got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
				return
			}
			var hosts []string
			for _, s := range cfg.Sites {
				hosts = append(hosts, string(s.Hosts[0]))
				if !s.Options.Listing {
					t.Errorf("[defaults] do not apply to %s", s.Hosts)
				}
			}
			for _, r := range cfg.Redirects {
				hosts = append(hosts, string(r.Hosts[0]))
			}
			if got := strings.Join(hosts, " "); got != tt.hosts || tt.want != "" {
				t.Errorf("%s; want %s%s", got, tt.hosts, tt.want)
			}
		})
	}
}
