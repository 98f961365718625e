package config

import (
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/ratelimit"
)

func TestLimitsProblems(t *testing.T) {
	t.Parallel()
	const site = "[[site]]\nhosts = '*'\nroot = 'www'\n"
	for _, tt := range []struct{ name, text, want string }{
		{"type", site + "limits = 1\n", "4:10: limits wants a table, not a number"},
		{"rate", site + "[site.limits]\nrate = 'x'\n", `5:8: rate: rate "x": want a rate such as "100/s"`},
		{"one of two", site + "[site.limits]\nrate = ['1/s', '1/x']\n", `5:16: rate: rate "1/x": there is no unit "x"`},
		{"rate's type", site + "[site.limits]\nrate = 10\n", "5:8: rate wants a string or a list of strings, not a number"},
		{"body", site + "[site.limits]\nbody = 'much'\n", "5:8: body wants a size such as 64MiB"},
		{"negative body", site + "[site.limits]\nbody = -1\n", "5:8: body wants a size such as 64MiB"},
		{"concurrent", site + "[site.limits]\nconcurrent = -1\n", "5:14: concurrent wants a number from 0 to 1048576"},
		{"concurrent's type", site + "[site.limits]\nconcurrent = '5'\n", "5:14: concurrent wants a number, not a string"},
		{"unknown", site + "[site.limits]\nbodi = 1\n", `5:1: unknown key "bodi" in [site.limits]; did you mean "body"?`},
		{"bandwidth", site + "[site.limits]\nbandwidth = 'fast'\n", "5:13: bandwidth wants a size such as 64MiB"},
		{"bandwidth's type", site + "[site.limits]\nbandwidth = true\n", "5:13: bandwidth wants a size such as 64MiB"},
		{"too little bandwidth", site + "[site.limits]\nbandwidth = 999\n", "5:13: bandwidth is in bytes a second, and wants 1kB at least"},
		{"after", site + "[site.limits]\nbandwidth = '1MB'\nbandwidth_after = -1\n", "6:19: bandwidth_after wants a size"},
		{"after nothing", site + "[site.limits]\nbandwidth_after = '1MB'\n", "5:19: bandwidth_after is for a bandwidth, and there is none"},
		{"after none", site + "[site.limits]\nbandwidth = 0\nbandwidth_after = 1\n", "6:19: bandwidth_after is for a bandwidth, and there is none"},
		{"body's time", site + "[site.limits]\nbody_timeout = '10'\n", `5:16: body_timeout wants a time such as "30s"`},
		{"too short for a body", site + "[site.limits]\nbody_timeout = '999ms'\n", `5:16: body_timeout wants 1s at least, or "0s" for no limit`},
		{"response's time", site + "[site.limits]\nresponse_timeout = 10\n", `5:20: response_timeout wants a time such as "30s"`},
		{"too short for a response", site + "[site.limits]\nresponse_timeout = '1ms'\n", `5:20: response_timeout wants 1s at least, or "0s" for no limit`},
		{"a time of the site", site + "body_timeout = '10s'\n", `4:1: unknown key "body_timeout" in [[site]]; it is a key of [defaults.limits] or [site.limits]`},
		{"nginx's", site + "limit_rate = '1m'\n", `4:1: unknown key "limit_rate" in [[site]]; want [site.limits] with bandwidth`},
		{"nginx's time", site + "send_timeout = '60s'\n", `4:1: unknown key "send_timeout" in [[site]]; want [site.limits] with response_timeout`},
		{"Caddy's", site + "[site.limits]\nread_body = '10s'\n", `5:1: unknown key "read_body" in [site.limits]; want [site.limits] with body_timeout`},
		{"of a route", site + "[[site.route]]\npath = '/a'\nrespond = 200\n[site.route.limits]\nrate = ''\n", "8:8: rate: "},
		{"of the defaults", "[defaults.limits]\nrate = ''\n" + site, "2:8: rate: "},
		{"of redirects", "[[redirect]]\nhosts = '*'\nto = 'https://x/'\n[redirect.limits]\nbody = 1\n", `4:11: unknown key "limits" in [[redirect]]`},
		{"a store for nothing", "[rate_limit]\nstore = 'redis://h'\n" + site + "[site.limits]\nrate = []\n", "1:2: [rate_limit] has no limit"},
	} {
		if got := problemsOf(t, tt.text); len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Each key by itself overrides the outer one, and what is inherited is counted together.
func TestLimitsInherit(t *testing.T) {
	t.Parallel()
	_, cfg, err := load(t, `
[rate_limit]
store = "redis://h"
[defaults.limits]
rate = "1/s"
body = "1MB"
[[site]]
hosts = ["b.example", "a.example"]
root = "www"
[site.limits]
concurrent = 3
[[site.route]]
path = "/same"
respond = 200
[[site.route]]
path = "/own"
methods = ["GET"]
respond = 200
[site.route.limits]
rate = ["2/s", "9/m"]
[[site.route]]
path = "/none"
respond = 200
[site.route.limits]
rate = []
body = 0
concurrent = 0
[[site]]
hosts = "other.example"
root = "www"
[site.limits]
body = "2kB"
[[site]]
hosts = "slow.example"
root = "www"
[site.limits]
bandwidth = "1MB"
bandwidth_after = "2MB"
body_timeout = "3s"
response_timeout = "4m"
[[site.route]]
path = "/after"
respond = 200
[site.route.limits]
bandwidth_after = 0
body_timeout = "5s"
[[site.route]]
path = "/none"
respond = 200
[site.route.limits]
bandwidth = 0
body_timeout = "0s"
response_timeout = "0s"
`)
	if err != nil {
		t.Fatal(err)
	}
	a, b := cfg.Sites[0], cfg.Sites[1]
	same, own, none := a.Routes[0].Limits, a.Routes[1].Limits, a.Routes[2].Limits
	if a.Limits.Body != 1e6 || a.Limits.Concurrent.Max != 3 || same != a.Limits {
		t.Errorf("%+v, %+v", a.Limits, same)
	}
	if none != (Limits{}) {
		t.Errorf("%+v", none)
	}
	if len(own.Rate.Rates) != 2 || own.Concurrent != a.Limits.Concurrent || own.Body != 1e6 {
		t.Errorf("%+v", own)
	}
	if b.Limits.Body != 2000 || b.Limits.Concurrent != nil || b.Limits.Rate == a.Limits.Rate {
		t.Errorf("%+v", b.Limits)
	}
	for i, want := range []Limits{
		{Body: 1e6, Bandwidth: Bandwidth{1e6, 2e6}, BodyTime: 3 * time.Second, ResponseTime: 4 * time.Minute},
		{Body: 1e6, Bandwidth: Bandwidth{1e6, 0}, BodyTime: 5 * time.Second, ResponseTime: 4 * time.Minute},
		{Body: 1e6, Bandwidth: Bandwidth{0, 2e6}},
	} {
		got := cfg.Sites[2].Limits
		if i > 0 {
			got = cfg.Sites[2].Routes[i-1].Limits
		}
		if got.Rate = nil; got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	names := make(map[string]bool)
	for _, r := range []*SiteRate{a.Limits.Rate, own.Rate, b.Limits.Rate} {
		names[r.Name] = true
		if _, err := ratelimit.NewLimit(r.Name+"-1000", r.Rates[0], ratelimit.NewMemory(nil)); err != nil {
			t.Error(err)
		}
	}
	if len(names) != 3 {
		t.Errorf("two have the same name: %v", names)
	}
	if counterName(a.Hosts[:1], "", nil, nil) == a.Limits.Rate.Name {
		t.Error("the name does not depend on all hosts")
	}
	a.Hosts[0], a.Hosts[1] = a.Hosts[1], a.Hosts[0]
	if counterName(a.Hosts, "", nil, nil) != a.Limits.Rate.Name {
		t.Error("the name depends on the order of hosts")
	}
}

// Routes that conditions choose between count apart, as others do, and by the same names however they are written.
func TestCountersOfConditions(t *testing.T) {
	t.Parallel()
	const other = "route-18c95979fde4b332" // stays, also over versions of chert
	name := func(condition string) string {
		t.Helper()
		const route = "[[site.route]]\npath = '/a'\nrespond = 200\nlimits.rate = '1/s'\n"
		_, cfg, err := load(t, "[[site]]\nhosts = '*'\n"+route+condition+"\n"+route)
		if err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
		routes := cfg.Sites[0].Routes
		if got := routes[1].Limits.Rate.Name; got != other {
			t.Errorf("%s: the other route has %s, want %s", condition, got, other)
		}
		return routes[0].Limits.Rate.Name
	}
	seen := map[string]string{other: "the other route"}
	for _, tt := range []struct{ condition, same string }{
		{"header = { X-A = '1', x-b = '*' }", "header = { X-B = '*', x-a = '1' }"},
		{"header = { X-A = '2', X-B = '*' }", ""},
		{"cookie = { X-A = '1', X-B = '*' }", ""},
		{"query = { X-A = '1', X-B = '*' }", "query = { X-B = '*', X-A = '1' }"},
		{"query = { X-A = '1' }\ncookie = { b = '1' }", "cookie = { b = '1' }\nquery = { X-A = '1' }"},
		{"from = ['192.0.2.1', '2001:db8::/32']", "from = ['2001:db8:1::/32', '192.0.2.1/32']"},
		{"from = ['192.0.2.1', '2001:db8::/32', 'unix']", ""},
	} {
		got := name(tt.condition)
		if before, ok := seen[got]; ok {
			t.Errorf("%s counts with %s", tt.condition, before)
		}
		seen[got] = tt.condition
		if tt.same != "" && name(tt.same) != got {
			t.Errorf("%s does not count with %s", tt.same, tt.condition)
		}
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	const site = "[[site]]\nhosts = '*'\nroot = 'www'\n"
	_, cfg, err := load(t, "head_timeout = '5s'\nidle_timeout = '1m30s'\n"+site)
	if err != nil || cfg.Timeouts != (Timeouts{5 * time.Second, 90 * time.Second}) {
		t.Errorf("%+v, %v", cfg, err)
	}
	for text, want := range map[string]string{
		"head_timeout = 5\n" + site:         `1:16: head_timeout wants a time such as "30s"`,
		"idle_timeout = '0s'\n" + site:      "1:16: idle_timeout wants 1s at least",
		"head_timeout = '-1s'\n" + site:     `1:16: head_timeout wants a time such as "30s"`,
		site + "head_timeout = '5s'\n":      `4:1: unknown key "head_timeout" in [[site]]; it is a key of the file itself`,
		site + "keepalive_timeout = '5s'\n": `4:1: unknown key "keepalive_timeout" in [[site]]; want idle_timeout = "75s"`,
	} {
		if got := problemsOf(t, text); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
