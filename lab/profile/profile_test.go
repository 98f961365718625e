package profile

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

func TestNames(t *testing.T) {
	tests := []struct {
		server, vs, servers string
		want                []string
	}{
		{"chert", "nethttp,nginx", "", []string{"chert", "nethttp", "nginx"}},
		{"chert", "", "", []string{"chert"}},
		{"nethttp", " nginx, nethttp ,nginx", "", []string{"nethttp", "nginx"}}, // none twice
		{"chert", everyone, "chertdirect", []string{"chertdirect"}},
		{"chert", everyone, "nginx, chert,,nginx", []string{"nginx", "chert"}},
		{"chert", everyone, ",", nil},
	}
	for _, tt := range tests {
		c := common{needs: rival.Answers, server: tt.server, vs: tt.vs, servers: tt.servers}
		if got := c.names(t.Context(), &strings.Builder{}); !slices.Equal(got, tt.want) {
			t.Errorf("%q vs %q, %q: %q, want %q", tt.server, tt.vs, tt.servers, got, tt.want)
		}
	}
}

func TestEveryone(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // h2o is found there only; nginx may be in /usr/sbin
	var log strings.Builder
	c := common{needs: rival.Answers, server: "nethttp", vs: everyone}
	if got := c.names(t.Context(), &log); got[0] != "nethttp" || slices.Contains(got, "h2o") || !slices.Contains(got, "hertz") {
		t.Errorf("names = %q", got)
	}
	if !strings.Contains(log.String(), "without h2o: h2o is not installed; on Debian: apt-get install h2o") {
		t.Errorf("log: %s", log.String())
	}
	c.needs = rival.Code
	if got, want := c.names(t.Context(), &log), []string{"nethttp", "chert", "chertdirect", "fasthttp", "hertz"}; !slices.Equal(got, want) {
		t.Errorf("only Go: %q, want %q", got, want)
	}
	c.needs = rival.Files
	if got := c.names(t.Context(), &log); slices.Contains(got, "fasthttp") || slices.Contains(got, "caddy") || !slices.Contains(got, "nethttpfiles") {
		t.Errorf("files: %q", got)
	}
	if !strings.Contains(log.String(), "without caddy: go is not installed") {
		t.Errorf("log: %s", log.String())
	}
}

func TestNumbers(t *testing.T) {
	if got, err := numbers("64, 512"); err != nil || !slices.Equal(got, []int{64, 512}) {
		t.Errorf("numbers = %v, %v", got, err)
	}
	for _, bad := range []string{"", "64,", "0", "-1", "many"} {
		if got, err := numbers(bad); err == nil {
			t.Errorf("numbers(%q) = %v, want an error", bad, got)
		}
	}
}

func TestClamp(t *testing.T) {
	if n, message := clamp(10000, 1, 20000); n != 10000 || message != "" {
		t.Errorf("enough files: %d, %q", n, message)
	}
	n, message := clamp(10000, 1, 4096)
	if n != 4096-spareFiles || !strings.Contains(message, "4096") || !strings.Contains(message, "instead of 10000") {
		t.Errorf("too few files: %d, %q", n, message)
	}
	if n, _ := clamp(10000, 1, 10); n != 1 {
		t.Errorf("hardly any files: %d", n)
	}
	if n, _ := clamp(10000, 2, 10100); n != (10100-spareFiles)/2 {
		t.Errorf("enough for one, not for two: %d", n)
	}
}

func TestSeats(t *testing.T) {
	allowed, err := measure.Allowed()
	if err != nil || len(allowed) < 2 {
		t.Skipf("cores %v, %v: two are needed", allowed, err)
	}
	first, last := allowed[0], allowed[len(allowed)-1]
	tests := []struct {
		name                  string
		cores, core, loadCore int
		want                  Seats
		shared                bool
	}{
		{"default", 1, -1, -1, Seats{[]int{first}, allowed[1]}, false},
		{"other way round", 1, last, -1, Seats{[]int{last}, first}, false},
		{"all", len(allowed), -1, -1, Seats{allowed, last}, true},
		{"flagged", 1, first, first, Seats{[]int{first}, first}, true},
	}
	for _, tt := range tests {
		got, err := (&common{cores: tt.cores, core: tt.core}).seats(tt.loadCore)
		if err != nil || !slices.Equal(got.Server, tt.want.Server) || got.Load != tt.want.Load {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
		if text := got.Describe("wrk"); strings.Contains(text, "SHARED") != tt.shared {
			t.Errorf("%s: %s", tt.name, text)
		}
	}
	for _, c := range []common{{cores: 0, core: -1}, {cores: len(allowed) + 1, core: -1}, {cores: 2, core: last}, {cores: 1, core: 1 << 20}} {
		if got, err := c.seats(-1); err == nil {
			t.Errorf("%d cores from %d: %+v, want an error", c.cores, c.core, got)
		}
	}
	if text := (Seats{[]int{0, 2}, 3}).Describe("wrk"); text != "server on cores 0,2, wrk on core 3" {
		t.Errorf("describe = %q", text)
	}
}

func TestRoundOf(t *testing.T) {
	res := load.Result{Requests: 200000, PerSecond: 100000, Errors: load.Errors{Read: 2, Status: 1},
		Latency: load.Latency{P50: 142 * time.Microsecond, P99: 3580 * time.Microsecond}}
	used := measure.CPU{Total: 1600 * time.Millisecond, User: 400 * time.Millisecond, System: 1200 * time.Millisecond}
	want := report.Round{CPU: 8, User: 2, PerSecond: 100000, Requests: 200000, Errors: 3, Steal: 1.5, Others: 7, P50: 142, P99: 3580}
	if got := roundOf(res, Cost{used, 1.5, 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := roundOf(load.Result{}, Cost{CPU: used}); got.CPU != 0 {
		t.Errorf("no requests: %+v", got)
	}
}

func TestBesideRoundOf(t *testing.T) {
	ms := time.Millisecond
	res := load.BesideResult{
		Alone:  load.Timings{Requests: 100, PerSecond: 50, P50: ms, P99: 2 * ms, Max: 3 * ms},
		Beside: load.Timings{Requests: 90, PerSecond: 45, P50: 4 * ms, P99: 5 * ms, Max: 6 * ms},
		Slow:   load.Timings{Requests: 20, PerSecond: 10},
		Errors: 7,
	}
	want := report.BesideRound{AloneP50: 1, AloneP99: 2, BesideP50: 4, BesideP99: 5, BesideMax: 6, FastBefore: 50, Fast: 45, Slow: 10,
		Errors: 7, Steal: 1.5, Others: 8}
	if got := besideRoundOf(res, Cost{Steal: 1.5, Others: 8}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReadersRoundOf(t *testing.T) {
	ms := time.Millisecond
	res := load.ReadersResult{
		Alone:     load.Timings{Requests: 4000, PerSecond: 2000, P99: ms},
		Beside:    load.Timings{Requests: 3000, PerSecond: 1500, P99: 2 * ms, Max: 3 * ms},
		SlowBytes: 125 << 20,
		Errors:    1,
	}
	want := report.ReadersRound{Alone: 2000, AloneP99: 1, Beside: 1500, BesideP99: 2, BesideMax: 3, Slow: 62.5, Errors: 1, Steal: 1.5, Others: 8}
	if got := readersRoundOf(res, Cost{Steal: 1.5, Others: 8}, 2); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStreamRoundOf(t *testing.T) {
	res := load.StreamResult{Requests: 10, Elapsed: 2 * time.Second, Errors: 1}
	used := measure.CPU{Total: 64 * time.Millisecond}
	want := report.StreamRound{CPU: 100, Rate: 320, Reads: 32, Errors: 1, Steal: 1.5, Others: 7}
	if got := streamRoundOf(res, Cost{used, 1.5, 7}, 64, work.Reads{Reads: 20480}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := streamRoundOf(load.StreamResult{}, Cost{CPU: used}, 64, work.Reads{}); got.CPU != 0 {
		t.Errorf("no requests: %+v", got)
	}
}

func TestMeanSize(t *testing.T) {
	if got := meanSize([]report.Round{{Bytes: 1000, Requests: 10}, {Bytes: 3000, Requests: 10}}); got != 200 {
		t.Errorf("%d, want 200", got)
	}
	if got := meanSize([]report.Round{{}}); got != 0 {
		t.Errorf("of none: %d", got)
	}
}

func TestPlot(t *testing.T) {
	answered := []report.Series{{Server: "chert", Rounds: []report.Round{{CPU: 5}}}, {Server: "nginx"}}
	f := report.File{
		Profile:     "plain",
		Comparisons: []report.Comparison{{Connections: 8, Series: answered}, {Connections: 64, Series: answered}},
		Besides:     []report.Beside{{Series: []report.BesideSeries{{Server: "chert", Rounds: []report.BesideRound{{BesideP99: 2}}}}}},
		Idle:        &report.Idle{Connections: 10, Servers: []report.Held{{Server: "chert"}}},
	}
	dir := t.TempDir()
	if err := plot(f, dir); err != nil {
		t.Fatal(err)
	}
	got, _ := filepath.Glob(filepath.Join(dir, "*.svg"))
	for i := range got {
		got[i] = filepath.Base(got[i])
	}
	got = slices.DeleteFunc(got, func(name string) bool { return strings.HasSuffix(name, "-dark.svg") })
	if want := []string{"plain-1.svg", "plain-64.svg", "plain-8.svg", "plain-lines.svg", "plain.svg"}; !slices.Equal(got, want) {
		t.Errorf("drawn %q, want %q", got, want)
	}
	f.Comparisons[0].Series, f.Comparisons[1].Series = answered[1:], answered[1:]
	if err := plot(f, dir); err == nil {
		t.Error("no error although there are no lines")
	}
}

// Names are unique, and every scene can be requested unchanged.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		if seen[p.Name] || p.About == "" {
			t.Errorf("%q: twice, or without a word on it", p.Name)
		}
		seen[p.Name] = true
	}
	for _, s := range scenes() {
		if _, err := numbers(s.connections); err != nil || s.folder == nil && (s.want.Status != 200 || s.request.Method == "") {
			t.Errorf("%s: %+v, %v", s.name, s.want, err)
		}
	}
}

// What --json names is as it was when it has been found to be writable: missing, a file, or a link to either.
func TestWritableLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("file"), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "file", "dangling": "target", "again": "dangling"} {
		if err := os.Symlink(to, path(link)); err != nil {
			if runtime.GOOS != "windows" {
				t.Fatal(err)
			}
			t.Skip(err) // Windows asks for a privilege
		}
	}
	list := func() (names []string) {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	before := list()
	for _, name := range []string{"file", "link", "dangling", "again", "new"} {
		f := flag.NewFlagSet("hello", flag.ContinueOnError)
		(&common{}).register(f, everyone)
		if err := parse(f, []string{"--json", path(name)}); err != nil {
			t.Error(err)
		}
		if after := list(); !slices.Equal(after, before) {
			t.Errorf("%s: there are %q, and were %q", name, after, before)
		}
	}
}

func TestParseFlags(t *testing.T) {
	f := flag.NewFlagSet("hello", flag.ContinueOnError)
	if err := parse(f, []string{"nginx"}); err == nil || !strings.Contains(err.Error(), "nginx") {
		t.Errorf("parse = %v", err)
	}
	for args, ok := range map[string]bool{
		"--servers chert":                  true,
		"--vs nginx --server nethttp":      true,
		"--servers chert --vs nginx":       false,
		"--server nethttp --servers hertz": false,
	} {
		f := flag.NewFlagSet("hello", flag.ContinueOnError)
		(&common{}).register(f, everyone)
		if err := parse(f, strings.Fields(args)); (err == nil) != ok {
			t.Errorf("%s: %v", args, err)
		}
	}
}
