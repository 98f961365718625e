package config

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/middleware/basicauth"
)

// problemsOf loads a file and returns its mistakes, without the file's name. DIR in them
// is its folder.
func problemsOf(t *testing.T, text string) (got []string) {
	t.Helper()
	dir, _, err := load(t, text)
	if ps, ok := errors.AsType[Problems](err); ok {
		for _, p := range ps {
			line := strings.TrimPrefix(p.Error(), filepath.Join(dir, "c.toml")+":")
			got = append(got, strings.ReplaceAll(line, dir, "DIR"))
		}
	}
	return got
}

func TestRouteProblems(t *testing.T) {
	t.Parallel()
	const (
		site  = "[[site]]\nhosts = '*'\n" // lines 1 and 2
		root  = "[[site]]\nhosts = '*'\nroot = 'www'\n"
		route = "[[site.route]]\n"
	)
	at := func(path, rest string) string { return route + "path = '" + path + "'\n" + rest + "\n" }
	for _, tt := range []struct{ name, text, want string }{
		{"nothing at all", site, "1:3: [[site]] has no root, the folder to serve, no proxy and no [[site.route]]"},
		{"no path", site + route + "respond = 200\n", `3:8: [[site.route]] has no path; want path = "/api/{rest...}"`},
		{"path's type", site + route + "path = 1\nrespond = 200\n", "4:8: path wants a string, not a number"},
		{"a method in it", site + at("GET /x", "respond = 200"), `4:8: path wants no method and no spaces; want methods = ["GET"]`},
		{"a host in it", site + at("a.example/x", "respond = 200"), "4:8: path begins with a slash: the hosts are those of the site"},
		{"another router's", site + at("/:id", "respond = 200"), `4:8: path: ":id" is literal here; write "/{id}"`},
		{"a regular expression", site + at("/{id:[0-9]+}", "respond = 200"), "4:8: path: wildcards have no expressions"},
		{"not at the end", site + at("/{a...}/b", "respond = 200"), "4:8: path: {a...} is not at the end"},
		{"unclean", site + at("/a//b", "respond = 200"), "4:8: path: an unclean path never matches"},
		{"no action", site + at("/a", ""), "3:8: [[site.route]] does nothing; want root, proxy, redirect or respond"},
		{"two actions", site + at("/a", "respond = 200\nredirect = '/b'"), "3:8: [[site.route]] has redirect and respond; want one of them"},
		{"three actions", site + at("/a/{x...}", "root = 'www'\nrespond = 200\nredirect = '/b'"), "3:8: [[site.route]] has root and redirect and respond"},
		{"no method", site + at("/a", "respond = 200\nmethods = []"), "6:1: methods is empty"},
		{"a small method", site + at("/a", "respond = 200\nmethods = ['get']"), "6:12: methods: "},
		{"any method", site + at("/a", "respond = 200\nmethods = ['*']"), "6:12: methods: "},
		{"a path as a method", site + at("/a", "respond = 200\nmethods = ['GET /x']"), `6:12: methods: "GET /x" is no method`},
		{"CONNECT", site + at("/a", "respond = 200\nmethods = ['CONNECT']"), "6:12: methods: CONNECT has no path"},
		{"twice", site + at("/a", "respond = 200\nmethods = ['GET', 'GET']"), "6:19: methods: GET is there twice"},
		{"equal", site + at("/a/{x}", "respond = 200") + at("/a/{y}", "respond = 200"), `7:8: the path "/a/{y}" cannot be beside the one in line 4: both match the same requests`},
		{"neither wins", site + at("/a/{x}", "respond = 200") + at("/{x}/b", "respond = 200"), `7:8: the path "/{x}/b" cannot be beside the one in line 4: both match "/a/b", and neither is more specific`},
		{"methods against paths", site + at("/a/b", "respond = 200") + at("/a/{x...}", "respond = 200\nmethods = 'GET'"), `7:8: the path "/a/{x...}" cannot be beside the one in line 4, which matches more methods, but fewer paths`},
		{"paths against methods", site + at("/a/{x...}", "respond = 200\nmethods = 'GET'") + at("/a/b", "respond = 200"), `8:8: the path "/a/b" cannot be beside the one in line 4, which matches fewer methods, but more paths`},
		{"one of the methods", site + at("/a", "respond = 200\nmethods = ['GET', 'PUT']") + at("/a", "respond = 200\nmethods = ['POST', 'PUT']"), `8:8: the path "/a" cannot be beside the one in line 4: both match`},
		{"nothing left for root", root + at("/{x...}", "respond = 200"), `5:8: the path "/{x...}" matches every request, so root or proxy of the site is never used`},
		{"root without a wildcard", site + at("/a", "root = 'www'"), "4:8: the path of a route with root ends in a wildcard like {name...} for the name"},
		{"root with a nameless one", site + at("/a/", "root = 'www'"), "4:8: the path of a route with root ends in a wildcard like {name...} for the name"},
		{"root with a single one", site + at("/a/{x}", "root = 'www'"), "4:8: the path of a route with root ends in a wildcard like {name...} for the name"},
		{"no such folder", site + at("/a/{x...}", "root = 'no'"), `5:8: root: no such folder: "no"`},
		{"empty root", site + at("/a/{x...}", "root = ''"), "5:8: root is empty"},
		{"spa that is not there", site + at("/a/{x...}", "root = 'img'\nspa = 'no.html'"), `6:7: spa: there is no file "no.html"`},
		{"files without root", site + at("/a", "respond = 200\nlisting = true"), "6:1: listing is for a route with root, and this one has respond"},
		{"rewrite without either", site + at("/a", "respond = 200\nrewrite = [{ from = '/a', to = '/b' }]"), "6:1: rewrite is for a route with root or proxy, and this one has respond"},
		{"compression without either", site + at("/a", "respond = 200\ncompression = false"), "6:1: compression is for a route with root or proxy, and this one has respond"},
		{"hidden without either", site + at("/a", "respond = 200\nhidden = '*.bak'"), "6:1: hidden is for a route with root or proxy, and this one has respond"},
		{"dotfiles without either", site + at("/a", "redirect = '/b'\ndotfiles = false"), "6:1: dotfiles is for a route with root or proxy, and this one has redirect"},
		{"hidden of proxy", site + at("/a", "proxy = '127.0.0.1:1'\nhidden = ['*.bak', '[a']"), `6:20: hidden: "[a" is not a valid pattern`},
		{"rules without root", site + at("/a", "redirect = '/b'\n[[site.route.rules]]\nheaders = { X = '1' }"), "6:14: rules is for a route with root, and this one has redirect"},
		{"status of a response", site + at("/a", "respond = 200\nstatus = 301"), "6:1: status is for redirect; respond has the status itself"},
		{"status of files", site + at("/a/{x...}", "root = 'www'\nstatus = 301"), "6:1: status is for a route with redirect, and this one has root"},
		{"body of a redirect", site + at("/a", "redirect = '/b'\nbody = 'x'"), "6:1: body is for a route with respond, and this one has redirect"},
		{"status", site + at("/a", "redirect = '/b'\nstatus = 200"), "6:10: status wants 301 or 308"},
		{"respond's status", site + at("/a", "respond = 100"), "5:11: respond wants a status from 200 to 599"},
		{"respond's type", site + at("/a", "respond = '200'"), "5:11: respond wants a number, not a string"},
		{"body of a 204", site + at("/a", "respond = 204\nbody = 'x'"), "6:8: a response with status 204 has no body"},
		{"file of a 304", site + at("/a", "respond = 304\nfile = 'www/x'"), `6:8: file: "www/x": no such file`},
		{"a folder as a file", site + at("/a", "respond = 200\nfile = 'www'"), `6:8: file: "www": this is not a regular file`},
		{"two bodies", site + at("/a", "respond = 200\nbody = 'x'\nfile = 'c.toml'"), "7:8: body and file are both given; want one of them"},
		{"type of nothing", site + at("/a", "respond = 200\ntype = 'text/html'"), "6:8: type is that of a body, and there is none"},
		{"type's form", site + at("/a", "respond = 200\nbody = 'x'\ntype = 'html'"), "7:8: type wants a media type"},
		{"type with a line", site + at("/a", "respond = 200\nbody = 'x'\ntype = \"text/html\\r\\nX: y\""), "7:8: type wants a media type"},
		{"a header", site + at("/a", "respond = 200\nheaders = { Content-Length = '1' }"), `6:13: the field "Content-Length" cannot be set`},
		{"a header's value", root + "headers = { X = \"a\\nb\" }\n", `4:13: the field "X" has a control character`},
		{"unknown", site + at("/a", "respond = 200\npaths = '/b'"), `6:1: unknown key "paths" in [[site.route]]; did you mean "path"?`},
		{"one bracket", root + "[site.route]\npath = '/a'\nrespond = 200\n", "4:7: route is written with two brackets: [[site.route]]"},
		{"allow", root + "allow = ['10.0.0.0/33']\n", `4:10: allow: "10.0.0.0/33": want an address`},
		{"allow nothing", root + "allow = []\n", "4:1: allow is empty"},
		{"a mapped address", root + "deny = ['::ffff:1.2.3.4']\n", `4:9: deny: "::ffff:1.2.3.4": write an IPv4 address without the ::ffff: before it`},
		{"a zone", root + "deny = 'fe80::1%eth0'\n", `4:8: deny: "fe80::1%eth0": want an address`},
		{"no users", root + "[site.basic_auth]\nrealm = 'x'\n", "4:7: [site.basic_auth] has no users"},
		{"true", root + "basic_auth = true\n", "4:14: basic_auth wants a table with users or htpasswd, or false"},
		{"realm", root + "[site.basic_auth]\nrealm = 'ä'\nusers = { a = '" + someHash + "' }\n", "5:9: realm wants printable ASCII"},
		{"a costly hash", root + "[site.basic_auth]\nusers = { ann = '$2a$31$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy' }\n", `5:17: users: the hash of "ann" has the cost 31`},
		{"a password", root + "[site.basic_auth]\nusers = { ann = 'secret' }\n", `5:17: users: the hash of "ann" is not bcrypt's, nor Argon2id's; chert hash-password`},
		{"a colon", root + "[site.basic_auth.users]\n'a:b' = '" + someHash + "'\n", `5:9: users: the name "a:b" could never be sent`},
		{"no htpasswd", root + "[site.basic_auth]\nhtpasswd = 'no'\n", `5:12: htpasswd: "DIR/no": no such file`},
		{"no hashes in it", root + "[site.basic_auth]\nhtpasswd = 'c.toml'\n", `5:12: htpasswd: "DIR/c.toml": line 1: want NAME:HASH`},
		{"in a route", site + at("/a", "respond = 200\n[site.route.basic_auth]\nusrs = 1"), `7:1: unknown key "usrs" in [site.route.basic_auth]; did you mean "users"?`},
	} {
		got := problemsOf(t, tt.text)
		if len(got) == 2 && strings.Contains(got[0]+got[1], "has no users") {
			got = slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, "has no users") }) // of the last
		}
		if len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

const someHash = "$2a$04$r8kyErBM4qAZ4rbRWNmVmeqMTFn0Ghz0LYDzVwlvQ6gzyBbMU6KGO"

func TestTargets(t *testing.T) {
	t.Parallel()
	w := &Wildcards{[]string{"a", "rest"}, true}
	for _, tt := range []struct {
		to  string
		w   *Wildcards
		err string // "" for none
	}{
		{"https://example.com{uri}", nil, ""},
		{"https://{host}/x?y=z", nil, ""},
		{"/new", nil, "want an absolute URL"},
		{"https://example.com/{a}", nil, "only {host} and {uri} can be filled in"},
		{"/new/{a}/{rest}", w, ""},
		{"/new{uri}", w, ""},
		{"/new/{rest}#{a}", w, ""},
		{"/?q={a}&r={rest}", w, ""},
		{"/{rest}", w, ""},
		{"/{a}", w, ""},
		{"https://example.com/{a}/{rest}", w, ""},
		{"https://{host}:8443/{rest}", w, ""},
		{"/{uri}", w, "two slashes"},
		{"//example.com/{a}", w, "two slashes"},
		{`/\example.com/{a}`, w, "two slashes"},
		{"/{rest}/x", w, "two slashes"},
		{"{rest}", w, "want a path"},
		{"{uri}", w, "want a path"},
		{"new/{a}", w, "want a path"},
		{"https://{a}/", w, "no other placeholder"},
		{"https://{a}.example.com/", w, "no other placeholder"},
		{"https://example.com{rest}", w, "no other placeholder"},
		{"https://example.com:{a}/", w, "this is no URL"},
		{"https://example.com{a}{uri}", w, "no other placeholder"},
		{"https://u:{a}@example.com/", w, "user name"},
		{"{a}://example.com/", w, "want a path"},
		{"javascript:{a}", w, "want a path"},
		{"/new/{b}", w, "only {host}, {uri}, {a} and {rest} can be filled in"},
		{"/new/{a", w, "can be filled in"},
		{"/new/a}", w, "can be filled in"},
		{"/new/{a}\r\nX: y", w, "this is no URL"},
		{"/new /{a}", w, "must be percent-encoded"},
		{"/ä/{a}", w, "must be percent-encoded"},
		{"https://$host/x", w, `"$host" is not replaced here`},
		{"/x/$1", w, `"$1" is not replaced here`},
		{"/x?$filter=a&$top=1&$hosts", w, ""},
		{"/x{uri}/y", w, "nothing can follow it"},
		{"/x?{uri}", w, "cannot come into a query"},
	} {
		_, err := ParseTarget(tt.to, tt.w)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", tt.to, err, tt.err)
		}
	}
	if _, _, err := load(t, "[[site]]\nhosts = '*'\n[[site.route]]\npath = '/{host}'\nredirect = '/x/{host}'\n"); err == nil ||
		!strings.Contains(err.Error(), ":5:12: redirect: {host} is the request's here") {
		t.Errorf("%v", err)
	}
}

// A route has the site's access, authentication and fields, unless it has its own.
func TestPoliciesAreInherited(t *testing.T) {
	t.Parallel()
	dir, cfg, err := load(t, `
[[site]]
hosts = "*"
root = "www"
allow = ["192.0.2.7", "unix"]
deny = "192.0.2.0/25"
headers = { x-site = "s", X-Both = "s" }
cache = "1MiB"
[site.basic_auth]
users = { ann = "`+someHash+`" }
[[site.route]]
path = "/a"
respond = 200
[[site.route]]
path = "/b/{p...}"
root = "img"
methods = ["GET", "PUT"]
allow = "all"
deny = []
basic_auth = false
headers = { X-Both = "r", x-gone = "" }
listing = true
[[site.route]]
path = "/c"
redirect = "/d"
status = 308
[site.route.basic_auth]
users = { bob = "`+someHash+`" }
`)
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.Sites[0]
	a, b, c := s.Routes[0], s.Routes[1], s.Routes[2]
	if !reflect.DeepEqual(a.Policy, s.Policy) || a.Auth != s.Auth || s.Access.AllowLocal != true || len(s.Access.Allow) != 1 || len(s.Access.Deny) != 1 {
		t.Errorf("%+v\n%+v", s.Policy, a.Policy)
	}
	want := map[string]string{"X-Site": "s", "X-Both": "r", "X-Gone": ""}
	if b.Auth != nil || !reflect.DeepEqual(b.Headers, want) || len(b.Access.Allow) != 2 || !b.Access.AllowLocal || b.Access.Deny != nil {
		t.Errorf("%+v", b.Policy)
	}
	if b.Root != filepath.Join(dir, "img") || !b.Options.Listing || s.Options.Listing || b.Options.CacheBytes != 1<<20 ||
		!slices.Equal(b.Patterns(), []string{"GET /b/{p...}", "PUT /b/{p...}"}) {
		t.Errorf("%+v", b)
	}
	if _, ok := c.Auth.Users["bob"]; !ok || len(c.Auth.Users) != 1 || c.Status != 308 || len(c.Target) != 1 || !reflect.DeepEqual(c.Access, s.Access) {
		t.Errorf("%+v", c)
	}
	if a.Respond.Wire().Status() != 200 || len(a.Respond.Wire().Body()) != 0 {
		t.Errorf("%+v", a.Respond)
	}
}

// Folders of routes share what those of sites do.
func TestRoutesShare(t *testing.T) {
	t.Parallel()
	text := "[[site]]\nhosts = '*'\n"
	for i := range 64 {
		text += fmt.Sprintf("[[site.route]]\npath = '/%d/{p...}'\nroot = 'www'\n", i)
	}
	_, cfg, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	if o := cfg.Sites[0].Routes[0].Options; o.CacheBytes != sharedCache/64 || o.OpenFiles != shareOf(64).files {
		t.Errorf("%+v", o)
	}
}

func TestHtpasswd(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users")
	for _, tt := range []struct{ text, want string }{
		{"# users\r\n\r\nann:" + someHash + "\r\nbob:" + someHash, ""},
		{"ann:" + someHash + "\nann:" + someHash + "\n", `line 2: the user "ann" is there already`},
		{"ann:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00\n", `line 1: the hash of "ann" is not bcrypt's`},
		{"\nann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n", `line 2: the hash of "ann" is not bcrypt's`},
		{"ann:$6$rounds=5000$abc$def\n", `line 1: the hash of "ann" is not bcrypt's`},
		{"ann:$argon2id$v=19$m=999999,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA\n", `line 1: the hash of "ann" is not a hash of Argon2id, version 19, with at most m=131072`},
		{"ann:secret\n", `line 1: the hash of "ann" is not bcrypt's`},
		{"ann\n", "line 1: want NAME:HASH"},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := &basicauth.Options{Users: make(map[string]string)}
		err := readUsers(o, file)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && len(o.Users) != 2 {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is in %v", err)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Setenv("CHERT_A", "www")
	t.Setenv("CHERT_EMPTY", "")
	t.Setenv("CHERT_NESTED", "${CHERT_A} $$ {")
	for _, tt := range []struct{ in, want, err string }{
		{"${CHERT_A}", "www", ""},
		{"a${CHERT_A}b${CHERT_A}", "awwwbwww", ""},
		{"${CHERT_NO:-d}/x", "d/x", ""},
		{"${CHERT_EMPTY}", "", ""},
		{"${CHERT_EMPTY:-d}", "d", ""},
		{"${CHERT_NO:-}", "", ""},
		{"${CHERT_NESTED}", "${CHERT_A} $$ {", ""},
		{"$2a$10$abc $$ $ {uri} $CHERT_A", "$2a$10$abc $$ $ {uri} $CHERT_A", ""},
		{"$${CHERT_A}", "${CHERT_A}", ""},
		{"$$${CHERT_A}", "$${CHERT_A}", ""},
		{"${CHERT_NO}", "", "no variable CHERT_NO; ${CHERT_NO:-default}"},
		{"${CHERT_A", "", `"${" without "}"`},
		{"${}", "", "is no name"},
		{"${1A}", "", "is no name"},
		{"${a b}", "", "is no name"},
	} {
		got, err := expandString(tt.in)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q, %v", tt.in, got, err)
		}
	}
	dir, cfg, err := load(t, "[[site]]\nhosts = ['${CHERT_NO:-a.example}']\nroot = '${CHERT_A}'\nheaders = { X = '$${CHERT_A}' }\n")
	if err != nil || cfg.Sites[0].Root != filepath.Join(dir, "www") || cfg.Sites[0].Hosts[0] != "a.example" || cfg.Sites[0].Headers["X"] != "${CHERT_A}" {
		t.Errorf("%+v %v", cfg, err)
	}
	want := []string{"2:15: the environment has no variable CHERT_NO; ${CHERT_NO:-default} gives it a default", "4:17: the environment has no variable CHERT_NO; ${CHERT_NO:-default} gives it a default"}
	if got := problemsOf(t, "[[site]]\nhosts = ['a', '${CHERT_NO}']\nroot = 'gone'\nheaders = { X = '${CHERT_NO}' }\n"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A thousand routes are checked against each other in no time.
func TestManyRoutes(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("[[site]]\nhosts = '*'\nroot = 'www'\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "[[site.route]]\npath = '/old/%d'\nredirect = '/new/%d'\n", i, i)
	}
	_, cfg, err := load(t, b.String())
	if err != nil || len(cfg.Sites[0].Routes) != 1000 || cfg.Sites[0].Routes[0].Status != http.StatusMovedPermanently {
		t.Errorf("%v", err)
	}
}
