package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chert-http/chert/admin"
	"github.com/chert-http/chert/internal/interval"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// fake is a server whose routes and targets a client has chosen.
type fake struct {
	asked atomic.Int64
	since time.Time
}

func (f *fake) Stats() (s stats.Snapshot) {
	n := uint64(f.asked.Add(1))
	s.At, s.Since = time.Now(), f.since
	s.Requests = []stats.Requests{{Class: 2, N: 1000 * n}}
	s.Running, s.Waiting = 3, 2
	s.Connections.Open = 17
	s.Wait.Observe(80*time.Millisecond, n)
	s.Total.Observe(time.Millisecond, 1000*n)
	for i, p := range []string{"GET /slow", "GET /fast", "GET /\x1b[2J\u202e" + strings.Repeat("long", 100)} {
		r := stats.Route{Pattern: p, Classes: [6]uint64{2: n * uint64(1+i)}, Ways: [stats.Ways]uint64{n * uint64(1+i)}}
		r.Duration.Observe(time.Second>>i, n)
		r.Handler.Observe(time.Second>>i, n)
		s.Routes = append(s.Routes, r)
	}
	s.Loops = make([]stats.Loop, 40)
	s.Syscalls = []stats.Count{{Name: "read", N: 500 * n}}
	return s
}

func (f *fake) RunningRequests(int) []stats.Request {
	return []stats.Request{{Method: "GET", Target: "/\x1b]0;title\a", Began: time.Now().Add(-time.Minute), Stage: "handler"}}
}

func (f *fake) OpenConnections(int) []stats.Connection {
	return []stats.Connection{{Peer: "192.0.2.9:1", State: "idle", Since: time.Now().Add(-time.Minute)}}
}

func serve(t *testing.T) (*Client, *httptest.Server) {
	t.Helper()
	ts := httptest.NewServer(admin.New(&fake{since: time.Now().Add(-time.Hour)}, &admin.Options{
		Upstreams: func() []proxy.UpstreamStatus {
			return []proxy.UpstreamStatus{{Name: "app", Servers: []proxy.ServerStatus{{Addr: "10.0.0.1:8080", State: "up"}}}}
		},

		Setup: func() admin.Setup {
			return admin.Setup{Reload: &admin.Reload{Error: "no such folder"}, Sites: []admin.Site{{Hosts: []string{"a.example"}}}}
		}}))
	t.Cleanup(ts.Close)
	c, err := NewClient(ts.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, ts
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ where, base string }{
		{"", "http://127.0.0.1:9080/"},
		{"9081", "http://127.0.0.1:9081/"},
		{":9081", "http://127.0.0.1:9081/"},
		{"server:9081", "http://server:9081/"},
		{"[::1]:9081", "http://[::1]:9081/"},
		{"http://server", "http://server/"},
		{"https://server/admin?x#y", "https://server/admin/"},
		{"unix:/run/s", "http://localhost/"},
		{"server", ""},
		{"70000", ""},
		{"ftp://server/", ""},
		{"unix:", ""},
		{"http://", ""},
	} {
		c, err := NewClient(tt.where)
		if (err != nil) != (tt.base == "") || err == nil && c.base != tt.base {
			t.Errorf("%q: %+v %v, want %q", tt.where, c, err, tt.base)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	nobody := freeport.Addr(t)
	for _, tt := range []struct {
		why     string
		handler http.HandlerFunc
		want    string
	}{
		{"nothing listens", nil, "cannot reach http://" + nobody + "/: connect: connection refused; is a server running with --admin?"},
		{"404", http.NotFound, "is not the admin address of a chert server: /stats was answered 404"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "/stats is not JSON"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "answered 302"},
		{"other JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"status": "ok"}`)
		}, "is not chert's"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `[]`)
		}, "cannot be read"},
		{"a refusal", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not this\x1b[2J name", 421) }, `refuses the request: not this\x1b[2J name`},
		{"another protocol", func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(c, "220 mail.example\r\n")
			c.Close()
		}, "is not the admin address"},
	} {
		where := nobody
		if tt.handler != nil {
			ts := httptest.NewServer(tt.handler)
			defer ts.Close()
			where = ts.URL
		}
		c, err := NewClient(where)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Sample(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.why, err, tt.want)
		}
	}
}

// What is no terminal gets lines, without anything that a terminal would interpret.
func TestBlocks(t *testing.T) {
	t.Parallel()
	c, _ := serve(t)
	var out bytes.Buffer
	if err := Run(t.Context(), c, Options{Every: time.Millisecond, Once: true}, nil, &out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"chert at " + c.Name, "requests ", "17 open", "! 2 requests wait", "STAGE", "LOOP", `GET /\x1b[2J\u202elong`, "inline 100%", "system calls read 0.50 for a request"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, b := range []byte(text) {
		if b < ' ' && b != '\n' || b >= 0x7f {
			t.Fatalf("byte %#x in\n%s", b, text)
		}
	}
	// Block after block, until the context ends.
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, c, Options{Every: time.Millisecond}, nil, w) }()
	buf := make([]byte, 1<<16)
	for range 3 {
		n, err := r.Read(buf)
		if err != nil || !strings.Contains(string(buf[:n]), "chert at ") {
			t.Fatalf("%v %q", err, buf[:n])
		}
	}
	cancel()
	go io.Copy(io.Discard, r)
	if err := servertest.Await(t, done, "the end"); err != nil {
		t.Error(err)
	}
	w.Close()
}

// Whatever the size of the terminal: no line is wider, none is too many, and the keys
// stay visible.
func TestScreenSizes(t *testing.T) {
	t.Parallel()
	c, _ := serve(t)
	s := newScreen(c, Options{}, nil, nil)
	first, err := c.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.before = first
	for v := range views {
		s.show.view = v
		s.take(s.fetch(t.Context(), v))
		if s.state != "" {
			t.Fatal(s.state)
		}
		for _, size := range [][2]int{{80, 24}, {200, 60}, {20, 5}, {1, 1}, {132, 2}} {
			lines := s.show.screen(size[0], size[1], "")
			if len(lines) != size[1] {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			for _, l := range lines {
				if utf8.RuneCountInString(l.text) > size[0] || strings.ContainsAny(l.text, "\x1b\a\u202e") {
					t.Errorf("%v: %q", size, l.text)
				}
			}
			if size[0] >= 80 && !strings.Contains(lines[len(lines)-1].text, "q quit") {
				t.Errorf("%v: the last line is %q", size, lines[len(lines)-1].text)
			}
		}
		// The smallest usual one shows the routes' names, and findings to their end.
		small := fmt.Sprint(s.show.screen(80, 30, ""))
		if want := []string{"GET /fast", "title", "192.0.2.9:1", "10.0.0.1:8080", "no such folder"}[v]; !strings.Contains(small, want) || !strings.Contains(small, "(debug/requests)") || !strings.Contains(small, " LAG ") {
			t.Errorf("view %v in 80 columns:\n%s", viewNames[v], small)
		}
		text := fmt.Sprint(s.show.screen(300, 100, ""))
		if want := []string{"GET /fast", "title", "192.0.2.9:1", "10.0.0.1:8080", "no such folder"}[v]; !strings.Contains(text, want) {
			t.Errorf("view %v has no %q", viewNames[v], want)
		}
	}
}

func TestUpstreams(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	state := func(requests uint64) Upstreams {
		return Upstreams{at, []proxy.UpstreamStatus{{Name: "app", Balance: "least", Queue: 1, MaxQueue: 8, Panic: true,
			Retries: proxy.RetryStatus{Retries: 2, Limit: 30, Refused: 1}, Servers: []proxy.ServerStatus{
				{Addr: "10.0.0.1:8080", State: "up", Check: "passing", InFlight: 3, MaxRequests: 10, Requests: requests,
					Reused: requests / 2, Latency: 2 * time.Millisecond, Idle: 4},
				{Addr: "10.0.0.2:8080", State: "ejected", Check: "unchecked", Cause: "5 failures: \x1b", Failures: 5,
					Until: at.Add(7 * time.Second)},
				{Addr: "[::1]:80", State: "up", Check: "unchecked", Backup: true, Draining: true},
			}}}, []stats.Store{{Name: "topics", Streams: 12, Read: requests, Published: requests / 2, Waiting: 2, Gaps: 1},
			{Name: "rooms\x1b", Away: true}}}
	}
	before, now := state(100), state(300)
	now.At = at.Add(2 * time.Second)
	got := upstreams(&now, &before)
	for i, want := range []line{
		{"UPSTREAM, SERVER", head},
		{"app: least; 1 of at most 8 wait; 2 retries of at most 30 in 10 s, 1 not permitted so far; too few servers are up, so ejections are ignored", warn},
		{"  10.0.0.1:8080                  100        0     2 ms      3/10     4    50% up, checks passing", normal},
		{"  10.0.0.2:8080                    0        5        -         0     0      - ejected: 5 failures: \\x1b, for 5s", warn},
		{"  [::1]:80                         0        0        -         0     0      - draining, backup", normal},
		{"STORE                         READ/S STORED/S  STREAMS  WAITING FAILED   CUTS   GAPS STATE", head},
		{"  topics                         100       50       12        2      0      0      1 connected", normal},
		{"  rooms\\x1b                        0        0        0        0      0      0      0 away", warn},
	} {
		if i >= len(got) || !strings.HasPrefix(got[i].text, want.text) || got[i].style != want.style {
			t.Errorf("line %d: %q, want %q", i, got[min(i, len(got)-1)], want)
		}
	}
	if got := upstreams(&Upstreams{}, &before); len(got) != 2 || got[1].text != "nothing is forwarded" {
		t.Errorf("without upstreams: %q", got)
	}
}

func TestSites(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.Local)
	s := &admin.Setup{Config: `"/etc/chert.toml"`, Loaded: now.Add(-time.Hour), Sites: []admin.Site{
		{Hosts: []string{"a.example", "b.example"}, What: "/srv\x1b[2J", Certificate: "by ACME", Expires: now.Add(30 * 24 * time.Hour)},
		{Hosts: []string{"c.example"}, What: "redirects", Certificate: "a file", Expires: now.Add(6 * 24 * time.Hour)},
		{Hosts: []string{"d.example"}, What: "3 routes", Certificate: "a file", Expires: now.Add(-time.Second)},
		{Hosts: []string{"*"}, What: "/srv"},
		{Hosts: []string{"e.example"}, What: "/srv", Certificate: "by ACME"},
	}}
	got := sites(s, now)
	want := []line{
		{`configured   "/etc/chert.toml", loaded 2026-11-26 11:00:00`, normal},
		{"EXPIRES IN   CERTIFICATE                  HOSTS                          SERVES", head},
		{"30 d         by ACME                      a.example, b.example           /srv", normal},
		{"6 d          a file                       c.example                      redirects", warn},
		{"expired      a file                       d.example                      3 routes", warn},
		{"-            -                            *                              /srv", normal},
		{"-            by ACME                      e.example                      /srv", normal},
	}
	if len(got) != len(want) {
		t.Fatal(got)
	}
	for i := range want {
		if i == 2 {
			if strings.Contains(got[i].text, "\x1b") || !strings.HasPrefix(got[i].text, want[i].text) {
				t.Errorf("%q", got[i].text)
			}
			continue
		}
		if got[i] != want[i] {
			t.Errorf("got  %q\nwant %q", got[i], want[i])
		}
	}
	s.Reload = &admin.Reload{At: now}
	if n := len(sites(s, now)); n != len(want) {
		t.Errorf("a reload that has succeeded has a line: %d", n)
	}
	s.Reload.Error = "c.toml:1:1: no\nsuch key"
	if got := sites(s, now)[1]; got.style != warn || strings.Contains(got.text, "\n") ||
		!strings.HasPrefix(got.text, "reload       of 2026-11-26 12:00:00 failed: c.toml:1:1: no") {
		t.Errorf("%q", got.text)
	}
}

// The first screen, and the first report of another process, have one sample, and so no rates: they say so, and show
// neither averages since the start nor 0.
func TestMeasuring(t *testing.T) {
	t.Parallel()
	c, _ := serve(t)
	first, err := c.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen(c, Options{}, nil, nil)
	restarted := *first
	restarted.Since = first.Since.Add(time.Minute)
	for name, r := range map[string]*interval.Report{"first": interval.Average(first), "restarted": interval.Between(first, &restarted)} {
		s.show.report = r
		lines := s.show.screen(100, 30, "")
		text := fmt.Sprint(lines)
		if len(lines) != 30 || !strings.Contains(text, "measuring") || !strings.Contains(text, "17 open") || strings.Contains(text, "/s") || strings.Contains(text, "ROUTE") {
			t.Errorf("%s: %d lines: %s", name, len(lines), text)
		}
		if got := s.show.block(); !strings.Contains(got, "measuring") || strings.Contains(got, "/s") {
			t.Errorf("%s: %s", name, got)
		}
	}
	s.before = first
	s.take(s.fetch(t.Context(), viewRoutes))
	if text := fmt.Sprint(s.show.screen(100, 30, "")); strings.Contains(text, "measuring") || !strings.Contains(text, "/s") {
		t.Errorf("after an interval: %s", text)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	c, _ := serve(t)
	s := newScreen(c, Options{}, nil, nil)
	first, err := c.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.before = first
	s.take(s.fetch(t.Context(), viewRoutes))
	top := func() string { return routes(s.show.report, s.show.order, 200)[1].text }
	for _, tt := range []struct {
		key   byte
		first string
	}{{'l', "/slow"}, {'r', "long"}, {'t', "/slow"}} {
		if !s.key(tt.key) || !strings.Contains(top(), tt.first) {
			t.Errorf("%c: the first is %q", tt.key, top())
		}
	}
	if s.key('\t'); s.show.view != viewRequests {
		t.Error("tab does not change the view")
	}
	if s.key('c'); s.show.view != viewConnections {
		t.Error("c does not show connections")
	}
	if s.key('r'); s.show.view != viewRoutes {
		t.Error("r does not show routes")
	}
	report := s.show.report
	s.key(' ')
	s.take(s.fetch(t.Context(), viewRoutes))
	if s.show.report != report || !strings.Contains(s.state, "paused") {
		t.Error("paused, and goes on")
	}
	s.key(' ')
	s.take(s.fetch(t.Context(), viewRoutes))
	if s.show.report == report || s.state != "" {
		t.Error("goes not on")
	}
	s.take(got{err: errors.New("cannot reach\x1b it")})
	if s.show.report == report || s.state != `cannot reach\x1b it; trying again, q quits` {
		t.Errorf("%q", s.state)
	}
	for _, k := range []byte{'q', 3} {
		if s.key(k) {
			t.Errorf("%q does not quit", k)
		}
	}
}

// A view that was selected just now does not say that there is nothing, and is filled while the rest is paused.
func TestViewsBeforeTheirData(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key  byte
		view view
		want string // on the screen, when the server has answered
	}{{'c', viewConnections, "UNSENT"}, {'u', viewUpstreams, "IN FLIGHT"}, {'s', viewSites, "EXPIRES IN"}, {'\t', viewRequests, "RUNNING"}} {
		for _, paused := range []bool{false, true} {
			c, _ := serve(t)
			s := newScreen(c, Options{}, nil, nil)
			var err error
			if s.before, err = c.Sample(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.take(s.fetch(t.Context(), viewRoutes))
			text := func() string { return fmt.Sprint(s.show.screen(100, 40, "")) }
			if paused {
				s.key(' ')
			}
			report := s.show.report
			s.key(tt.key)
			if got := text(); strings.Contains(got, tt.want) || !strings.Contains(got, "asking for the "+viewNames[tt.view]) {
				t.Errorf("%c: before the answer: %s", tt.key, got)
			}
			s.take(s.fetch(t.Context(), viewRoutes)) // it was under way when the key came
			if got := text(); strings.Contains(got, tt.want) {
				t.Errorf("%c: after the answer to another question: %s", tt.key, got)
			}
			s.take(s.fetch(t.Context(), s.show.view))
			if got := text(); !strings.Contains(got, tt.want) || strings.Contains(got, "asking") {
				t.Errorf("%c: %s", tt.key, got)
			}
			if (s.show.report == report) != paused {
				t.Errorf("%c, paused %t: the report has changed %t", tt.key, paused, s.show.report != report)
			}
		}
	}
}

func TestReadKeys(t *testing.T) {
	t.Parallel()
	keys := make(chan byte, 10)
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		readKeys(t.Context(), r, keys)
		close(done)
	}()
	for _, s := range []string{"r", "\x1b[A", "lq"} {
		io.WriteString(w, s)
	}
	w.Close()
	servertest.Await(t, done, "the end")
	var got []byte
	for k := range keys {
		got = append(got, k)
	}
	if string(got) != "rlq" {
		t.Errorf("%q", got)
	}
}

func TestLongest(t *testing.T) {
	t.Parallel()
	c, _ := serve(t)
	all, err := c.Requests(t.Context(), 10)
	if err != nil || len(all) != 1 || all[0].Age < 59*time.Second || all[0].Age > 2*time.Minute {
		t.Errorf("%+v %v", all, err)
	}
	if lines := requests([]interval.Running{{Target: "/x"}}); len(lines) != 2 {
		t.Error(lines)
	}
}
