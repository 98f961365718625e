package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/internal/testing/redistest"
)

const limitsFile = `
[[site]]
hosts = "a.example"
root = "www"
[site.limits]
rate = "1/h burst 3"
[[site.route]]
path = "/shared"
respond = 200
[[site.route]]
path = "/own"
respond = 200
[site.route.limits]
rate = "1/h burst 2"
[[site.route]]
path = "/free"
respond = 200
[site.route.limits]
rate = []
[[site.route]]
path = "/closed"
respond = 200
deny = "all"
[[site.route]]
path = "/small"
respond = 200
[site.route.limits]
rate = []
body = 4
[[site.route]]
path = "/big/{path...}"
root = "big"
[site.route.limits]
rate = []
concurrent = 1
`

func limitsFolder(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{"www/f": "file", "big/large": strings.Repeat("x", 32<<20), "big/f": "small"}
}

func wantStatuses(t *testing.T, base string, targets ...string) {
	t.Helper()
	for _, target := range targets {
		target, want, _ := strings.Cut(target, " ")
		r := request(t, base, "GET", target)
		if fmt.Sprint(r.status) != want || (r.status == 429) != (r.header.Get("Retry-After") != "") {
			t.Errorf("%s: %d, want %s; Retry-After %q", target, r.status, want, r.header.Get("Retry-After"))
		}
	}
}

func TestLimitsRate(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, limitsFile, limitsFolder(t))
	base := p.urls[0]
	wantStatuses(t, base, "/closed 403", "/closed 403", "/closed 403", "/closed 403", // not counted
		"/f 200", "/shared 200", "/f 200", "/f 429", "/shared 429", "/own 200", "/own 200", "/own 429", "/free 200")
	p.reload()
	wantStatuses(t, base, "/f 429", "/own 429", "/free 200")
}

// Processes with the same file share what is counted, and only the routes with a rate wait
// for the store.
func TestLimitsRateStore(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	file := "[rate_limit]\nstore = '" + srv.URL() + "'\ntimeout = '1m'\n" + limitsFile
	p, _ := startConfig(t, file, limitsFolder(t))
	q, _ := startConfig(t, file, limitsFolder(t))
	wantStatuses(t, p.urls[0], "/f 200", "/own 200", "/shared 200")
	wantStatuses(t, q.urls[0], "/own 200", "/f 200", "/f 429", "/own 429", "/free 200")
	wantStatuses(t, p.urls[0], "/shared 429", "/own 429", "/free 200")
	q.reload()
	wantStatuses(t, q.urls[0], "/shared 429")
}

func TestLimitsBody(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, limitsFile, limitsFolder(t))
	for body, want := range map[string]int{"1234": 200, "12345": 413} {
		c := dial(t, p.urls[0])
		fmt.Fprintf(c, "POST /small HTTP/1.1\r\nHost: a.example\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Close(); res.StatusCode != want {
			t.Errorf("%s: %d, want %d", body, res.StatusCode, want)
		}
	}
}

// A download counts until it has been sent, or its client has left.
func TestLimitsConcurrent(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, limitsFile, limitsFolder(t))
	c := dial(t, p.urls[0])
	defer c.Close()
	r := bufio.NewReader(c)
	// On one connection: on another a request may come before the server knows that the
	// response before has been sent.
	for _, name := range []string{"f", "f", "f", "large"} {
		fmt.Fprintf(c, "GET /big/%s HTTP/1.1\r\nHost: a.example\r\n\r\n", name)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(name, res, err)
		}
		if name == "f" {
			io.Copy(io.Discard, res.Body)
		}
	}
	wantStatuses(t, p.urls[0], "/big/f 429", "/free 200")
	c.Close()
	until(t, func() bool { return request(t, p.urls[0], "GET", "/big/f").status == 200 })
}

// Below the limits a file is served on the fast path, as without them.
func TestLimitsAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "www"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "www", "f"), "file")
	const site = "[[site]]\nhosts = '*'\nroot = 'www'\n"
	count := func(text string) float64 {
		all := openSites(t, loadConfig(t, dir, text))
		for range 3 { // a file is loaded on the ordinary path
			serveTarget(all, "h", &url.URL{Path: "/f"}, "/f")
		}
		var x direct.Exchange
		req := wire.Request{Method: "GET", Target: []byte("/f"), Path: []byte("/f"), Host: []byte("h"), RemoteAddr: "192.0.2.1:1234", Fields: wire.FieldsOf(nil)}
		ask := func() {
			x.Wire().Reset(req)
			if !all.ServeDirect(&x) || x.Wire().Status() != 200 {
				t.Error("not direct, or refused")
			}
			a := x.Wire().Finish()
			if a.File.Done != nil {
				a.File.Done()
			}
			if a.Watcher != nil {
				a.Watcher.Sent(wire.Delivery{})
			}
		}
		// What is left of a rate is formatted once for each number, for all clients.
		for range 150 {
			ask()
		}
		req.RemoteAddr = "192.0.2.2:1234"
		return testing.AllocsPerRun(100, ask)
	}
	without := count(site)
	for _, rest := range []string{
		"[site.limits]\nconcurrent = 2\nbody = '1MB'\nbody_timeout = '9s'\nresponse_timeout = '9s'\nbandwidth = '1kB'\n",
		"[site.limits]\nrate = '100000/s'\nconcurrent = 2\nbody = '1MB'\n",
		"[site.limits]\nrate = ['1000/s', '10000/h burst 500']\nconcurrent = 2\nbody = '1MB'\n",
		"allow = '192.0.2.0/24'\nheaders = { X-A = 'b' }\n[site.limits]\nrate = ['1000/s']\nconcurrent = 2\n",
	} {
		if n := count(site + rest); n > without {
			t.Errorf("%q: %v allocations, and %v without", rest, n, without)
		}
	}
}

// Connections are closed by the times of the file, and a reload says that it keeps them.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	const site = "[[site]]\nhosts = '*'\nroot = 'www'\n"
	p, file := startConfig(t, "head_timeout = '1s'\nidle_timeout = '1s'\n"+site, map[string]string{"www/f": "x"})
	for text, want := range map[string]int{"GET /f HTTP/1.1\r\nHost": 408, "GET /f HTTP/1.1\r\nHost: h\r\n\r\n": 200} {
		c := dial(t, p.urls[0])
		defer c.Close()
		fmt.Fprint(c, text)
		r := bufio.NewReader(c)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if io.Copy(io.Discard, res.Body); res.StatusCode != want {
			t.Errorf("%q: %d, want %d", text, res.StatusCode, want)
		}
		if _, err := r.ReadByte(); err != io.EOF { // long before dial's deadline
			t.Errorf("%q: %v", text, err)
		}
	}
	write(t, file, "head_timeout = '2s'\n"+site)
	p.reload()
	until(t, func() bool {
		return strings.Contains(p.stderr.String(), "head_timeout and idle_timeout stay as they were")
	})
}
