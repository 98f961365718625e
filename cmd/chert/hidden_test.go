package main

import (
	"strings"
	"testing"
)

// What is hidden is not forwarded, by whatever name an upstream could know it.
func TestHiddenForwarded(t *testing.T) {
	t.Parallel()
	app := addrOfServer(echo(t, "app"))
	p, file := startConfig(t, `
[defaults]
hidden = ["d"]
dotfiles = false
[errors]
404 = "404.html"
[[site]]
hosts = ["x"]
proxy = "`+app+`"
hidden = [".*", "*.bak", "/private/", "/a/b", "conf"]
[[site]]
hosts = ["routes.example"]
proxy = "`+app+`"
hidden = ["*.php"]
deny = ["192.0.2.1"]
[[site.route]]
path = "/dots/{path...}"
proxy = "`+app+`"
dotfiles = false
[[site.route]]
path = "/cut/{path...}"
proxy = "`+app+`"
strip = true
hidden = ["/cut/**", "/new/x"]
dotfiles = false
[[site.route.rewrite]]
from = "^/old/(.*)$"
to = "/new/{1}"
[[site.route]]
path = "/all/{path...}"
proxy = "`+app+`"
[[site.route]]
path = "/split/{path...}"
proxy = "`+app+`"
split = [{ upstream = "127.0.0.1:1", header = { X = "1" } }]
compression = true
hidden = ["*.bak"]
`, map[string]string{"404.html": "own 404"})
	for host, targets := range map[string]string{
		"x": `404 /.env /.ENV /a/.git/config /x.bak /x.BAK /x.bak.gz /x.bak/ /x.bak/y /private /private/ /private/x /PRIVATE/x /a/b /conf /x/conf/y
			404 //.env /./.env /x/../.env /%2eenv /%2Eenv /.%65nv /x%2f.env /x%2F..%2f.env /x%5c.env /x\.env /%2f%2e%65nv /x/%2e%2e/private/x
			404 //private/x /./private/x /x/../private/x /private/../y /private/..%2fy /private/%2e%2e/y /private;v=1/x /private%3bv/x
			404 /x/..;/private/y /x/..;v=1/private/y /x.bak;v=1 /x.bak;v=1/y /x.bak%3b.png /x.bak;a%2f.. /.;/.env /x;/.env /a;x/b;y /a//../b/../../a/b
			404 /a/b//../c /a/z//../../b /a/z//../b /a/./b /a//b /x/../a/b /x.bak?y /.well-known/x
			200 / /x /bak /x.baker /xprivate /x/private /a/bc /x/a/b /x/../y /x/./y //y /x;v=1 /x%2fy /x%20y /a;b/c.. /x/%2e%2e/y /x%252ebak /d /d/x?.env`,
		"routes.example": `404 /x.php /X.PHP/y /x%2ephp /dots/.env /dots/x/.git/y /dots/%2eenv /dots/x%2f.env /dots/.well-known/x /cut/.well-known/.env /cut/.env
			404 /cut/cut /cut/cut/x /cut/old/x /cut/old/x/y /cut/new/x /cut/old/a%2f..%2fx /cut/new%2fx /cut/new;v/x /cut/o%6cd/x
			404 /split/x.bak /split/x%2ebak
			200 /x /.env /dots/x.php /cut/.well-known/x /cut/x.php /cut/old/y /cut/x/cut /all/.env /all/x.php /all/d /split/x /d`,
	} {
		status := 0
		for _, target := range strings.Fields(targets) {
			if target[0] != '/' {
				status = map[string]int{"404": 404, "200": 200}[target]
				continue
			}
			got, body := rawTo(t, p.urls[0], host, target)
			if got != status || got == 404 && body != "own 404" || got == 200 && !strings.HasPrefix(body, "app GET /") {
				t.Errorf("%s%s: %d %s, want %d", host, target, got, body, status)
			}
		}
	}
	for target, want := range map[string]string{
		"http://x/a/.env":                   "hidden /a/.env, which is not forwarded|response 404 Not Found",
		"http://x/x/%2e%2e/private/y":       "hidden /private/y, which is not forwarded|response 404",
		"http://x/ok":                       "): GET /ok, Host x; not asked|response that of the upstream",
		"http://routes.example/cut/old/x":   "|allow, deny passed|hidden /new/x, which is not forwarded|response 404",
		"http://routes.example/all/x.php":   "|proxy ",
		"http://routes.example/dots/a/.env": "|allow, deny passed|hidden /dots/a/.env, which is not forwarded|response 404",
	} {
		code, stdout, stderr := inProcess(t, "check", file, "--explain", target)
		if got := strings.Join(strings.Fields(strings.ReplaceAll(stdout, "\n", "| ")), " "); code != exitOK ||
			!strings.Contains(strings.ReplaceAll(got, "| ", "|"), want) {
			t.Errorf("%s: %d %s\ngot  %s\nwant %s", target, code, stderr, got, want)
		}
	}
}
