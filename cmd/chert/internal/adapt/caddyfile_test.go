package adapt

import (
	"strings"
	"testing"
)

// caddyCase is a Caddyfile, what becomes of it, and what one of the notes has; "" for no note.
type caddyCase struct{ in, out, note string }

func (tt caddyCase) run(t *testing.T) {
	t.Helper()
	out, notes, err := Caddy(tt.in)
	said := ""
	for _, n := range notes {
		said += itoa(n.Line) + ": " + n.Text + "\n"
	}
	if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || out != tt.out {
		t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.in, out, said, err, tt.out, tt.note)
	}
}

const (
	caddyTLS  = "listen = [\":443\"]\nhttp_redirect = \":80\"\n"
	caddySite = "\n[[site]]\nhosts = [\"a.example\"]\ntls_auto = true\n"
)

// A file of one site may have no braces, addresses and arguments may be on several lines, and snippets are put where
// they are imported.
func TestCaddyfile(t *testing.T) {
	t.Parallel()
	const auth = "[site.basic_auth]\nusers = { \"a\" = \"b\" }\n"
	for _, tt := range []caddyCase{
		{"a.example\n\nroot * /w\nfile_server\n", caddyTLS + caddySite + "root = \"/w\"\n", ""},
		{"{\n\temail a@b.example\n}\na.example\nreverse_proxy b:1 {\n\theader_up Host {host}\n}\n", caddyTLS + "tls_email = \"a@b.example\"\n" + caddySite +
			"proxy = \"b:1\"\n", ""},
		{"(s) {\n\troot * /w\n}\na.example\nimport s\n", caddyTLS + caddySite + "root = \"/w\"\n", ""},
		{"a.example,\nb.example {\n\treverse_proxy b:1 \\\n\t\tc:1\n\troot \\\r\n /w\n}\n", caddyTLS + "\n[upstream.b_1]\nservers = [\"b:1\", \"c:1\"]\n" +
			"\n[[site]]\nhosts = [\"a.example\", \"b.example\"]\ntls_auto = true\nproxy = \"b_1\"\n", ""},

		{"(auth) {\n\tbasic_auth {\n\t\ta b\n\t}\n}\na.example {\n\timport auth\n\troot * /w\n}\n", caddyTLS + caddySite + "root = \"/w\"\n" + auth, ""},
		{"(auth) {\n\tforward_auth b:1\n}\na.example {\n\timport auth\n\troot * /w\n}\n", caddyTLS + caddySite + "deny = [\"all\"]\nroot = \"/w\"\n",
			"2: forward_auth says who may have it"},
		{"(p) {\n\treverse_proxy {args[0]}:{args.1}\n}\na.example {\n\timport p b 1\n}\n", caddyTLS + caddySite + "proxy = \"b:1\"\n", ""},
		{"(p) {\n\timport q {args[0]}\n}\n(q) {\n\troot * {args[0]}\n}\na.example {\n\timport p /w\n}\n", caddyTLS + caddySite + "root = \"/w\"\n", ""},
		{"(p) {\n\timport p\n\timport p\n}\na.example {\n\timport p\n\troot * /w\n}\n", caddyTLS + caddySite + "deny = [\"all\"]\nroot = \"/w\"\n", "import is left out"},
		{"(p) {\n\timport p {args[0]}{args[0]}{args[0]}{args[0]}\n}\na.example {\n\timport p xxxxxxxx\n\troot * /w\n}\n", caddyTLS + caddySite + "deny = [\"all\"]\nroot = \"/w\"\n",
			"import is left out"},
		{"(p) {\n\t{block}\n\troot * /w\n}\na.example {\n\timport p {\n\t\tbasic_auth {\n\t\t\ta b\n\t\t}\n\t}\n}\n", caddyTLS + caddySite + "root = \"/w\"\n" + auth, ""},
		{"(p) {\n\tbasic_auth {\n\t\t{blocks.users}\n\t}\n\troot * /w\n}\n(q) {\n\timport p {\n\t\t{block}\n\t}\n}\na.example {\n\timport q {\n\t\tusers {\n\t\t\ta b\n\t\t}\n\t}\n}\n",
			caddyTLS + caddySite + "root = \"/w\"\n" + auth, ""},
		{"() {\n}\na.example {\n\troot * /w\n\timport\n}\n", caddyTLS + caddySite + "root = \"/w\"\n", "5: import is left out"},
		{"import sites/*\na.example {\n\troot * /w\n}\n", caddyTLS + caddySite + "root = \"/w\"\n", "1: import is left out"},
		{"a.example {\n\troot * /w\n\timport auth\n}\n", caddyTLS + caddySite + "root = \"/w\"\ndeny = [\"all\"]\n", "3: import may say who may have it"},
		{"(a) {\n\timport a\n}\na.example {\n\troot * /w\n\timport a\n}\n", caddyTLS + caddySite + "root = \"/w\"\ndeny = [\"all\"]\n", "2: import may say who may have it"},
		{"a.example {\n\thandle /p/* {\n\t\timport auth\n\t\treverse_proxy b:1\n\t}\n}\n", caddyTLS + caddySite + "[[site.route]]\npath = \"/p/{path...}\"\nproxy = \"b:1\"\ndeny = [\"all\"]\n",
			"nobody may"},
		{"&(r) {\n\troot * /x\n}\na.example {\n\troot * /w\n}\n", caddyTLS + caddySite + "root = \"/w\"\n", "1: &(r) is left out"},
	} {
		tt.run(t)
	}
}

// A site with a host has TLS on any port but 80, unless the file says otherwise, and what has none stays where it is.
func TestCaddyAddresses(t *testing.T) {
	t.Parallel()
	const (
		files = " {\n\troot * /w\n}\n"
		root  = "root = \"/w\"\n"
		self  = "tls_self = true\n"
		both  = "[[listen]]\naddress = \":443\"\n[[listen]]\naddress = \":8080\"\ntls = false\n"
	)
	site := func(host, tls string) string { return "\n[[site]]\nhosts = [\"" + host + "\"]\n" + tls + root }
	for _, tt := range []caddyCase{
		{"a.example:8443" + files, "listen = [\":8443\"]\nhttp_redirect = \":80\"\n" + caddySite + root, ""},
		{"https://a.example:8443" + files, "listen = [\":8443\"]\nhttp_redirect = \":80\"\n" + caddySite + root, ""},
		{"a.example:80" + files, "listen = [\":80\"]\n" + site("a.example", ""), ""},
		{"http://a.example:8080" + files, "listen = [\":8080\"]\n" + site("a.example", ""), ""},
		{"localhost:2020" + files, "listen = [\":2020\"]\nhttp_redirect = \":80\"\n" + site("localhost", self), ""},
		{"192.0.2.1" + files, caddyTLS + site("192.0.2.1", self), ""},
		{"[::1]:8443" + files, "listen = [\":8443\"]\nhttp_redirect = \":80\"\n" + site("[::1]", self), ""},
		{"app.internal" + files, caddyTLS + site("app.internal", self), ""},
		{":8443 {\n\ttls c k\n\troot * /w\n}\n", "listen = [\":8443\"]\n" + site("*", "tls_cert = \"c\"\ntls_key = \"k\"\n"), ""},
		{"{\n\tauto_https off\n\tadmin off\n}\na.example:8080" + files, "listen = [\":8080\"]\n" + site("a.example", ""), ""},
		{"{\n\tauto_https disable_redirects\n}\na.example" + files, "listen = [\":443\"]\n" + caddySite + root, ""},
		{"{\n\tlocal_certs\n}\na.example" + files, caddyTLS + site("a.example", self), ""},
		{"{\n\tauto_https x\n}\na.example" + files, caddyTLS + caddySite + root, "2: auto_https is left out"},

		{"a.example" + files + ":8080" + files, caddyTLS + caddySite + root + site("*", ""),
			"4: * is not served on :8080, where a.example would be without TLS too"},
		{"a.example, http://a.example:8080" + files + "http://b.example:8080" + files, "http_redirect = \":80\"\n" + both + caddySite + root + site("b.example", ""), "b.example has no TLS"},
		{"a.example" + files + ":8443 {\n\ttls c k\n\troot * /w\n}\n", "listen = [\":443\", \":8443\"]\nhttp_redirect = \":80\"\n" + caddySite + root +
			site("*", "tls_cert = \"c\"\ntls_key = \"k\"\n"), "4: * is served on the addresses of other sites too"},
		{"a.example, http://a.example:8080" + files, "http_redirect = \":80\"\n" + both + caddySite + root, ""},
		{"a.example, http://a.example" + files, "[[listen]]\naddress = \":443\"\n[[listen]]\naddress = \":80\"\ntls = false\n" + caddySite + root, ""},
		{"a.example" + files + "http://b.example" + files, caddyTLS + caddySite + root + site("b.example", ""),
			"4: b.example is not served on :80, where others are redirected to https"},
		{"http://a.example {\n\tredir https://a.example{uri} permanent\n}\na.example" + files, caddyTLS + caddySite + root, ""},
		{":80 {\n\tredir https://{host}{uri}\n}\na.example" + files, caddyTLS + caddySite + root, ""},
	} {
		tt.run(t)
	}
}

// Variables of the environment are those of chert, and what needs to be known is left out.
func TestCaddyVariables(t *testing.T) {
	t.Parallel()
	const (
		site = "\n[[site]]\nhosts = [\"${H}\"]\ntls_auto = true\n"
		a    = "a.example {\n"
		left = caddyTLS + caddySite
	)
	for _, tt := range []caddyCase{
		{"{\n\temail {$MAIL}\n}\n{$H} {\n\troot * {$ROOT:/w}/x\n}\n", caddyTLS + "tls_email = \"${MAIL}\"\n" + site + "root = \"${ROOT:-/w}/x\"\n", ""},
		{":{$PORT:8080} {\n\troot * /w\n}\n", "listen = [\":${PORT:-8080}\"]\n\n[[site]]\nhosts = [\"*\"]\nroot = \"/w\"\n", ""},
		{"{$H}:{$P} {\n\treverse_proxy {$U:b:1}\n}\n", "listen = [\":${P}\"]\nhttp_redirect = \":80\"\n" + site + "proxy = \"${U:-b:1}\"\n", ""},
		{a + "\theader X \"{$V} ${W} {host}\"\n\theader Y {$V}\n}\n", left + "[[site.response_headers]]\nset = { \"Y\" = \"${V}\" }\n", "2: header X is left out"},
		{a + "\tbasic_auth {\n\t\ta {$HASH}\n\t\t{$NAME} b\n\t}\n}\n", left + "[site.basic_auth]\nusers = { \"a\" = \"${HASH}\" }\n", "4: the user {$NAME} is left out"},
		{a + "\treverse_proxy b:1\n\tabort /{$X}/*\n}\n", left + "proxy = \"b:1\"\ndeny = [\"all\"]\n", "abort says who may have it"},
		{a + "\troot * {$R}\n\tfile_server {\n\t\thide {$R}/x\n\t}\n}\n", left + "root = \"${R}\"\ndeny = [\"all\"]\n", "hide says who may have it"},
		{a + "\troot * w\n\tfile_server {\n\t\thide {$S}/y\n\t}\n}\n", left + "root = \"w\"\ndeny = [\"all\"]\n", "hide says who may have it"},
		{"{$H::80} {\n\troot * /w\n}\n", "", "the address {$H::80} is left out"},
		{a + "\troot * /w\n}\n{$H}/x/* {\n\tabort\n}\n", left + "root = \"/w\"\n[[site.route]]\npath = \"/x/{path...}\"\nrespond = 403\ndeny = [\"all\"]\n",
			"the address {$H}/x/* is left out"},
		{a + "\troot * /w{$}{$1}\n}\n", left + "root = \"/w{$}{$1}\"\n", ""},
	} {
		tt.run(t)
	}
}

// A redirect of some hosts of a site is one of theirs.
func TestCaddyRedir(t *testing.T) {
	t.Parallel()
	const (
		hosts = "a.example, www.a.example {\n\t@www host www.a.example\n\tredir @www https://a.example{uri} permanent\n\troot * /w\n"
		rest  = caddyTLS + caddySite + "root = \"/w\"\n"
		moved = "\n[[redirect]]\nhosts = [\"www.a.example\"]\ntls_auto = true\nto = \"https://a.example{uri}\"\nstatus = 301\n"
		own   = "tls_cert = \"c\"\ntls_key = \"k\"\n"
		all   = caddyTLS + "\n[[site]]\nhosts = [\"a.example\", \"www.a.example\"]\ntls_auto = true\nroot = \"/w\"\n"
	)
	for _, tt := range []caddyCase{
		{hosts + "}\n", rest + moved, ""},
		{hosts + "\ttls c k\n}\n", caddyTLS + "\n[[site]]\nhosts = [\"a.example\"]\nroot = \"/w\"\n" + own + strings.Replace(moved, "tls_auto = true\n", own, 1), ""},
		{strings.Replace(hosts, "host www", "path /x www", 1) + "}\n", all, "redir is left out"},
		{strings.Replace(hosts, "host www", "host b.example www", 1) + "}\n", all, "redir is left out"},
		{strings.Replace(hosts, "host www", "host a.example www", 1) + "}\n", all, "redir of all hosts is left out"},
		{hosts + "\tredir @www https://b.example\n}\n", rest + moved, "5: redir is left out"},
		{"a.example {\n\troot * /w\n\tredir /x/* /y\n\tredir \"\" /y\n}\n", rest, "redir is left out"},
	} {
		tt.run(t)
	}
}

// A block for a path, or for all that others are not for, forwards or has files.
func TestCaddyHandle(t *testing.T) {
	t.Parallel()
	const (
		api   = "\thandle /api/* {\n\t\treverse_proxy b:1\n\t}\n"
		route = "[[site.route]]\npath = \"/api/{path...}\"\nproxy = \"b:1\"\n"
		left  = "[[site.route]]\npath = \"/x/{path...}\"\nrespond = 502\n"
	)
	files := func(path, root, more string) string {
		return "[[site.route]]\npath = \"" + path + "\"\nroot = \"" + root + "\"\n" + more
	}
	for _, tt := range []caddyCase{
		{api + "\thandle {\n\t\troot * /w\n\t\ttry_files {path} /index.html\n\t\tfile_server\n\t}\n",
			"root = \"/w\"\ntry = [\"{path}\", \"/index.html\"]\n" + route, ""},
		{"\troot * /w\n" + api + "\thandle {\n\t\tfile_server browse\n\t}\n", "root = \"/w\"\nlisting = true\n" + route, ""},
		{"\thandle_path /x/* {\n\t\troot * /w\n\t\tfile_server\n\t}\n\thandle {\n\t\treverse_proxy b:1\n\t}\n",
			"proxy = \"b:1\"\n" + files("/x/{path...}", "/w", ""), ""},
		{"\thandle /x/* {\n\t\troot * /w\n\t\ttry_files {path} /x/i.html =404\n\t\tfile_server\n\t}\n",
			files("/x/{path...}", "/w/x", "try = [\"{path}\", \"/i.html\", \"=404\"]\n"), ""},
		{"\thandle /x/* {\n\t\troot * /w\n\t\tfile_server\n\t}\n\thandle {\n\t\troot * /w\n\t\tfile_server browse\n\t}\n",
			"root = \"/w\"\nlisting = true\n" + files("/x/{path...}", "/w/x", "listing = false\n"), ""},
		{"\thandle /x/* {\n\t\troot * /w\n\t\ttry_files {path} /i.html\n\t\tfile_server\n\t}\n", files("/x/{path...}", "/w/x", ""), "try_files /i.html is left out"},
		{"\thandle /x/* {\n\t\troot * /v\n\t\tfile_server\n\t}\n\thandle {\n\t\troot * /w\n\t\ttry_files {path} /i\n\t\tfile_server\n\t}\n",
			"root = \"/w\"\ntry = [\"{path}\", \"/i\"]\n" + files("/x/{path...}", "/v/x", "try = []\n"), ""},
		{"\thandle /x/* {\n\t\turi strip_prefix /x\n\t\treverse_proxy b:1\n\t}\n", "[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"b:1\"\nstrip = true\n", ""},
		{"\thandle /x/* {\n\t\turi strip_prefix /y\n\t\treverse_proxy b:1\n\t}\n", "[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"b:1\"\ndeny = [\"all\"]\n",
			"uri is left out"},
		{"\thandle /api/* {\n\t\treverse_proxy b:1\n\t\theader X y\n\t\tbasic_auth {\n\t\t\ta b\n\t\t}\n\t\trequest_body {\n\t\t\tmax_size 1KB\n\t\t}\n\t}\n",
			route + "limits.body = \"1KB\"\n[[site.route.response_headers]]\nset = { \"X\" = \"y\" }\n[site.route.basic_auth]\nusers = { \"a\" = \"b\" }\n", ""},
		{"\thandle /x/* {\n\t\treverse_proxy b:1\n\t\tbasic_auth {\n\t\t\ta b\n\t\t}\n\t}\n\thandle {\n\t\treverse_proxy b:1\n\t}\n",
			"proxy = \"b:1\"\nhidden = [\"/x/**\"]\n[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"b:1\"\n[site.route.basic_auth]\nusers = { \"a\" = \"b\" }\n", ""}, // not /X/
		{api + "\thandle {\n\t\troot * /w\n\t\ttry_files {path} /i\n\t\tfile_server\n\t\tbasic_auth {\n\t\t\ta b\n\t\t}\n\t}\n",
			route + files("/{path...}", "/w", "try = [\"{path}\", \"/i\"]\n[site.route.basic_auth]\nusers = { \"a\" = \"b\" }\n"), ""}, // not of /api/
		{"\troot * /w\n\thandle /x* {\n\t\tfile_server\n\t\tbasic_auth {\n\t\t\ta b\n\t\t}\n\t}\n\tfile_server\n", "root = \"/w\"\nhidden = [\"/x\", \"/x*?\"]\n" +
			files("/x/{path...}", "/w/x", "hidden = []\n[site.route.basic_auth]\nusers = { \"a\" = \"b\" }\n"), "/x* is for all that begins with it"}, // not /xy
		{"\thandle /x* {\n\t\tauthorize x\n\t\treverse_proxy b:1\n\t}\n\treverse_proxy b:1\n", "proxy = \"b:1\"\nhidden = [\"/x/**\", \"/x\", \"/x*?\"]\n" +
			"[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"b:1\"\ndeny = [\"all\"]\n", "authorize is left out"},
		{"\thandle {\n\t\tauthorize x\n\t\treverse_proxy b:1\n\t}\n", "proxy = \"b:1\"\ndeny = [\"all\"]\n", "authorize is left out"},
		{"\thandle_path /y/* {\n\t\treverse_proxy b:1\n\t}\n\thandle /y/x/* {\n\t\treverse_proxy b:1\n\t\tbasic_auth {\n\t\t\ta b\n\t\t}\n\t}\n",
			"[[site.route]]\npath = \"/y/{path...}\"\nproxy = \"b:1\"\nstrip = true\nhidden = [\"/x/**\"]\n[[site.route]]\npath = \"/y/x/{path...}\"\nproxy = \"b:1\"\n" +
				"[site.route.basic_auth]\nusers = { \"a\" = \"b\" }\n", ""},
		{"\thandle /x/* {\n\t\troot * /w\n\t}\n", left, "root is left out"},
		{"\troot * /w\n\troot /x/* /v\n\thandle /x/* {\n\t\tfile_server\n\t}\n", "root = \"/w\"\n" + left, "root is left out"},
		{"\thandle /x/* {\n\t\tfile_server\n\t}\n", left, "file_server is left out"},
		{"\thandle /x/* {\n\t\troot * /w\n\t\tfile_server\n\t\tbasic_auth /x/y {\n\t\t\ta b\n\t\t}\n\t}\n", left, "basic_auth is left out"},
		{"\thandle /x/* {\n\t\ttry_files {path} /i\n\t\treverse_proxy b:1\n\t}\n",
			"[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"b:1\"\ndeny = [\"all\"]\n", "try_files is left out"},
		{"\troot * /w\n\thandle /x/* {\n\t\tencode gzip\n\t}\n", "root = \"/w\"\n", ""},
		// Of those with one matcher Caddy runs the first.
		{api + strings.Replace(api, "b:1", "c:1", 1), route, "5: handle is left out: one before it is for the same requests"},
		{api + "\thandle /api/* {\n\t\trespond 200\n\t}\n", route, "5: handle is left out"},
		{"\thandle {\n\t\troot * /w\n\t\tfile_server\n\t}\n\thandle * {\n\t\trespond no\n\t}\n", "root = \"/w\"\n", "6: handle is left out"},
	} {
		tt.in, tt.out = "a.example {\n"+tt.in+"}\n", caddyTLS+caddySite+tt.out
		tt.run(t)
	}
}

// Passwords for a path protect all that the site and its routes have there. What cannot be protected is denied to all.
func TestCaddyPasswords(t *testing.T) {
	t.Parallel()
	const (
		auth  = "\tbasic_auth /x/* {\n\t\ta b\n\t}\n"
		users = "[site.route.basic_auth]\nusers = { \"a\" = \"b\" }\n"
		app   = "\treverse_proxy b:1\n"
		proxy = "proxy = \"b:1\"\n"
		files = "root = \"/w\"\n"
		below = "[[site.route]]\npath = \"/x/{path...}\"\n"
		none  = "respond = 403\ndeny = [\"all\"]\n"
	)
	for _, tt := range []caddyCase{
		{"\troot * /w\n\tfile_server\n" + auth, files + below + "root = \"/w/x\"\n" + users, ""},
		{app + auth, proxy + "hidden = [\"/x/**\"]\n" + below + proxy + users, ""},
		{"\treverse_proxy b:1 {\n\t\theader_up Host c\n\t}\n" + auth, "proxy_host = \"c\"\n" + proxy + "hidden = [\"/x/**\"]\n" + below + "proxy_host = \"c\"\n" + proxy + users, ""},
		{app + strings.Replace(auth, "/x/*", "/x*", 1), proxy + "hidden = [\"/x/**\", \"/x\", \"/x*?\"]\n" + below + proxy + users + "[[site.route]]\npath = \"/x\"\n" + proxy + users,
			"/x* is for all that begins with it"},
		{app + "\t@x path /x/*\n" + strings.Replace(auth, "/x/*", "@x", 1), proxy + "hidden = [\"/x/**\"]\n" + below + proxy + users, ""},
		{"\troot * /w\n\tfile_server\n\treverse_proxy /x/y/* b:1\n" + auth, files + "[[site.route]]\npath = \"/x/y/{path...}\"\n" + proxy + users + below + "root = \"/w/x\"\n" + users, ""},
		{"\troot * /w\n\tfile_server\n\tredir /x/y /z\n" + auth, files + "[[site.route]]\npath = \"/x/y\"\nredirect = \"/z\"\nstatus = 302\n" + below + "root = \"/w/x\"\n" + users, ""},

		{"\troot * /w\n\tfile_server\n" + strings.Replace(auth, "/x/*", "/x/y/*", 1) + "\thandle /x/* {\n\t" + app + "\t}\n",
			files + "hidden = [\"/x/y/**\"]\n" + below + proxy + "hidden = [\"/x/y/**\"]\n" + strings.Replace(below, "/x", "/x/y", 1) + none, "basic_auth says who may have /x/y/*, so nobody may"},
		{"\troot * /w\n\ttry_files {path} /i\n\tfile_server\n" + auth, files + "try = [\"{path}\", \"/i\"]\n" + below + none, "so nobody may"},
		{app + "\tbasic_auth {\n\t\tc d\n\t}\n" + auth, proxy + "hidden = [\"/x/**\"]\n[site.basic_auth]\nusers = { \"c\" = \"d\" }\n" + below + none, "so nobody may"},
		{app + "\t@x header X y\n" + strings.Replace(auth, "/x/*", "@x", 1), proxy + "deny = [\"all\"]\n", "basic_auth says who may have it"},
	} {
		tt.in, tt.out = "a.example {\n"+tt.in+"}\n", caddyTLS+caddySite+tt.out
		tt.run(t)
	}
}

// reverse_proxy with a named matcher is a route for each of its paths; one for WebSockets needs none. Of another a note
// says what becomes of the site.
func TestCaddyNamedProxy(t *testing.T) {
	t.Parallel()
	const (
		begin = "listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\n"
		all   = begin + "proxy = \"b:1\"\n"
		none  = begin + "[[site.route]]\npath = \"/{path...}\"\nrespond = 502\n"
		ws    = "@m {\nheader Connection *Upgrade*\nheader Upgrade websocket\n}\n"
		left  = "reverse_proxy @m is left out: want [[site.route]] with a path and proxy; here all is 502"
	)
	for _, tt := range []caddyCase{
		{"@m path /x/* /y\nreverse_proxy @m c:1\nreverse_proxy b:1\n", all + "[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\n" +
			"[[site.route]]\npath = \"/y\"\nproxy = \"c:1\"\n", ""},
		{"@m path /x/* /y /x/* /y\nreverse_proxy @m c:1\nreverse_proxy b:1\n", all + "[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\n" +
			"[[site.route]]\npath = \"/y\"\nproxy = \"c:1\"\n", ""},
		{"@m path /x/* /x*\nreverse_proxy @m c:1\nreverse_proxy b:1\n", all + "[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\n",
			"/x* is for all that begins with it; the route is for /x/{path...} and below"},
		{ws + "reverse_proxy @m b:1\nreverse_proxy b:1\n", all, ""},
		{"@m header Upgrade websocket\nreverse_proxy * b:1\nreverse_proxy @m b:1\n", all, ""},
		{ws + "reverse_proxy @m c:1\nreverse_proxy b:1\n", none, left},
		{ws + "reverse_proxy @m b:1\n", none, left},
		{"@m header X-A y\nreverse_proxy @m b:1\nreverse_proxy b:1\n", none, left},
		{"@m method POST\nreverse_proxy @m b:1\nreverse_proxy b:1\n", none, left},
		{"@m path /x *.png\nreverse_proxy @m c:1\nreverse_proxy b:1\n", none, left},
		{"reverse_proxy b:1\nreverse_proxy c:1\n", all, "3: reverse_proxy is left out: one before it forwards the same requests"},
		{ws + "reverse_proxy b:1\nreverse_proxy c:1\nreverse_proxy @m b:1\n", all, "7: reverse_proxy is left out: one before it"},
		{"reverse_proxy /x/* c:1\nreverse_proxy /x/* d:1\nreverse_proxy b:1\n", all + "[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\n",
			"3: reverse_proxy is left out: one before it"},
		{"reverse_proxy /x* c:1\nreverse_proxy /x/* d:1\nreverse_proxy b:1\n", all + "[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\n" +
			"[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"d:1\"\n", "2: /x* is for all that begins with it"},
	} {
		tt.in = "http://a.example {\n" + tt.in + "}\n"
		tt.run(t)
	}
}
