package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/middleware"
)

func TestResponseProblems(t *testing.T) {
	t.Parallel()
	const site = "[[site]]\nhosts = '*'\nroot = 'www'\n" // three lines
	dir := t.TempDir()
	for name, text := range map[string]string{"x.unknown-type": "x", "big.html": strings.Repeat("x", 1<<20+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, text, want string }{
		{"no status", site + "[site.errors]\n200 = 'x.html'\n", `5:1: [site.errors]: "200" is neither a status from 400 to 599, "4xx", "5xx" nor "default"`},
		{"no class", site + "[site.errors]\n\"3xx\" = 'x.html'\n", `5:1: [site.errors]: "3xx" is neither`},
		{"leading zero", site + "[site.errors]\n0404 = 'x.html'\n", `5:1: [site.errors]: "0404" is neither`},
		{"sign", site + "[site.errors]\n\"+404\" = 'x.html'\n", `5:1: [site.errors]: "+404" is neither`},
		{"no file", site + "[site.errors]\n404 = 'no.html'\n", `5:7: 404: "no.html": no such file`},
		{"folder", site + "[site.errors]\ndefault = 'www'\n", `5:11: default: "www": this is not a regular file`},
		{"not a string", site + "[site.errors]\n404 = 1\n", "5:7: 404 wants a string, not a number"},
		{"no table", site + "errors = 'x'\n", "4:10: errors wants a table, not a string"},
		{"no type", site + "[site.errors]\n\"5xx\" = '" + dir + "/x.unknown-type'\n", "want a name that shows the type"},
		{"too long", site + "[site.errors]\n\"5xx\" = '" + dir + "/big.html'\n", "longer than 1 MiB"},
		{"twice", site + "not_found = '404.html'\n[site.errors]\n404 = 'www/404.html'\n", "6:7: not_found is a page for 404 too; want one of them"},
		{"of the file", "[errors]\n700 = 'x'\n" + site, `2:1: [errors]: "700" is neither`},
		{"hidden pattern", site + "hidden = ['*.bak', '[a']\n", `4:20: hidden: "[a" is not a valid pattern`},
		{"hidden spa", site + "spa = '404.html'\nhidden = '*.html'\n", `4:7: spa: "404.html" is hidden by hidden`},
		{"follow's folder", site + "follow = ['www', 'gone']\n", `4:18: follow: no such folder: "gone"`},
		{"follow's root", site + "follow = '/'\n", `4:10: follow: "/" is every file of the system; want the folders that links lead to`},
		{"type's suffix", site + "types = { foo = 'a/b' }\n", `4:11: types: "foo" is not the end of a name such as ".foo"`},
		{"type", site + "types = { \".foo\" = 'foo' }\n", `4:20: types: "foo" is no media type`},
		{"coding", site + "headers = { Content-Encoding = 'gzip' }\n", `4:13: the field "Content-Encoding" cannot be set`},
		{"removed coding", site + "headers = { content-encoding = '' }\n", `the field "content-encoding" cannot be set`},
		{"twice", site + "headers = { X-A = '1', x-a = '2' }\n", `4:24: the field "x-a" is there twice`},
		{"length", site + "headers = { Content-Length = '1' }\n", `4:13: the field "Content-Length" cannot be set`},
		{"connection", "[[redirect]]\nhosts = '*'\nto = 'https://a.example'\nheaders = { Connection = 'close' }\n", `4:13: the field "Connection" cannot be set`},
		{"does nothing", site + "[[site.response_headers]]\nstatus = 404\n", "4:8: [[site.response_headers]] does nothing; want set, add or remove"},
		{"status", site + "[[site.response_headers]]\nstatus = ['2xx', 100]\nremove = 'X'\n", `5:18: status wants numbers from 200 to 599, and classes from "2xx" to "5xx"`},
		{"no status at all", site + "[[site.response_headers]]\nstatus = []\nremove = 'X'\n", "5:1: status is empty"},
		{"class", site + "[[site.response_headers]]\nstatus = '1xx'\nremove = 'X'\n", "5:10: status wants"},
		{"set", site + "[[site.response_headers]]\nset = { Upgrade = 'x' }\n", `5:9: the field "Upgrade" cannot be set`},
		{"add", site + "[[site.response_headers]]\nadd = { X = ['a', ''] }\n", `5:19: add: the field "X" has no value`},
		{"remove", site + "[[site.response_headers]]\nremove = ['X', 'Content-Type']\n", `5:16: remove: the field "Content-Type" cannot be removed`},
		{"unknown", site + "[[site.response_headers]]\nremove = 'X'\nwhen = 404\n", `6:1: unknown key "when" in [[site.response_headers]]`},
	} {
		got := problemsOf(t, tt.text)
		if len(got) == 0 || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tt.want) }) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	_, cfg, err := load(t, `
[errors]
"5xx" = "www/404.html"
[defaults]
not_found = "404.html"
hidden = "*.bak"
types = { ".a" = "a/a" }
[[site]]
hosts = "a.example"
root = "www"
hidden = []
types = { ".b" = "b/b" }
headers = { X-A = "1" }
[[site.response_headers]]
status = ["2xx", 304]
set = { X-B = "2" }
add = { link = ["<a>", "<b>"] }
remove = "X-C"
[site.errors]
404 = "www/404.html"
default = ""
[[site.route]]
path = "/r/{p...}"
root = "www"
not_found = "404.html"
[site.route.errors]
410 = "www/404.html"
[[site.route.response_headers]]
remove = ["X-D"]
[[redirect]]
hosts = "b.example"
to = "https://a.example"
headers = { X-R = "1" }
`)
	if err != nil {
		t.Fatal(err)
	}
	s := &cfg.Sites[0]
	keys := func(pages map[int]*middleware.ErrorPage) (all []int) {
		for status, p := range pages {
			if (p == nil) != (status == 0) {
				t.Errorf("%d: %v", status, p)
			}
			all = append(all, status)
		}
		slices.Sort(all)
		return all
	}
	for _, tt := range []struct{ got, want any }{
		{keys(cfg.Errors), []int{5}}, {keys(s.Policy.Errors), []int{0, 404}}, {keys(s.Routes[0].Policy.Errors), []int{0, 404, 410}},
		{s.Options.NotFound, ""}, {s.Routes[0].Options.NotFound, "404.html"},
		{s.Options.Types, map[string]string{".a": "a/a", ".b": "b/b"}}, {s.Options.Hidden, []string{}},
		{s.Policy.HeaderRules, []middleware.HeaderRule{{Status: []int{2, 304}, Set: map[string]string{"X-B": "2"}, Add: map[string][]string{"Link": {"<a>", "<b>"}}, Remove: []string{"X-C"}}}},
		{len(s.Routes[0].Policy.HeaderRules), 2}, {cfg.Redirects[0].Policy.Headers, map[string]string{"X-R": "1"}},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
}
