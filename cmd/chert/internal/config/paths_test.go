package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// What is wrong with try, clean_urls and rewrite is reported where it is, on a site, on a
// route and in the defaults.
func TestPathProblems(t *testing.T) {
	t.Parallel()
	const (
		site    = "[[site]]\nhosts = '*'\nroot = 'www'\n" // lines 1 to 3
		route   = site + "[[site.route]]\npath = '/a/{p...}'\nroot = 'www'\n"
		rewrite = "[[site.rewrite]]\n"
	)
	for _, tt := range []struct{ name, text, want string }{
		{"try's type", site + "try = 1\n", "4:7: try wants a string or a list of strings, not a number"},
		{"an item's type", site + "try = ['{path}', 1]\n", "4:18: try wants a list of strings, not a number"},
		{"another's placeholder", site + "try = ['$uri', '=404']\n", `4:8: try: "$uri": the path of the request is {path} here`},
		{"twice", site + "try = ['{path}{path}']\n", `4:8: try: "{path}{path}": only {path} can be filled in, once`},
		{"another name", site + "try = ['{path}',\n  '{file}']\n", `5:3: try: "{file}": only {path} can be filled in, once`},
		{"outside", site + "try = ['{path}', '/../{path}']\n", `4:18: try: "/../{path}" is not a path within the folder`},
		{"empty", site + "try = ['']\n", `4:8: try: "" is not a path within the folder`},
		{"no error", site + "try = ['{path}', '=200']\n", `4:18: try: "=200" is no status of an error, such as "=404"`},
		{"no status", site + "try = ['{path}', '=4o4']\n", `4:18: try: "=4o4" is no status of an error`},
		{"not the last", site + "try = ['=404', '{path}']\n", "4:8: try: nothing can follow a status"},
		{"a file that is not there", site + "try = ['{path}', '/none.html']\n", `4:18: try: there is no file "none.html" in`},
		{"in a route", route + "try = ['{path}', '/none.html']\n", `7:18: try: there is no file "none.html" in`},
		{"in a route of another action", site + "[[site.route]]\npath = '/a'\nrespond = 200\ntry = ['{path}']\n",
			"7:1: try is for a route with root, and this one has respond"},
		{"in the defaults", site + "[defaults]\ntry = ['{x}']\n", `5:8: try: "{x}": only {path} can be filled in, once`},
		{"clean_urls' type", site + "clean_urls = 'on'\n", "4:14: clean_urls wants true or false, not a string"},
		{"both", site + "try = ['{path}']\nclean_urls = true\n", "5:14: clean_urls is short for try = "},
		{"both in a route", route + "clean_urls = true\ntry = ['{path}']\n", "7:14: clean_urls is short for try = "},
		{"clean_urls of another action", site + "[[site.route]]\npath = '/a'\nredirect = '/b'\nclean_urls = true\n",
			"7:1: clean_urls is for a route with root, and this one has redirect"},
		{"rewrite's type", site + "rewrite = 'x'\n", "4:1: rewrite is written with two brackets: [[site.rewrite]]"},
		{"nothing in it", site + rewrite, `4:8: [[site.rewrite]] wants from, as in `},
		{"no to", site + rewrite + "from = '/a'\n", `4:8: [[site.rewrite]] wants from, as in `},
		{"from's type", site + rewrite + "from = 1\nto = '/a'\n", "5:8: from wants a string, not a number"},
		{"to's type", site + rewrite + "from = '/a'\nto = true\n", "6:6: to wants a string, not true or false"},
		{"an empty expression", site + rewrite + "from = ''\nto = '/a'\n", "5:8: from is empty"},
		{"an expression", site + rewrite + "from = '/a('\nto = '/a'\n", "5:8: from: error parsing regexp: missing closing )"},
		{"a look-ahead", site + rewrite + "from = '/a(?=b)'\nto = '/a'\n", "5:8: from: error parsing regexp: "},
		{"no path", site + rewrite + "from = '/a'\nto = 'b'\n", `6:6: to: "b" does not begin with a slash`},
		{"a group that is not there", site + rewrite + "from = '/a(.)'\nto = '/{2}'\n", "6:6: to: {2} is neither a group of From nor {path}"},
		{"another's group", site + rewrite + "to = '/$1{x'\nfrom = '/a(.)'\n", "5:6: to: a brace without the other one"},
		{"nginx's group", site + rewrite + "from = '/a(.)'\nto = '/$1'\n", `6:6: to: "$1" is not replaced here: want {1}`},
		{"nginx's group after a $", site + rewrite + "from = '/a(.)'\nto = '/$$$1'\n", `6:6: to: "$1" is not replaced here: want {1}`},
		{"the query in the path", site + rewrite + "from = '/a'\nto = '/{query}'\n", "6:6: to: {query} is neither"},
		{"a query", site + rewrite + "from = '/a'\nto = '/b?c d'\n", `6:6: to: the query "c d" is not percent-encoded`},
		{"a fragment", site + rewrite + "from = '/a'\nto = '/b#c'\n", `6:6: to: "/b#c" has a control character or a #`},
		{"an unknown key", site + rewrite + "from = '/a'\nto = '/b'\nlast = true\n", `7:1: unknown key "last" in [[site.rewrite]]`},
		{"the second one", site + rewrite + "from = '/a'\nto = '/b'\n" + rewrite + "from = '/['\nto = '/b'\n", "8:8: from: error parsing regexp: "},
		{"of a route", route + "[[site.route.rewrite]]\nfrom = '/['\nto = '/b'\n", "8:8: from: error parsing regexp: "},
		{"in one line", site + "rewrite = [{ from = '/a', to = 'b' }]\n", `4:32: to: "b" does not begin with a slash`},
	} {
		got := problemsOf(t, tt.text)
		if len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// "$$" is "$" in to of a rewrite, also before what nginx would replace.
func TestRewriteDollar(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"/under-$$5/{1}?a=$$uri": "/under-$5/{1}?a=$uri",
		"/$$$$1":                 "/$$1",
		"/$metadata":             "/$metadata",
	} {
		_, cfg, err := load(t, "[[site]]\nhosts = '*'\nroot = 'www'\n[[site.rewrite]]\nfrom = '/a(.)'\nto = '"+to+"'\n")
		if err != nil {
			t.Error(err)
		} else if got := cfg.Sites[0].Rewrite[0].To; got != want {
			t.Errorf("%s is %s, want %s", to, got, want)
		}
	}
}

// A file is the same by a relative name, as which serve loads it first, as by the absolute one, as which it loads it
// again. Mistakes name files as they were given.
func TestRelativeName(t *testing.T) {
	t.Parallel()
	dir, want, err := load(t, `
include = "more/*.toml"
tls_storage = "state"
listen = "unix:sock"
[upstream.app]
servers = ["unix:a.sock", "unix:b.sock"]
balance = "hash uri"
[[site]]
hosts = ["a.example"]
tls_auto = true
proxy = "app"
[[site.route]]
path = "/img/{path...}"
root = "img"
`)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "c.toml")
	if now, err := os.Getwd(); err != nil {
		t.Fatal(err)
	} else if file, err = filepath.Rel(now, file); err != nil {
		t.Skip(err) // on another volume
	}
	got, err := Load(file, ofRates(checks))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\ngot  %+v\nwant %+v", got, want)
	}
	if addr := got.Upstreams[0].Options.Servers[0].Addr; addr != "unix:"+filepath.Join(dir, "a.sock") {
		t.Errorf("server %s", addr)
	}
	more := filepath.Join(dir, "more", "x.toml")
	if err := os.Mkdir(filepath.Dir(more), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(more, []byte("[[site]]\nhosts = 'a.example'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Load(file, ofRates(checks))
	for _, text := range []string{
		filepath.Join(filepath.Dir(file), "more", "x.toml") + ":2:9: ", "in line 9 of " + strconv.Quote(file),
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v; want %s", err, text)
		}
	}
}
