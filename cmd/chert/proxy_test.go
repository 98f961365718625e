package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/testing/redistest"
)

// forwarded requests a page with these lines of X-Forwarded-For.
func forwarded(t *testing.T, c *http.Client, url string, lines ...string) int {
	t.Helper()
	req, err := http.NewRequest("GET", url+"f", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["X-Forwarded-For"] = lines
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// With trusted proxies the client is the one that they report, read from the
// right; entries further left, which it has written itself, give it no new
// bucket. The log has its address.
func TestTrustedProxies(t *testing.T) {
	needSignals(t)
	t.Parallel()
	flags := []string{"--trusted-proxy", "127.0.0.1", "--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "fd00::/8"}
	t.Run("flags", func(t *testing.T) {
		t.Parallel()
		trustedProxies(t, "trusted_proxies = '192.0.2.1'\n", flags) // flags stand above the file
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		trustedProxies(t, "trusted_proxies = ['127.0.0.1', '10.0.0.0/8', 'fd00::/8']\n", nil)
	})
	t.Run("redis", func(t *testing.T) { // and so on the ordinary path
		t.Parallel()
		trustedProxies(t, "", append(flags[:len(flags):len(flags)], "--rate-store", redistest.Start(t).URL(), "--rate-timeout", "1m"))
	})
}

func trustedProxies(t *testing.T, file string, args []string) {
	p, _ := startConfig(t, file+"[[site]]\nhosts = '*'\nroot = 'www'\n", map[string]string{"www/f": "x"},
		append([]string{"--log", "json", "--rate-limit", "1/h burst 2"}, args...)...)
	c := newClient(t, "")
	var want []string
	for i, tt := range []struct {
		status int
		remote string
		lines  []string
	}{
		{200, "198.51.100.7", []string{"198.51.100.7"}},
		{200, "198.51.100.7", []string{"203.0.113.1, 198.51.100.7"}},
		{429, "198.51.100.7", []string{"203.0.113.2, 198.51.100.7, 10.1.2.3"}},
		{429, "198.51.100.7", []string{"203.0.113.3", "198.51.100.7", "10.1.2.3, fd00::5"}},
		{429, "198.51.100.7", []string{"127.0.0.1, 198.51.100.7"}}, // it would like to be a proxy
		{200, "198.51.100.8", []string{"198.51.100.7, 198.51.100.8"}},
		{200, "2001:db8::1", []string{"2001:db8::1"}},
		{200, "2001:db8::2", []string{"2001:db8::2, 10.0.0.1"}},
		{429, "2001:db8::3", []string{"[2001:db8::3]:99999, 2001:db8::3"}}, // the same /64
		{200, "10.1.1.1", []string{"nonsense, 10.1.1.1"}},
	} {
		if got := forwarded(t, c, p.urls[0], tt.lines...); got != tt.status {
			t.Errorf("%d: %q: got %d, want %d", i, tt.lines, got, tt.status)
		}
		want = append(want, tt.remote)
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	var got []string
	for line := range strings.Lines(p.stderr.String()) {
		r, err := parseJSON(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, r.Remote)
	}
	// A line is written after its response was sent, so the next request's may
	// come before it.
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("logged\n%q, want\n%q", got, want)
	}
}

// Proxies that are not configured are not trusted.
func TestUntrustedProxies(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f": "x"})
	for _, args := range [][]string{nil, {"--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "unix"}} {
		p := start(t, append([]string{dir, "--listen", "127.0.0.1:0", "--rate-limit", "1/h burst 1"}, args...)...)
		c := newClient(t, "")
		for i, want := range []int{200, 429, 429} {
			if got := forwarded(t, c, p.urls[0], "198.51.100."+string(rune('1'+i))); got != want {
				t.Errorf("%q: %d: got %d, want %d", args, i, got, want)
			}
		}
	}
}

// A proxy on a unix socket has no address to configure.
func TestTrustedUnixProxy(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	p := start(t, folder(t, map[string]string{"f": "x"}), "--listen", "unix:"+sock, "--rate-limit", "1/h burst 1", "--trusted-proxy", "unix")
	c := newClient(t, sock)
	for i, tt := range []struct {
		line string
		want int
	}{{"198.51.100.7", 200}, {"198.51.100.8", 200}, {"9.9.9.9, 198.51.100.7", 429}} {
		if got := forwarded(t, c, "http://localhost/", tt.line); got != tt.want {
			t.Errorf("%d: got %d, want %d; %q", i, got, tt.want, p.urls)
		}
	}
}

func TestTrustedProxyErrors(t *testing.T) {
	t.Parallel()
	for value, why := range map[string]string{
		"proxy.example":      `want an address, a prefix such as "10.0.0.0/8", or "unix"`,
		"10.0.0.0/33":        `want an address, a prefix such as "10.0.0.0/8", or "unix"`,
		"fe80::1%eth0":       `want an address, a prefix such as "10.0.0.0/8", or "unix"`,
		"::ffff:10.0.0.0/96": "write an IPv4 address without the ::ffff: before it",
		"0.0.0.0/0":          "that is every address, so any client could forge its own; name the proxies",
		"::/0":               "that is every address, so any client could forge its own; name the proxies",
	} {
		oneLine(t, exitUsage, `chert: invalid argument "`+value+`" for "--trusted-proxy" flag: `+why+`; see "chert serve --help"`,
			"serve", "--trusted-proxy", value)
	}
}
