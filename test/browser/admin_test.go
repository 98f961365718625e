package browser

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/admin"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
	"github.com/chromedp/chromedp"
)

// A fake is a server of which only the figures exist. Its counters are functions of the
// time, so that a page has the same content whenever it looks.
type fake struct {
	since  time.Time
	asked  atomic.Int64
	loops  int
	routes []string
	many   int    // requests in progress
	held   uint64 // hand-overs of each loop before the page has come
}

func newFake() *fake {
	return &fake{since: time.Now().Add(-27 * time.Hour), loops: 4, many: 300,
		routes: []string{"GET /users/{id}", "POST /orders", "GET /search", "GET /static/{path...}", "GET /<img src=x onerror=alert(1)>", "GET /\u202egnp.x", ""}}
}

func (f *fake) Stats() (s stats.Snapshot) {
	n := uint64(f.asked.Add(1))
	now := time.Now()
	s.At, s.Since = now, f.since
	s.Running, s.Waiting = 12+int64(n%5), 40
	for i, k := range []stats.Requests{{Class: 2}, {Class: 2, Way: stats.Way(1)}, {Class: 4}, {Class: 5}, {}} {
		k.Protocol, k.N = "HTTP/1.1", n*(200_000>>(4*i))
		s.Requests = append(s.Requests, k)
	}
	s.Connections = stats.Connections{Accepted: 12_345 + n*3, Closed: 2_000 + n*3, Open: 10_345, Active: 210, Loops: 10_300, Goroutines: 45, HTTP1: 10_000, HTTP2: 300, WebSockets: 45,
		Refused: []stats.Count{{Name: "connection limit of an address", N: n}}}
	s.BytesRead, s.BytesWritten = n*30<<20, n*90<<20
	s.Syscalls = []stats.Count{{Name: "read", N: n * 100_000}, {Name: "write", N: n * 98_000}, {Name: "wait", N: n * 4_000}}
	s.Timeouts = []stats.Count{{Name: "idle", N: n * 2}}
	s.Total.Observe(40*time.Microsecond, n*150_000)
	s.Total.Observe(3*time.Millisecond, n*40_000)
	s.Total.Observe(260*time.Millisecond, n*5_000)
	s.Head.Observe(2*time.Millisecond, n*20)
	s.Wait.Observe(9*time.Millisecond, n*500)
	s.Handler.Observe(11*time.Microsecond, n*150_000)
	s.Handler.Observe(250*time.Millisecond, n*5_000)
	s.Write.Observe(1500*time.Millisecond, n*30)
	for i, pattern := range f.routes {
		r := stats.Route{Pattern: pattern, Classes: [6]uint64{2: n * 40_000 >> i, 5: n * uint64(i%2)}, Handovers: n * uint64(i%3), Demotions: uint64(i % 2)}
		r.Ways[0], r.Ways[1] = r.Classes[2]*3/4, r.Classes[2]/4+r.Classes[5]
		r.Duration.Observe(time.Duration(i*i*i)*time.Millisecond+50*time.Microsecond, r.N())
		r.Handler.Observe(time.Duration(i*i*i)*time.Millisecond+5*time.Microsecond, r.N())
		s.Routes = append(s.Routes, r)
	}
	for i := range f.loops {
		l := stats.Loop{Turns: n * 1000, Events: n * 4000, Inline: n * 40_000, Pooled: n * uint64(5_000*(i+1)), Direct: n * 3000, Handovers: f.held + n/uint64(3+i),
			Connections: 2500, AtWork: 12, Lag: 40 * time.Microsecond, Stale: i == 3}
		l.Turn.Observe(300*time.Microsecond, n*16*uint64(i+1))
		s.Loops = append(s.Loops, l)
	}
	for i := range 20 {
		s.Placement.Recent = append(s.Placement.Recent, stats.PlacementEvent{At: now.Add(-time.Duration(20-i) * 3 * time.Second), Kind: []string{"proven", "handover", "demoted"}[i%3],
			Method: "GET", Target: f.routes[i%len(f.routes)], Held: time.Duration(i%3) * 7 * time.Millisecond})
	}
	return s
}

func (f *fake) RunningRequests(most int) (all []stats.Request) {
	for i := range min(most, f.many) {
		all = append(all, stats.Request{ID: uint64(i), Method: "GET", Target: fmt.Sprintf("/search/<script>throw %d</script>%s?q=secret", i, strings.Repeat("long", i)), Route: "GET /search",
			Protocol: "HTTP/1.1", Peer: "192.0.2.7:40312", Began: time.Now().Add(-time.Duration(i*i) * 37 * time.Millisecond), Way: stats.Way(1), Stage: []string{"handler", "write", "waiting"}[i%3], Loop: i%5 - 1})
	}
	return all
}

func (f *fake) OpenConnections(most int) (all []stats.Connection) {
	for i := range min(most, 500) {
		all = append(all, stats.Connection{Peer: "[2001:db8::" + fmt.Sprint(i) + "]:40312", Local: "[2001:db8::1]:443", Protocol: "HTTP/2", TLS: "1.3", State: "idle",
			Since: time.Now().Add(-time.Duration(i) * time.Second), Unsent: int64(i * i), Loop: i % 4})
	}
	return all
}

// serveAdmin serves a handler at an address, so that it can be served there again.
func serveAdmin(t *testing.T, at string, h http.Handler) (origin string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String(), func() { s.Close() }
}

func text(t *testing.T, tab *tab, id string) string {
	t.Helper()
	return eval[string](t, tab, "document.getElementById("+quoted(id)+").textContent")
}

// await waits until an expression is true.
func await(t *testing.T, tab *tab, expression string) {
	t.Helper()
	eval[bool](t, tab, `(async () => { while (!(`+expression+`)) await new Promise(r => setTimeout(r, 20)); return true })()`)
}

// live waits for a report of an interval after the first.
const live = `document.getElementById("rate").textContent.endsWith("k") && document.getElementById("state").textContent === "live"`

// Until there is an interval the page does not say whether something stands out: its first values
// are averages since the server began.
func TestAdminMeasures(t *testing.T) {
	t.Parallel()
	origin, _ := serveAdmin(t, "127.0.0.1:0", admin.New(newFake(), nil))
	tab := openTab(t, origin)
	tab.visit(t, origin+"/")
	await(t, tab, `document.getElementById("state").textContent === "live" && latest`)
	// On a slow machine the second report may be there already.
	if got := eval[string](t, tab, `latest.average ? $("gc").textContent + " " + $("locks").textContent : ""`); got != "" && got != "measuring measuring" {
		t.Errorf("of one sample the page shows %q", got)
	}
	eval[int](t, tab, `(window.first = document.getElementById("found").textContent, window.after = [], new MutationObserver(() =>
		window.after.push(document.getElementById("found").textContent)).observe(document.getElementById("found"), {childList: true, subtree: true, characterData: true}), 1)`)
	await(t, tab, live+` && document.getElementById("found").textContent.includes("requests wait")`)
	seen := eval[[]string](t, tab, `[window.first, ...window.after]`)
	for _, s := range seen {
		if strings.Contains(s, "nothing") {
			t.Errorf("%q", seen)
		}
	}
}

// described says which process it is, with names too long for a telephone.
var described = &admin.Options{Upstreams: forwarded, Stores: shared, Version: "program v1.2.3 (<img src=x>)", Setup: func() admin.Setup {
	now := time.Now()
	return admin.Setup{Addrs: []string{"https://[2001:db8::1]:443/", "unix:/run/" + strings.Repeat("long", 30)},
		Config: `"/etc/<img src=x>.toml"`, Loaded: now.Add(-time.Hour),
		Reload: &admin.Reload{At: now, Error: "/etc/<img src=x>.toml:3:1: no such folder"},
		Sites: []admin.Site{
			{Hosts: []string{"a.example", "*." + strings.Repeat("long.", 20) + "example"}, What: "/srv/www, 3 routes",
				Certificate: "ACME", Expires: now.Add(50 * 24 * time.Hour)},
			{Hosts: []string{"<img src=x>"}, What: "redirect", Certificate: "a file", Expires: now.Add(time.Hour)},
		}}
}}

// shared are stores, one of which does not respond.
func shared() []stats.Store {
	return []stats.Store{{Name: "topics<img src=x>", Streams: 12, Read: 300, Published: 100},
		{Name: "rooms", Away: true, Streams: 2, Waiting: 40, Failed: 3, Cuts: 5, Gaps: 1}}
}

// forwarded are upstreams, one of whose servers is ejected.
func forwarded() []proxy.UpstreamStatus {
	return []proxy.UpstreamStatus{{Name: "app<img src=x>", Balance: "least", Queue: 2, MaxQueue: 9, Panic: true, Retries: proxy.RetryStatus{Retries: 3, Limit: 40}, Servers: []proxy.ServerStatus{
		{Addr: "10.0.0.1:8080", State: "up", Check: "passing", InFlight: 3, MaxRequests: 10, Idle: 4, Latency: 2 * time.Millisecond, Requests: uint64(time.Now().UnixMilli()), Reused: uint64(time.Now().UnixMilli()) / 2},
		{Addr: "10.0.0.2:8080", State: "ejected", Check: "unchecked", Cause: "5 failures <img src=x>", Until: time.Now().Add(30 * time.Second), Failures: 5, Ejections: 2},
	}}}
}

// The page shows all figures, and what clients have sent as text.
func TestAdminPage(t *testing.T) {
	t.Parallel()
	origin, _ := serveAdmin(t, "127.0.0.1:0", admin.New(newFake(), described))
	tab := openTab(t, origin)
	tab.visit(t, origin+"/")
	await(t, tab, live)
	if got := eval[string](t, tab, `document.querySelector("header .about").textContent`); !strings.HasPrefix(got, "program v1.2.3 (<img src=x>) on ") ||
		!strings.Contains(got, " at https://[2001:db8::1]:443/, unix:/run/") {
		t.Errorf("the head says %q", got)
	}
	if got := text(t, tab, "totals"); !regexp.MustCompile(`^Requests since the start: no response \d+, 2xx [\d.]+[kM], 4xx [\d.]+[kM]?, 5xx \d+$`).MatchString(got) {
		t.Errorf("totals: %q", got)
	}
	if got := text(t, tab, "gc") + text(t, tab, "locks") + text(t, tab, "classes"); strings.Contains(got, "measuring") || strings.Contains(got, "average") {
		t.Errorf("after an interval the page says %q", got)
	}
	if got := text(t, tab, "conns"); strings.HasPrefix(got, ";") || !strings.HasSuffix(got, " new/s") {
		t.Errorf("connections: %q", got)
	}
	for id, want := range map[string]string{"state": "live", "uptime": "up 1 d 3 h", "open": "10k", "conns": "45 WebSockets"[3:], "waiting": "40 waiting", "p99": "ms", "calls": "0.9",
		"stages": "slot or goroutine", "loops": "> 100 ms", "routes": "<img src=x onerror=alert(1)>", "longest": "<script>throw 9</script>", "recent": "no longer runs on loops",
		"troubles": "connection limit of an address", "found": "40 requests wait"} {
		if got := text(t, tab, id); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q in it", id, got, want)
		}
	}
	await(t, tab, `document.querySelectorAll("#sites tr").length === 2`)
	for id, want := range map[string]string{"loaded": "\"/etc/<img src=x>.toml\", loaded ", "sites": "redirect"} {
		if got := text(t, tab, id); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q in it", id, got, want)
		}
	}
	if got := text(t, tab, "loaded"); !strings.Contains(got, " failed, and this stays: /etc/<img src=x>.toml:3:1: no such folder") {
		t.Errorf("the failed reload: %q", got)
	}
	if got := eval[string](t, tab, `Array.from(document.querySelectorAll("#sites td:last-child")).map(c => c.textContent + c.className).join("|")`); got != "49 d 23 hn|59 minn bad" {
		t.Errorf("the expiries: %q", got)
	}
	await(t, tab, `document.querySelectorAll("#upstreams tr").length === 3 && /[0-9]/.test(document.querySelector("#upstreams tr:nth-child(2) td:nth-child(3)").textContent)`)
	for i, want := range []string{"app<img src=x>|least; too few servers are up, so ejections are ignored; 2 of at most 9 wait; 3 retries of at most 40 in 10 s|", "10.0.0.1:8080|up, checks passing|",
		"10.0.0.2:8080|ejected: 5 failures <img src=x>, for "} {
		got := eval[string](t, tab, fmt.Sprintf(`Array.from(document.querySelectorAll("#upstreams tr")[%d].cells).map(c => c.textContent.trim()).join("|")`, i))
		if !strings.HasPrefix(got, want) || i == 1 && !strings.HasSuffix(got, "||2\u00a0ms|3 of 10|4|50\u00a0%|") {
			t.Errorf("upstreams: %q, want %q", got, want)
		}
	}
	for i, want := range []string{"topics<img src=x>|connected|0|0|12||||", "rooms|away|0|0|2|40|3|5|1"} {
		await(t, tab, fmt.Sprintf(`Array.from(document.querySelectorAll("#stores tr")[%d].cells).map(c => c.textContent.trim()).join("|") === %q`, i, want))
	}
	if n := eval[int](t, tab, `document.querySelectorAll("img, main script, iframe, [onerror]").length`); n != 0 {
		t.Errorf("%d elements that no page has", n)
	}
	if n := eval[int](t, tab, `document.querySelectorAll("td, tbody th").length`); n > 600 {
		t.Errorf("%d cells", n)
	}
	// Rows are sorted by what the header's button says.
	tab.do(t, chromedp.Click(chromedp.CSS(`button[data-key=rate]`)))
	if first := eval[string](t, tab, `document.querySelector("#routes th").textContent`); first != "GET /users/{id}" {
		t.Errorf("by requests the first is %q", first)
	}
	if got := eval[string](t, tab, `document.querySelector("[data-key=rate]").closest("th").ariaSort`); got != "descending" {
		t.Errorf("the sorted column is %q", got)
	}
	// A page that changes by itself can be stopped.
	tab.do(t, chromedp.Click(chromedp.CSS(`#pause`)))
	before := text(t, tab, "uptime") + text(t, tab, "running")
	eval[int](t, tab, `new Promise(r => setTimeout(() => r(1), 2500))`)
	if got := text(t, tab, "uptime") + text(t, tab, "running"); got != before {
		t.Errorf("while it is stopped %q becomes %q", before, got)
	}
	tab.visit(t, origin+"/debug/requests")
	if got := eval[string](t, tab, `document.body.textContent`); !strings.Contains(got, "<script>throw 3</script>") || strings.Contains(got, "secret") {
		t.Errorf("the list has %.300q", got)
	}
	tab.visit(t, origin+"/debug/pprof/")
	tab.visit(t, origin+"/debug/connections")
}

// After a restart of the server the page goes on, with a new history.
func TestAdminReconnects(t *testing.T) {
	t.Parallel()
	origin, stop := serveAdmin(t, freeport.Addr(t), admin.New(newFake(), &admin.Options{Version: "program v1"}))
	tab := startTab(t, origin) // the lost connection is a fault
	tab.visit(t, origin+"/")
	await(t, tab, live)
	stop()
	await(t, tab, `document.getElementById("state").textContent.startsWith("no connection")`)
	f := newFake()
	f.since, f.loops = time.Now(), 2
	_, _ = serveAdmin(t, strings.TrimPrefix(origin, "http://"), admin.New(f, &admin.Options{Version: "program v2 <b>"}))
	await(t, tab, live+` && document.getElementById("loops").rows.length === 2`)
	if n := eval[int](t, tab, `past.rate.length`); n > 30 {
		t.Errorf("the history has %d seconds of the old process", n)
	}
	await(t, tab, `document.querySelector("header .about").textContent.startsWith("program v2 <b> on ")`)
}

// Of thousands of servers the page shows some, those among them that get no requests.
func TestAdminManyServers(t *testing.T) {
	t.Parallel()
	crowd := func(failing int) func() []proxy.UpstreamStatus {
		return func() (all []proxy.UpstreamStatus) {
			for i := range 3 {
				u := proxy.UpstreamStatus{Name: fmt.Sprint("app", i), Balance: "least"}
				for j := range 1000 {
					s := proxy.ServerStatus{Addr: fmt.Sprintf("10.0.%d.%d:80", i, j), State: "up", Check: "unchecked"}
					if j >= 1000-failing {
						s.State = "ejected"
					}
					u.Servers = append(u.Servers, s)
				}
				all = append(all, u)
			}
			return all
		}
	}
	for _, tt := range []struct{ failing, rows, bad int }{{2, 203, 6}, {500, 203, 200}} {
		origin, _ := serveAdmin(t, "127.0.0.1:0", admin.New(newFake(), &admin.Options{Upstreams: crowd(tt.failing)}))
		tab := openTab(t, origin)
		tab.visit(t, origin+"/")
		await(t, tab, `document.querySelectorAll("#upstreams tr").length > 2`)
		if rows, bad := eval[int](t, tab, `$("upstreams").rows.length`), eval[int](t, tab, `document.querySelectorAll("#upstreams td.bad").length`); rows != tt.rows || bad != tt.bad {
			t.Errorf("%d of each do not work: %d rows, %d of them bad; want %d, %d", tt.failing, rows, bad, tt.rows, tt.bad)
		}
		if got := text(t, tab, "upstreams-more"); got != "and 2800 more servers" {
			t.Errorf("%q", got)
		}
	}
}

// What stands out leads to where to look, also if that changes and the rest does not.
func TestAdminLooks(t *testing.T) {
	t.Parallel()
	origin, _ := serveAdmin(t, "127.0.0.1:0", admin.New(newFake(), nil))
	tab := openTab(t, origin)
	tab.visit(t, origin+"/")
	await(t, tab, live+` && !latest.average`)
	got := eval[string](t, tab, `(found([{kind: "errors", text: "some fail", look: ""}]), found([{kind: "errors", text: "all fail", look: "debug/requests"}]), $("found").textContent)`)
	if got != "all fail – debug/requests" {
		t.Errorf("%q", got)
	}
}

// What has happened before the page has come is not among what the last minute has brought.
func TestAdminLastMinute(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.held = 5000
	origin, _ := serveAdmin(t, "127.0.0.1:0", admin.New(f, nil))
	tab := openTab(t, origin)
	tab.visit(t, origin+"/")
	await(t, tab, live+` && !latest.average`)
	for i := range f.loops {
		got := eval[string](t, tab, fmt.Sprintf(`$("loops").rows[%d].cells[5].textContent`, i))
		if n, err := strconv.Atoi(got); err != nil || n > 60 {
			t.Errorf("loop %d has %q hand-overs in the last minute", i, got)
		}
	}
	if top := eval[float64](t, tab, `Math.max(...past.rate)`); top < 1000 {
		t.Errorf("the most requests in a second of the last minute are %v", top)
	}
	if n := eval[int](t, tab, `past.rate.filter(n => n < 1000).length`); n != 0 {
		t.Errorf("%d seconds of the history are averages since the start", n)
	}
}

// silent lets event streams through while it is not set, and otherwise keeps their connections and sends nothing, as a
// tunnel whose other end has gone.
type silent struct {
	http.Handler
	on      atomic.Bool
	streams atomic.Int64
}

func (s *silent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/events" {
		s.streams.Add(1)
		w = &mute{w, &s.on}
	}
	s.Handler.ServeHTTP(w, r)
}

type mute struct {
	http.ResponseWriter
	on *atomic.Bool
}

func (m *mute) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func (m *mute) Write(p []byte) (int, error) {
	if m.on.Load() {
		return len(p), nil
	}
	return m.ResponseWriter.Write(p)
}

// A page that gets no figures any more does not say that they are live, though its connection is open, and looks for
// another one.
func TestAdminSilence(t *testing.T) {
	t.Parallel()
	s := &silent{Handler: admin.New(newFake(), nil)}
	origin, _ := serveAdmin(t, "127.0.0.1:0", s)
	tab := startTab(t, origin) // the page ends a stream
	tab.visit(t, origin+"/")
	await(t, tab, live)
	s.on.Store(true)
	await(t, tab, `$("state").textContent.startsWith("no figures") && $("dot").className === "dot lost"`)
	before := s.streams.Load()
	for s.streams.Load() == before {
		eval[int](t, tab, `new Promise(r => setTimeout(() => r(1), 20))`)
	}
	s.on.Store(false)
	await(t, tab, live)
}

// Nothing is wider than the window, the focus is visible, and tables have headers.
func TestAdminLook(t *testing.T) {
	t.Parallel()
	origin, _ := serveAdmin(t, "127.0.0.1:0", admin.New(newFake(), described))
	tab := openTab(t, origin)
	background := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 1000, 800, 390, 320} {
			tab.look(t, width, 1400, scheme, chromedp.EmulateScale(1))
			tab.visit(t, origin+"/")
			await(t, tab, live)
			if got := eval[int64](t, tab, `document.documentElement.scrollWidth`); got > width {
				t.Errorf("the page is %d wide in a window of %d", got, width)
			}
			if cut := eval[[]string](t, tab, `Array.from(document.querySelectorAll(".scroll")).filter(e => e.scrollWidth > e.clientWidth).map(e => e.getAttribute("aria-labelledby") + " " + e.scrollWidth + " > " + e.clientWidth)`); len(cut) > 0 {
				t.Errorf("in a window of %d text is cut: %v", width, cut)
			}
			eval[int](t, tab, `new Promise(r => setTimeout(() => r(1), 3000))`)
			tab.picture(t, fmt.Sprintf("admin-%s-%d", scheme, width))
			if os.Getenv("CHERT_SCREENSHOTS") != "" { // of what is below, too
				tab.look(t, width, 4000, scheme, chromedp.EmulateScale(1))
				tab.picture(t, fmt.Sprintf("admin-whole-%s-%d", scheme, width))
				tab.look(t, width, 1400, scheme, chromedp.EmulateScale(1))
			}
			for _, path := range []string{"requests", "connections"} {
				tab.visit(t, origin+"/debug/"+path)
				if got := eval[int64](t, tab, `document.documentElement.scrollWidth`); got > width {
					t.Errorf("%s is %d wide in a window of %d", path, got, width)
				}
			}
			tab.picture(t, fmt.Sprintf("admin-connections-%s-%d", scheme, width))
		}
		background[scheme] = eval[string](t, tab, "getComputedStyle(document.body).backgroundColor")
	}
	if background["light"] == background["dark"] {
		t.Errorf("light and dark are both %s", background["dark"])
	}
	tab.visit(t, origin+"/")
	await(t, tab, live)
	// Everything that can have the focus gets it in turn, and shows it.
	n := eval[int](t, tab, `document.querySelectorAll("a, button, [tabindex='0']").length`)
	for i := range n {
		tab.do(t, chromedp.KeyEvent("\t"))
		if got := eval[string](t, tab, "document.activeElement === document.body ? 'none' : getComputedStyle(document.activeElement).outlineStyle"); got != "solid" {
			t.Errorf("after %d times Tab the outline is %q", i+1, got)
		}
	}
	if bad := eval[int](t, tab, `Array.from(document.querySelectorAll("table")).filter(t => !t.querySelector("thead th[scope=col]")).length`); bad != 0 {
		t.Errorf("%d tables without headers", bad)
	}
	if bad := eval[int](t, tab, `Array.from(document.querySelectorAll("canvas, .range, .ways")).filter(e => e.ariaHidden !== "true").length`); bad != 0 {
		t.Errorf("%d drawings that a screen reader would name", bad)
	}
}
