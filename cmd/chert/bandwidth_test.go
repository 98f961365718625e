package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const bandwidthFile = `
log = "json"
[[site]]
hosts = "a.example"
root = "www"
compression = false
[site.limits]
bandwidth = "400kB"
bandwidth_after = "100kB"
rate = "2/h burst 2"
[[site.route]]
path = "/free/{path...}"
root = "www"
[site.route.limits]
bandwidth = 0
rate = []
[[site.route]]
path = "/brief/{path...}"
root = "www"
[site.route.limits]
bandwidth = 0
rate = []
response_timeout = "1s"
`

// Downloads have the bandwidth of their site or route, and are charged once by the rate.
func TestLimitsBandwidth(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789", 25_000)
	p, _ := startConfig(t, bandwidthFile, map[string]string{"www/large": large})
	for range 2 {
		began := time.Now()
		r := request(t, p.urls[0], "GET", "/large")
		// 100 kB and an eighth of a second are not limited.
		if d := time.Since(began); r.status != 200 || r.body != large || d < 250*time.Millisecond {
			t.Errorf("%d, %d bytes after %v", r.status, len(r.body), d)
		}
	}
	wantStatuses(t, p.urls[0], "/large 429", "/free/large 200")
}

// A client that accepts nothing loses its connection, and its line in the log says so; others
// keep theirs.
func TestLimitsResponseTime(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, bandwidthFile, map[string]string{"www/huge": strings.Repeat("x", 32<<20), "www/f": "file"})
	c := dial(t, p.urls[0])
	fmt.Fprint(c, "GET /brief/huge HTTP/1.1\r\nHost: a.example\r\n\r\n")
	kept := dial(t, p.urls[0])
	r := bufio.NewReader(kept)
	get := func() {
		t.Helper()
		fmt.Fprint(kept, "GET /brief/f HTTP/1.1\r\nHost: a.example\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); string(b) != "file" || err != nil {
			t.Errorf("got %q, %v", b, err)
		}
	}
	get()
	until(t, func() bool { return strings.Contains(p.stderr.String(), `"aborted":true`) })
	get() // the time of the first response has passed
	if n, err := io.Copy(io.Discard, c); n >= 32<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// deadlines is a response writer that notes those that are set.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// Sites and routes have their own times for bodies and responses.
func TestLimitsTimes(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"www/f": "file"})
	all := openSites(t, loadConfig(t, dir, `
[defaults.limits]
response_timeout = "2h"
[[site]]
hosts = "a.example"
root = "www"
[site.limits]
body_timeout = "1h"
[[site.route]]
path = "/own"
respond = 200
[site.route.limits]
body_timeout = "3h"
response_timeout = "4h"
[[site.route]]
path = "/none"
respond = 200
[site.route.limits]
body_timeout = "0s"
response_timeout = "0s"
`))
	for _, tt := range []struct {
		path        string
		body        string
		read, write time.Duration // 0: none
	}{
		{"/f", "x", time.Hour, 2 * time.Hour},
		{"/f", "", 0, 2 * time.Hour},
		{"/own", "x", 3 * time.Hour, 4 * time.Hour},
		{"/none", "x", 0, 0},
	} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest("POST", tt.path, strings.NewReader(tt.body))
		r.Host = "a.example"
		before := time.Now()
		all.ServeHTTP(w, r)
		after := time.Now()
		for what, d := range map[string]struct {
			got  time.Time
			want time.Duration
		}{"read": {w.read, tt.read}, "write": {w.write, tt.write}} {
			if d.want == 0 && !d.got.IsZero() ||
				d.want != 0 && (d.got.Before(before.Add(d.want)) || d.got.After(after.Add(d.want))) {
				t.Errorf("%s %q: the %s deadline is in %v, want %v", tt.path, tt.body, what, d.got.Sub(before), d.want)
			}
		}
	}
}

// check --explain names the limits, and does not wait for the bandwidth.
func TestExplainBandwidth(t *testing.T) {
	t.Parallel()
	file := filepath.Join(folder(t, map[string]string{"www/large": strings.Repeat("x", 4<<20)}), "c.toml")
	write(t, file, "[[site]]\nhosts = '*'\nroot = 'www'\n[site.limits]\nbandwidth = '1kB'\nbody_timeout = '9s'\nresponse_timeout = '9s'\n")
	code, stdout, stderr := inProcess(t, "check", file, "--explain", "http://h/large")
	var got []string
	for line := range strings.Lines(stdout) {
		if line[0] != ' ' {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
	}
	want := "body_timeout passed|response_timeout passed|bandwidth, no wait passed|"
	if all := strings.Join(got, "|"); code != 0 || !strings.Contains(all, want) || !strings.HasSuffix(all, "response 200 OK, 4194304 bytes") {
		t.Errorf("exit %d, %q, %s", code, all, stderr)
	}
}
