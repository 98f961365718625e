package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/ratelimit"
	"github.com/chert-http/chert/static"
)

// checks stand for the command's.
var checks = Checks{
	Listen: func(before []string, s string) error {
		if !strings.Contains(s, ":") {
			return errors.New("no address")
		}
		if slices.Contains(before, s) {
			return errors.New("it is given already")
		}
		return nil
	},
	Log: func(s string) error {
		if s == "xml" {
			return errors.New("want another")
		}
		return nil
	},
	Folder: func(dir string) error {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return fmt.Errorf("no such folder: %q", filepath.Base(dir))
		}
		return nil
	},
	Certificate: func(cert, key string) error { return checkFile(cert, key) },
	ClientCA:    func(file string) error { return checkFile(file) },
}

func checkFile(all ...string) error {
	for _, file := range all {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("there is no file %q", filepath.Base(file))
		}
	}
	return nil
}

// ofRates are those of [rate_limit].
func ofRates(c Checks) Checks {
	c.RateStore = func(s string) error {
		if !strings.Contains(s, "://") {
			return errors.New("no URL")
		}
		return nil
	}
	c.RateFailure = func(s string) error {
		if s != "open" {
			return errors.New("want open")
		}
		return nil
	}
	return c
}

// load writes a file beside the folders www and img, and loads it.
func load(t *testing.T, text string) (dir string, cfg *Config, err error) {
	t.Helper()
	dir = t.TempDir()
	for name, body := range map[string]string{"www/404.html": "", "www/app/index.html": "", "img/x": "", "c.toml": text} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err = Load(filepath.Join(dir, "c.toml"), ofRates(checks))
	return dir, cfg, err
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir, cfg, err := load(t, `
listen = [":80", "unix:run/s", "unix:run/t?mode=0660"]
log = "json"
shutdown_timeout = "1m"
trusted_proxies = ["10.1.2.3/8", "unix", "2001:db8::1"]
[rate_limit]
limit = ["20/s", "1000/h burst 50"]
store = "redis://h"
failure = "open"
timeout = "50ms"
instances = 4
[defaults]
listing = true
not_found = "/404.html"
cache = "1MiB"
index = ["index.html", "index.htm"]
[[defaults.rules]]
headers = { X-Content-Type-Options = "nosniff" }
[[site]]
hosts = ["Example.com", "*.example.com"]
root = "www"
listing = false
spa = "app/index.html"
index = []
dotfiles = true
immutable = true
precompressed = false
compression = false
compress_max = "2MB"
cache = 0
cache_file_size = 1000
open_files = 7
[[site.rules]]
match = ["*.html", "a/**"]
headers = { Cache-Control = "no-cache", Server = "" }
[[site]]
hosts = "*"
root = "img"
not_found = ""
[[redirect]]
hosts = ["old.example"]
to = "https://example.com{uri}"
status = 308
`)
	if err != nil {
		t.Fatal(err)
	}
	timeout := time.Minute
	first := static.Rule{Match: "**", Header: map[string]string{"X-Content-Type-Options": "nosniff"}}
	header := map[string]string{"Cache-Control": "no-cache", "Server": ""}
	want := &Config{
		Listen: []Listen{
			{Address: ":80", at: Position{Line: 2, Column: 11}}, {Address: "unix:" + filepath.Join(dir, "run", "s"), at: Position{Line: 2, Column: 18}},
			{Address: "unix:" + filepath.Join(dir, "run", "t") + "?mode=0660", at: Position{Line: 2, Column: 32}},
		}, Log: Log{Format: "json"}, ShutdownTimeout: &timeout,
		Proxies: Proxies{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128")}, Unix: true},
		RateLimit: RateLimit{
			Rates: []ratelimit.Rate{{Count: 20, Per: time.Second, Burst: 20}, {Count: 1000, Per: time.Hour, Burst: 50}},
			Store: "redis://h", Failure: "open", Timeout: 50 * time.Millisecond, Instances: 4,
		},
		Sites: []Site{
			{At: Position{Line: 19, Column: 3}, Hosts: []vhost.Pattern{"example.com", "*.example.com"}, Root: filepath.Join(dir, "www"), Options: static.Options{
				Index: []string{}, Dotfiles: true, SPA: "app/index.html", NotFound: "404.html", Immutable: true,
				NoPrecompressed: true, NoCompression: true, CompressMax: 2e6, CacheBytes: -1, CacheFileSize: 1000, OpenFiles: 7,
				Rules: []static.Rule{first, {Match: "*.html", Header: header}, {Match: "a/**", Header: header}},
			}},
			{At: Position{Line: 36, Column: 3}, Hosts: []vhost.Pattern{"*"}, Root: filepath.Join(dir, "img"), Options: static.Options{
				Index: []string{"index.html", "index.htm"}, Listing: true, CacheBytes: 1 << 20, OpenFiles: shareOf(2).files, Rules: []static.Rule{first},
			}},
		},
		Redirects: []Redirect{{At: Position{Line: 40, Column: 3}, Hosts: []vhost.Pattern{"old.example"}, To: "https://example.com{uri}", Status: 308}},
	}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("\ngot  %+v\nwant %+v", cfg, want)
	}
}

// The command decides what the file leaves open, and a site has static's
// defaults.
func TestLoadLittle(t *testing.T) {
	t.Parallel()
	_, cfg, err := load(t, "[[site]]\nhosts = '*'\nroot = 'www'\n")
	if err != nil {
		t.Fatal(err)
	}
	o := cfg.Sites[0].Options
	if cfg.Listen != nil || cfg.Log.Format != "" || cfg.ShutdownTimeout != nil || cfg.RateLimit.Rates != nil || o.Index != nil || o.Listing || o.OpenFiles != 0 || o.CacheBytes != 64<<20 {
		t.Errorf("%+v", cfg)
	}
}

// Many sites share what one would have for itself.
func TestShares(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "[[site]]\nhosts = 'h%d'\nroot = 'www'\n", i)
	}
	_, cfg, err := load(t, b.String())
	if err != nil {
		t.Fatal(err)
	}
	if o := cfg.Sites[99].Options; o.CacheBytes != 256<<20/100 || o.OpenFiles > 40 || o.OpenFiles < 16 {
		t.Errorf("%d bytes, %d descriptors", o.CacheBytes, o.OpenFiles)
	}
}

func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	_, cfg, err := load(t, "\xef\xbb\xbf"+good)
	if err != nil || len(cfg.Sites) != 1 {
		t.Errorf("%+v, %v", cfg, err)
	}
}

// good is a site without fault, to put one beside.
const good = "[[site]]\nhosts = ['*']\nroot = 'www'\n"

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"syntax", "listen = \n", "1:10: unexpected character"},
		{"UTF-16", "\xff\xfel\x00", "this is UTF-16; save it as UTF-8"},
		{"UTF-16, the other way", "\xfe\xff\x00l", "this is UTF-16; save it as UTF-8"},
		{"after a byte order mark", "\xef\xbb\xbflisen = ':80'\n" + good, `1:1: unknown key "lisen" in the file; did you mean "listen"?`},
		{"key twice", "log = 'off'\nlog = 'off'\n", "2:1: "},
		{"no site", "log = 'off'\n", "no site; want at least one [[site]] or [[redirect]]"},
		{"unknown key", "lisen = ':80'\n" + good, `1:1: unknown key "lisen" in the file; did you mean "listen"?`},
		{"TLS", "tls = true\n" + good, `1:1: unknown key "tls" in the file; it is a key of [[listen]] or [upstream.NAME]; sites have tls_cert with tls_key, tls_self or tls_auto (docs/tls.md)`},
		{"in a site's table", good + "[site.tls]\ncert = 'x'\n", `4:7: unknown key "tls" in [[site]]; it is a key of [[listen]] or [upstream.NAME]; sites have tls_cert with tls_key`},
		{"with a dash, as the flag", "http-redirect = 'x'\n" + good, `1:1: unknown key "http-redirect" in the file; did you mean "http_redirect"?`},
		{"another word", "https = true\n" + good, `1:1: unknown key "https" in the file; want tls_cert with tls_key`},
		{"a port", "port = 80\n" + good, `1:1: unknown key "port" in the file; want listen = ":8080"`},
		{"a word of nginx", good + "  proxy_pass = 'http://x'\n", `4:3: unknown key "proxy_pass" in [[site]]; want proxy = "127.0.0.1:9000"`},
		{"another word in a table", good + "[site.limits]\nmax_body = 'x'\n", `5:1: unknown key "max_body" in [site.limits]; want body = "10MB"`},
		{"nginx's word in a table", good + "[site.limits]\nclient_max_body_size = 'x'\n", `5:1: unknown key "client_max_body_size" in [site.limits]; want body = "10MB"`},
		{"a limit in a site", good + "max_body = 'x'\n", `4:1: unknown key "max_body" in [[site]]; want [site.limits] with body = "10MB"`},
		{"in a table of nginx", good + "[site.location]\ntry_files = 'x'\n", `4:7: unknown key "location" in [[site]]; want [[site.route]] with path = "/img/{rest...}" and root, proxy, redirect or respond`},
		{"a word with a dash", "Basic-Auth = 'x'\n" + good, `1:1: unknown key "Basic-Auth" in the file; basic_auth is a key of [[site]] or [[site.route]]`},
		{"a site's key too early", "root = '.'\n" + good, `1:1: unknown key "root" in the file; it is a key of [[site]]`},
		{"a site's key, which may be elsewhere too", "tls_self = true\n" + good, `1:1: unknown key "tls_self" in the file; it is a key of [defaults], [[site]] or [[redirect]]`},
		{"the file's key too late", good + "listen = ':80'\n", `4:1: unknown key "listen" in [[site]]; it is a key of the file itself, before its first table`},
		{"a rule's key", good + "match = '*'\n", `4:1: unknown key "match" in [[site]]; it is a key of [[defaults.rules]] or [[site.rules]]`},
		{"unknown and far", "lights = true\n" + good, `1:1: unknown key "lights" in the file`},
		{"in a site", good + "no_found = 'x'\n", `4:1: unknown key "no_found" in [[site]]; did you mean "not_found"?`},
		{"with a dash", good + "not-found = 'x'\n", `4:1: unknown key "not-found" in [[site]]; did you mean "not_found"?`},
		{"in the defaults", "[defaults]\nroot = 'x'\n" + good, `2:1: unknown key "root" in [defaults]; it is a key of [[site]]`},
		{"in a rule", good + "[[site.rules]]\nmach = 'x'\nheaders = {}\n", `5:1: unknown key "mach" in [[site.rules]]; did you mean "match"?`},
		{"unknown table", "[sites]\n" + good, `1:2: unknown key "sites" in the file; did you mean [[site]]?`},
		{"unknown tables", "[[redirects]]\n" + good, `1:3: unknown key "redirects" in the file; did you mean [[redirect]]?`},
		{"a site's table by itself", "[limits]\nbody = 1\n" + good, `1:2: unknown key "limits" in the file; want [site.limits], after the [[site]] that it is for`},
		{"a site's tables by themselves", good + "[[route]]\npath = '/'\n", `4:3: unknown key "route" in the file; want [[site.route]], after the [[site]] that it is for`},
		{"a site's table without a site", "[[site.route]]\npath = '/'\n", "1:3: this table is of a site, and there is no [[site]] before it"},
		{"a site after its tables", "[[site.route]]\npath = '/'\n" + good, "3:3: [[site]] comes after a table such as [[site.route]]; the tables of a site follow it"},
		{"near, and a word of servers", good + "[site.basic_auth]\nuser = 'x'\n", `5:1: unknown key "user" in [site.basic_auth]; did you mean "users"?`},
		{"near, and another table's", good + "[[site.rules]]\nheader = {}\nheaders = { A = 'b' }\n", `5:1: unknown key "header" in [[site.rules]]; did you mean "headers"?`},
		{"an upstream's name", good + "upstream = 'app'\n", `4:1: unknown key "upstream" in [[site]]; want proxy = "NAME"; [upstream.NAME] stands by itself`},
		{"strip", good + "strip_prefix = '/x'\n", `4:1: unknown key "strip_prefix" in [[site]]; want strip = true beside proxy`},
		{"one bracket", "[site]\nroot = 'www'\n", "1:2: site is written with two brackets: [[site]]"},
		{"listen's type", "listen = 80\n" + good, "1:10: listen wants a string or a list of strings, not a number"},
		{"listen's item", "listen = [':80',\n  81]\n" + good, "2:3: listen wants a list of strings or tables, not a number"},
		{"listen's form", "listen = [':80', # here\n  'x']\n" + good, `2:3: listen: "x": no address`},
		{"listen twice", "listen = [':80', ':80']\n" + good, `1:18: listen: ":80": it is given already`},
		{"listen's block", "[[listen]]\naddress = 'x'\n" + good, `2:11: listen: "x": no address`},
		{"listen's block twice", "[[listen]]\naddress = ':80'\n[[listen]]\naddress = ':80'\n" + good, `4:11: listen: ":80": it is given already`},
		{"listen in both ways", "listen = [':80', {address = ':80'}]\n" + good, `1:29: listen: ":80": it is given already`},
		{"listen without an address", "[[listen]]\ntls = false\n" + good, `1:3: [[listen]] has no address; want address = ":8080"`},
		{"listen with one bracket", "[listen]\naddress = ':80'\n" + good, "1:2: listen is written with two brackets: [[listen]]"},
		{"listen's unknown key", "[[listen]]\naddress = ':80'\nlog = 'off'\n" + good, `3:1: unknown key "log" in [[listen]]; it is a key of the file itself, before its first table`},
		{"listen's tls", "[[listen]]\naddress = ':80'\ntls = 'no'\n" + good, "3:7: tls wants true or false, not a string"},
		{"listen with TLS and without a certificate", "[[listen]]\naddress = ':80'\ntls = true\n" + good, "3:7: tls = true needs a site with a certificate"},
		{"protocols", "[[listen]]\naddress = ':80'\nprotocols = ['h1', 'h4']\n" + good, `3:20: protocols wants "h1", "h2" and "h3", each once, not "h4"`},
		{"protocols twice", "[[listen]]\naddress = ':80'\nprotocols = ['h1', 'h1']\n" + good, `3:20: protocols wants "h1", "h2" and "h3", each once, not "h1"`},
		{"address of a proxy", "[[listen]]\naddress = ':80'\nproxy_protocol = ['10.0.0.0/8',\n 'x']\n" + good, `4:2: proxy_protocol: "x": want an address, a prefix such as "10.0.0.0/8", or "unix"`},
		{"every address", "[[listen]]\naddress = ':80'\nproxy_protocol = '0.0.0.0/0'\n" + good, `3:18: proxy_protocol: "0.0.0.0/0": that is every address, so any client could forge its own; name the proxies`},
		{"proxies of an address", "[[listen]]\naddress = ':80'\ntrusted_proxies = ['::ffff:10.0.0.1']\n" + good, `3:20: trusted_proxies: "::ffff:10.0.0.1": write an IPv4 address without the ::ffff: before it`},
		{"HTTP/3 in plain", "[[listen]]\naddress = ':80'\nprotocols = ['h1', 'h3']\n" + good, "3:20: protocols: HTTP/2 and HTTP/3 are served over TLS only"},
		{"HTTP/3 without a certificate", "http3 = true\n" + good, "1:9: http3 = true needs a site with a certificate: tls_cert and tls_key, tls_self or tls_auto"},
		{"early data without HTTP/3", "http3_early_data = true\n[[listen]]\naddress = ':443'\n" + good + "tls_self = true\n", `1:20: http3_early_data = true needs http3 = true, or "h3" among`},
		{"no protocol", "[[listen]]\naddress = ':80'\nprotocols = []\n" + good, `3:1: protocols wants "h1", alone or with "h2" and "h3"`},
		{"protocols in plain", "[[listen]]\naddress = ':80'\nprotocols = ['h1', 'h2']\n" + good, "3:20: protocols: HTTP/2 and HTTP/3 are served over TLS only"},
		{"protocols beside TLS", "[[listen]]\naddress = ':80'\nprotocols = ['h1', 'h2']\ntls = false\n[[listen]]\naddress = ':443'\n" + good + "tls_self = true\n",
			"3:20: protocols: HTTP/2 and HTTP/3 are served over TLS only"},
		{"no address with TLS", "[[listen]]\naddress = ':80'\ntls = false\n" + good + "tls_self = true\n", "1:3: sites have certificates, and no address speaks TLS"},
		{"listen nowhere", "listen = []\n" + good, "1:1: listen names no address"},
		{"log", "log = 'xml'\n" + good, "1:7: log: want another"},
		{"log's type", "log = true\n" + good, "1:7: log wants a format or a table, not true or false"},
		{"timeout", "shutdown_timeout = '30'\n" + good, `1:20: shutdown_timeout wants a time such as "30s" or "1m30s"`},
		{"timeout's type", "shutdown_timeout = 30\n" + good, `1:20: shutdown_timeout wants a time such as "30s" or "1m30s"`},
		{"negative timeout", "shutdown_timeout = '-1s'\n" + good, `1:20: shutdown_timeout wants a time such as "30s" or "1m30s"`},
		{"bool", good + "listing = 'yes'\n", "4:11: listing wants true or false, not a string"},
		{"size", good + "cache = '64 parsecs'\n", "4:9: cache wants a size such as 64MiB, 500kB or 4096"},
		{"size below nothing", good + "cache = -1\n", "4:9: cache wants a size such as 64MiB, 500kB or 4096"},
		{"size's type", good + "cache = 1.5\n", "4:9: cache wants a size such as 64MiB, 500kB or 4096"},
		{"no size", good + "cache_file_size = 0\n", "4:19: cache_file_size wants more than 0"},
		{"descriptors", good + "open_files = 0\n", "4:14: open_files wants a number from 1 to 1048576"},
		{"a date", good + "open_files = 2001-01-01\n", "4:14: open_files wants a number, not a date or time"},
		{"index", good + "index = ['a', 'b/c']\n", `4:15: index wants names of files, not "b/c"`},
		{"index empty", good + "index = ''\n", `4:9: index wants names of files, not ""`},
		{"no hosts", "[[site]]\nroot = 'www'\n", `1:3: [[site]] has no hosts; "*" stands for all that no other site is for`},
		{"empty hosts", "[[site]]\nhosts = []\nroot = 'www'\n", `2:1: hosts is empty; "*" stands for all that no other site is for`},
		{"host's type", "[[site]]\nhosts = [1]\nroot = 'www'\n", "2:10: hosts wants a list of strings, not a number"},
		{"host with a port", "[[site]]\nhosts = ['a:80']\nroot = 'www'\n", `2:10: host "a:80": leave the port out; a site is served on all addresses of listen`},
		{"host twice", good + "[[site]]\nhosts = ['b', '*']\nroot = 'www'\n", `5:15: host "*" has a site already, in line 2`},
		{"host twice, other case", "[[site]]\nhosts = ['B.example', 'b.Example.']\nroot = 'www'\n", `2:23: host "b.example" has a site already, in line 2`},
		{"host of a redirect", good + "[[redirect]]\nhosts = '*'\nto = 'http://a'\n", `5:9: host "*" has a site already, in line 2`},
		{"no root", "[[site]]\nhosts = '*'\n", "1:3: [[site]] has no root, the folder to serve"},
		{"empty root", "[[site]]\nhosts = '*'\nroot = ''\n", `3:8: root is empty; "." is the folder of this file`},
		{"root's type", "[[site]]\nhosts = '*'\nroot = ['www']\n", "3:1: root wants a string, not a list"},
		{"no folder", "[[site]]\nhosts = '*'\nroot = 'no'\n", `3:8: root: no such folder: "no"`},
		{"a file", "[[site]]\nhosts = '*'\nroot = 'img/x'\n", `3:8: root: no such folder: "x"`},
		{"spa", good + "spa = 'x.html'\n", `4:7: spa: there is no file "x.html" in "DIR/www"`},
		{"spa outside", good + "spa = '../img/x'\n", `4:7: spa wants a path within root, not "../img/x"`},
		{"a folder as page", good + "not_found = 'app'\n", `4:13: not_found: "app" in "DIR/www" is not a file`},
		{"of the defaults", "[defaults]\nspa = 'x.html'\n" + good, `2:7: spa: there is no file "x.html" in "DIR/www"`},
		{"rules without headers", good + "[[site.rules]]\nmatch = '*'\n", "4:8: [[site.rules]] sets no headers"},
		{"headers' type", good + "[[site.rules]]\nheaders = 'a: b'\n", "5:11: headers wants a table, not a string"},
		{"header's type", good + "[[site.rules]]\nheaders = { A = 1 }\n", "5:17: A wants a string, not a number"},
		{"redirect to nowhere", "[[redirect]]\nhosts = '*'\n", `1:3: [[redirect]] goes nowhere; want to = "https://example.com{uri}"`},
		{"relative", "[[redirect]]\nhosts = '*'\nto = '/x'\n", `3:6: to: want an absolute URL, as in "https://example.com{uri}"`},
		{"no http", "[[redirect]]\nhosts = '*'\nto = 'ftp://x/'\n", `3:6: to: want an absolute URL, as in "https://example.com{uri}"`},
		{"uri as host", "[[redirect]]\nhosts = '*'\nto = 'https://{uri}'\n", `3:6: to: want an absolute URL, as in "https://example.com{uri}"`},
		{"nginx's variable", "[[redirect]]\nhosts = '*'\nto = 'https://x$request_uri'\n", `3:6: to: "$request_uri" is not replaced here: want {host} or {uri}`},
		{"uri in the middle", "[[redirect]]\nhosts = '*'\nto = 'https://x{uri}.html'\n", "3:6: to: {uri} holds the query, so nothing can follow it"},
		{"uri in a query", "[[redirect]]\nhosts = '*'\nto = 'https://x/?{uri}'\n", "3:6: to: {uri} holds the path, so it cannot come into a query or fragment"},
		{"other braces in the host", "[[redirect]]\nhosts = '*'\nto = 'https://{hots}{uri}'\n", "3:6: to: only {host} and {uri} can be filled in"},
		{"other braces", "[[redirect]]\nhosts = '*'\nto = 'https://x/{path}'\n", "3:6: to: only {host} and {uri} can be filled in"},
		{"spaces", "[[redirect]]\nhosts = '*'\nto = 'https://x/a b'\n", "3:6: to: spaces, control characters and what is not ASCII must be percent-encoded"},
		{"a password", "[[redirect]]\nhosts = '*'\nto = 'https://a:b@x/'\n", "3:6: to: a user name or password is not permitted"},
		{"status", "[[redirect]]\nhosts = '*'\nto = 'https://x/'\nstatus = 200\n", "4:10: status wants 301 or 308 (for good), 302 or 307 (for now), or 303"},
		{"proxies", "trusted_proxies = ['10.0.0.1', '0.0.0.0/0']\n" + good, `1:32: trusted_proxies: "0.0.0.0/0": that is every address`},
		{"proxy's name", "trusted_proxies = 'proxy'\n" + good, `1:19: trusted_proxies: "proxy": want an address, a prefix such as "10.0.0.0/8", or "unix"`},
		{"rate", "[rate_limit]\nlimit = '100/fortnight'\n" + good, `2:9: limit: rate "100/fortnight": there is no unit "fortnight"; want s, m, h or d`},
		{"one rate of two", "[rate_limit]\nlimit = ['1/s', 'x']\n" + good, `2:17: limit: rate "x": want a rate such as "100/s"`},
		{"rate's type", "[rate_limit]\nlimit = 100\n" + good, "2:9: limit wants a string or a list of strings, not a number"},
		{"no rate", "[rate_limit]\nstore = 'redis://h'\n" + good, `1:2: [rate_limit] has no limit; want limit = "100/s"`},
		{"no rates", "[rate_limit]\nlimit = []\n" + good, `1:2: [rate_limit] has no limit; want limit = "100/s"`},
		{"store", "[rate_limit]\nlimit = '1/s'\nstore = 'h'\n" + good, "3:9: store: no URL"},
		{"failure", "[rate_limit]\nlimit = '1/s'\nstore = 'redis://h'\nfailure = 'ajar'\n" + good, "4:11: failure: want open"},
		{"timeout of a store", "[rate_limit]\nlimit = '1/s'\nstore = 'redis://h'\ntimeout = '1us'\n" + good, "4:11: timeout wants 1ms at least"},
		{"instances", "[rate_limit]\nlimit = '1/s'\nstore = 'redis://h'\ninstances = 0\n" + good, "4:13: instances wants a number from 1 to 1048576"},
		{"failure of what", "[rate_limit]\nlimit = '1/s'\nfailure = 'open'\n" + good, "3:1: failure is for a store, and there is none"},
		{"in the limit", "[rate_limit]\nlimitt = '1/s'\nlimit = '1/s'\n" + good, `2:1: unknown key "limitt" in [rate_limit]; did you mean "limit"?`},
		{"limit's brackets", "[[rate_limit]]\nlimit = '1/s'\n" + good, "1:3: rate_limit wants a table, not a list"},
		{"inline tables", "site = [{ hosts = '*',\n root = 'no' }]\n", `2:9: root: no such folder: "no"`},
	}
	for _, tt := range tests {
		dir, cfg, err := load(t, tt.text)
		want := strings.ReplaceAll(tt.want, "DIR", dir)
		var got []string
		if ps, ok := errors.AsType[Problems](err); ok {
			for _, p := range ps {
				line := strings.TrimPrefix(p.Error(), filepath.Join(dir, "c.toml")+":")
				got = append(got, strings.TrimSpace(line))
			}
		}
		if cfg != nil || len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, want)
		}
	}
}

// All that is wrong is said at once, in the order of the file.
func TestAllProblems(t *testing.T) {
	t.Parallel()
	dir, _, err := load(t, `log = 1
what = 2
[[redirect]]
hosts = ["a"]
[[site]]
hosts = ["a", "b:1"]
root = "gone"
listing = 3
`)
	want := strings.ReplaceAll(`DIR/c.toml:1:7: log wants a format or a table, not a number
DIR/c.toml:2:1: unknown key "what" in the file
DIR/c.toml:3:3: [[redirect]] goes nowhere; want to = "https://example.com{uri}"
DIR/c.toml:4:10: host "a" has a site already, in line 6
DIR/c.toml:6:15: host "b:1": leave the port out; a site is served on all addresses of listen
DIR/c.toml:7:8: root: no such folder: "gone"
DIR/c.toml:8:11: listing wants true or false, not a number`, "DIR", dir)
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		dir:                        "cannot read it: ",
		long:                       "longer than 1 MiB",
	} {
		if _, err := Load(file, checks); err == nil || !strings.HasPrefix(err.Error(), file+": "+want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{
		"0": 0, "4096": 4096, "1k": 1 << 10, "1K": 1 << 10, "1KiB": 1 << 10, "1kB": 1000, "64MiB": 64 << 20, "64 mib": 64 << 20,
		"1.5GB": 1.5e9, "2g": 2 << 30, "1TiB": 1 << 40, "1024TiB": MaxSize, "10B": 10,
		"": -1, "MiB": -1, "-1": -1, "+1": -1, "1.2.3": -1, "1 parsec": -1, "1025TiB": -1, "1e9": -1, "inf": -1, "0x10": -1, ".": -1,
	} {
		got, err := ParseSize(s)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v, want %d", s, got, err, want)
		}
	}
}

func TestShowSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1KiB", 1536: "1.5KiB", 999 << 10: "999KiB", 1001 << 10: "1MiB", 64 << 20: "64MiB",
		123 << 20: "123MiB", 5 << 30: "5GiB", 1 << 50: "1024TiB",
	} {
		if got := ShowSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// acceptable checks that package proxy accepts what the file has, as far as it can tell without the network.
func acceptable(t *testing.T, text string, cfg *Config) {
	pool := proxy.NewPool(&proxy.PoolOptions{Logger: slog.New(slog.DiscardHandler)})
	defer pool.Close()
	for _, u := range cfg.Upstreams {
		o := u.Options
		named := func(s proxy.Server) bool {
			_, err := netip.ParseAddrPort(s.Addr)
			return err != nil && !strings.HasPrefix(s.Addr, "unix:")
		}
		if o.SRV != "" || slices.ContainsFunc(o.Servers, named) {
			continue // names are looked up
		}
		if o.Check = nil; u.TLS != nil {
			var err error
			if o.TLS, err = u.TLS.Config(); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		up, err := pool.Upstream(&o)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for _, s := range cfg.Sites {
			for _, p := range append([]*Proxy{s.Proxy}, proxiesOf(s.Routes)...) {
				if p == nil || up == nil {
					continue
				}
				if _, err := proxy.New(&proxy.Options{Upstream: up, Host: p.Host, StripPrefix: p.Strip}); err != nil {
					t.Errorf("%q: %v", text, err)
				}
			}
		}
	}
}

func proxiesOf(routes []Route) (all []*Proxy) {
	for _, r := range routes {
		all = append(all, r.Proxy)
	}
	return all
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{good, "a.b = {c=[1,{d=2}]}\n[a.e]\n", "[[site]]\n[site.rules]\n", "site=[{rules=[{headers={a='b'}}]}]", "[[a]]\n[[a.b]]\n[a.b.c]\nd=1\n[[a]]\n"} {
		f.Add(s)
	}
	nothing := Checks{Listen: func([]string, string) error { return nil }, Log: func(string) error { return nil }, Folder: func(string) error { return errors.New("none") }, Certificate: checks.Certificate, ClientCA: checks.ClientCA}
	nothing = ofRates(nothing)
	f.Add("[rate_limit]\nlimit = []\nstore = 1")
	f.Add("[[site]]\nhosts='*'\nallow=['unix','1.2.3.4/8']\nheaders={A='${B:-c}'}\n[site.basic_auth]\nusers={a='b'}\n[[site.route]]\npath='/a/{b...}'\nmethods=['GET']\nredirect='/c/{b}?{uri}'\nstatus=3\n[[site.route]]\npath='/{a}'\nrespond=200\nbody='x'\ntype='a/b'\n")
	f.Add("site=[{route=[{path='/a/{x}',root='b',rules=[{}]},{path='/{x}/b',respond=[]}],basic_auth=false,deny=[1]}]")
	f.Add("[upstream.a]\nservers=['1.2.3.4:5',{addr='unix:x',weight=0,backup=true,max_requests=1}]\nbalance='hash header:X'\nbound=2.5\nqueue=1\nretry=['keys']\nhealth={percent=1}\ncheck={path='/',fall=1}\n" +
		"[[site]]\nhosts='*'\nproxy='a'\nsplit=[{upstream='[::1]:1',percent=5},{upstream='a',cookie={a='*'}}]\nrequest_headers={A=''}\n[[site.route]]\npath='/b/{c...}'\nproxy='https://1.2.3.4'\nstrip=true\nproxy_host='upstream'\n")
	f.Fuzz(func(t *testing.T, text string) {
		d := &doc{file: "c.toml"}
		cfg := d.load([]byte(text), nothing)
		if cfg != nil && len(d.problems) == 0 {
			acceptable(t, text, cfg)
		}
		for _, p := range d.problems {
			if strings.ContainsAny(p.Error(), "\n") {
				t.Errorf("%q: more than a line: %q", text, p.Error())
			}
			if lines := strings.Count(text, "\n") + 1; p.At.Line > lines {
				t.Errorf("%q: line %d of %d", text, p.At.Line, lines)
			}
		}
	})
}

func TestLoadTLS(t *testing.T) {
	t.Parallel()
	dir, cfg, err := load(t, `
listen = ":443"
http_redirect = ":80"
tls_storage = "state"
tls_email = "a@example.com"
tls_staging = true
[defaults]
tls_cert = "img/x"
tls_key = "img/x"
client_ca = "img/x"
tls_min = "1.3"
hsts = "365d"
hsts_subdomains = true
[[site]]
hosts = "a.example"
root = "www"
[[site]]
hosts = "b.example"
root = "www"
tls_auto = true
client_ca = ""
hsts = ""
hsts_subdomains = false
[[site]]
hosts = "*"
root = "www"
tls_self = true
[[redirect]]
hosts = "c.example"
to = "https://a.example"
hsts = "1h"
`)
	if err != nil {
		t.Fatal(err)
	}
	file, year := filepath.Join(dir, "img", "x"), 365*24*time.Hour
	want := []TLS{
		{Cert: file, Key: file, ClientCA: file, Min: "1.3", HSTS: year, HSTSSubdomains: true},
		{Auto: true, Min: "1.3"},
		{Self: true, ClientCA: file, Min: "1.3", HSTS: year, HSTSSubdomains: true},
		{Cert: file, Key: file, ClientCA: file, Min: "1.3", HSTS: time.Hour, HSTSSubdomains: true},
	}
	got := []TLS{cfg.Sites[0].TLS, cfg.Sites[1].TLS, cfg.Sites[2].TLS, cfg.Redirects[0].TLS}
	if !slices.Equal(got, want) {
		t.Errorf("\ngot  %+v\nwant %+v", got, want)
	}
	if a := (ACME{Storage: filepath.Join(dir, "state"), Email: "a@example.com", Staging: true}); cfg.ACME != a || cfg.HTTPRedirect != ":80" {
		t.Errorf("%+v %q", cfg.ACME, cfg.HTTPRedirect)
	}
}

func TestTLSProblems(t *testing.T) {
	t.Parallel()
	const site = "[[site]]\nhosts = 'a.example'\nroot = 'www'\n"
	const pair = "tls_cert = 'img/x'\ntls_key = 'img/x'\n"
	for _, tt := range []struct{ text, want string }{
		{site + "tls_cert = 'img/x'\n", "1:3: tls_cert and tls_key go together in [[site]]"},
		{site + "tls_cert = ''\ntls_key = ''\n", "4:12: tls_cert and tls_key want the names of files"},
		{site + pair + "tls_self = true\n", "1:3: [[site]] has several of tls_cert, tls_self and tls_auto; want one"},
		{site + "tls_cert = 'no'\ntls_key = 'img/x'\n", `5:11: there is no file "no"`},
		{site + pair + "client_ca = 'no'\n", `6:13: client_ca: there is no file "no"`},
		{site + pair + "tls_min = '1.1'\n", "6:11: tls_min: want 1.2 or 1.3"},
		{site + pair + "hsts = '1y'\n", "6:8: hsts: want a time such as 365d or 24h, of ten years at most, or 0s"},
		{site + pair + "hsts = '-1s'\n", "6:8: hsts: want a time"},
		{site + pair + "hsts_subdomains = true\n", "1:3: hsts_subdomains needs hsts"},
		{site + "hsts = '1h'\n", "1:3: client_ca, tls_min and hsts need a certificate"},
		{site + pair + "[[site]]\nhosts = '*'\nroot = 'www'\n", "6:3: it has no certificate, and another site has"},
		{site + pair + "[[redirect]]\nhosts = '*'\nto = 'https://x.example'\n", "6:3: it has no certificate, and another site has"},
		{"[[site]]\nhosts = '*'\nroot = 'www'\ntls_auto = true\n", `2:1: tls_auto: "*": authorities give certificates for it only through the DNS`},
		{"[[site]]\nhosts = '192.0.2.1'\nroot = 'www'\ntls_auto = true\n", `2:1: tls_auto: "192.0.2.1" is an address; want a name`},
		{"[[site]]\nhosts = '[::1]'\nroot = 'www'\ntls_auto = true\n", `2:1: tls_auto: "::1" is an address; want a name`},
		{"[[site]]\nhosts = 'localhost'\nroot = 'www'\ntls_auto = true\n", `2:1: tls_auto: "localhost" is no public name`},
		{"http_redirect = ':80'\n" + site, "1:1: http_redirect needs a site with a certificate"},
		{"listen = ':80'\nhttp_redirect = ':80'\n" + site + pair, "2:17: http_redirect: it is given already"},
		{"tls_storage = 'c.toml'\n" + site + "tls_self = true\n", `1:15: tls_storage: "c.toml" is not a folder`},
		{"tls_email = 'a@example.com'\n" + site + pair, "1:1: tls_email is for tls_auto, which no site has"},
		{"tls_email = 'admin'\n" + site + "tls_auto = true\n", "1:13: tls_email: want an address such as admin@example.com"},
		{"tls_ca = 'http://ca.example'\n" + site + "tls_auto = true\n", "1:10: tls_ca: want the https URL of an ACME directory"},
		{"tls_ca = 'https://ca.example'\ntls_staging = true\n" + site + "tls_auto = true\n", "2:1: tls_staging and tls_ca contradict each other"},
	} {
		_, _, err := load(t, tt.text)
		ps, _ := errors.AsType[Problems](err)
		if len(ps) != 1 || !strings.Contains(ps[0].Error(), "c.toml:"+tt.want) {
			t.Errorf("%q:\ngot  %v\nwant %s", tt.text, err, tt.want)
		}
	}
}
