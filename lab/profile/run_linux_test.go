package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/link"
	"github.com/chert-http/chert/lab/report"
)

// need skips a test where a program is missing; where everything has to run, that is a failure.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := child.Find(program); err != nil {
			missing(t, err)
		}
	}
	if _, err := (&common{core: -1, cores: 1}).seats(-1); err != nil {
		missing(t, err)
	}
}

func missing(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// runs runs a profile by name. text is all it printed, for when it fails.
func runs(ctx context.Context, args ...string) (out, text string, err error) {
	var o, log strings.Builder
	for _, p := range All() {
		if p.Name == args[0] {
			err = p.Run(ctx, args[1:], &o, &log)
			return o.String(), fmt.Sprintf("%v\n%s%s", err, o.String(), log.String()), err
		}
	}
	return "", "", fmt.Errorf("no profile %q", args[0])
}

// runsWell runs a profile that must succeed, and returns what it printed.
func runsWell(t *testing.T, args ...string) (out string) {
	t.Helper()
	out, text, err := runs(t.Context(), args...)
	if errors.Is(err, ErrFaulty) {
		t.Log("again, as a machine that stood still for seconds has time-outs:", text)
		out, text, err = runs(t.Context(), args...)
	}
	if err != nil {
		t.Fatal(text)
	}
	return out
}

// ownTemp gives a test its own folder for temporary files and fails it if the lab leaves any there.
func ownTemp(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(tmp, "chert-lab-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if pids := processesOf(tmp); len(pids) > 0 {
			t.Errorf("still running: %v", pids)
		}
	})
}

// processesOf finds processes by their command line: the lab's servers all have a path of the temporary folder in it.
func processesOf(dir string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range files {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), dir) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// whenStarted calls f once a fake wrk has made the file "started" in the temporary folder.
func whenStarted(f func(tmp string)) {
	tmp := os.Getenv("TMPDIR")
	go func() {
		for range 1000 {
			if _, err := os.Stat(filepath.Join(tmp, "started")); err == nil {
				f(tmp)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
}

// fakeWrk puts a program named wrk before the real one.
func fakeWrk(t *testing.T, script string) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "wrk"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// readReport reads a JSON report.
func readReport(t *testing.T, path string) (f report.File) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Every kind of scene, once, for a second, on few servers. That all servers answer all requests is a test of rival.
func TestScenes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute") // wrk knows no less than a second
	}
	need(t, "wrk", "nginx", "h2o", "taskset")
	tests := []struct{ args, rivals string }{
		{"plain --connections 1,8", ""},
		{"routed64 --cores 2", "nginx,h2o"},
		{"post64", ""},
		{"pipelined16", ""},
		{"close64", ""},
		{"upload", ""},
		{"busyidle --idle 100", ""},
	}
	for _, tt := range tests {
		args := strings.Fields(tt.args)
		t.Run(args[0], func(t *testing.T) {
			ownTemp(t)
			dir := t.TempDir()
			path := filepath.Join(dir, "report.json")
			args := append(args, "--server", "nethttp", "--vs", tt.rivals, "--rounds", "1", "--seconds", "1", "--json", path, "--plot", dir)
			out := runsWell(t, args...)
			for name := range strings.SplitSeq(tt.rivals, ",") {
				if name != "" && !strings.Contains(out, "nethttp / "+name) {
					t.Errorf("no ratio to %s:\n%s", name, out)
				}
			}
			for _, c := range readReport(t, path).Comparisons {
				for _, s := range c.Series {
					checkSeries(t, s)
				}
			}
			if plots, _ := filepath.Glob(filepath.Join(dir, "*.svg")); len(plots) == 0 {
				t.Error("no plot")
			}
		})
	}
}

// Servers in a namespace of their own are reached, and measured, like others.
func TestVeth(t *testing.T) {
	need(t, "wrk", "taskset", "ip")
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	try, err := link.Open(t.Context(), link.Options{MTU: 1500})
	if err != nil {
		t.Skip("no namespaces here: ", err)
	}
	try.Close()
	path := filepath.Join(t.TempDir(), "report.json")
	out := runsWell(t, "plain64", "--servers", "nethttp", "--veth", "1500", "--congestion", "reno", "--rounds", "1", "--seconds", "1", "--json", path)
	if !strings.Contains(out, "veth with an MTU of 1500 and reno") {
		t.Errorf("printed %s", out)
	}
	checkSeries(t, readReport(t, path).Comparisons[0].Series[0])
}

// Each way of measuring, with chert as it was committed last beside it as it is. The newer one comes first in the ratios.
func TestAgainst(t *testing.T) {
	if testing.Short() {
		t.Skip("builds chert four times")
	}
	need(t, "wrk", "taskset", "git", "tar")
	if _, err := child.Run(t.Context(), child.Command{Args: []string{"git", "rev-parse", "HEAD^{commit}"}}); err != nil {
		missing(t, err) // not a repository
	}
	tests := []struct {
		args   string
		ratios []string
	}{
		{"plain --connections 8 --servers chert,chertdirect", []string{"chert / chert@", "chertdirect / chertdirect@", "chert / chertdirect "}},
		{"busyidle --idle 50 --servers chert", []string{"chert / chert@", "chert+50 / chert@", "chert+50 / chert "}},
		{"file1k --connections 8 --servers chertfiles", []string{"chertfiles / chertfiles@"}},
	}
	for _, tt := range tests {
		args := strings.Fields(tt.args)
		t.Run(args[0], func(t *testing.T) {
			ownTemp(t)
			out := runsWell(t, append(args, "--against", "HEAD", "--rounds", "1", "--seconds", "1")...)
			for _, want := range tt.ratios {
				if !strings.Contains(out, "\n"+want) {
					t.Errorf("no ratio %s:\n%s", want, out)
				}
			}
		})
	}
	t.Run("idle", func(t *testing.T) {
		ownTemp(t)
		path := filepath.Join(t.TempDir(), "idle.json")
		_, text, err := runs(t.Context(), "idle", "--servers", "chert", "--against", "HEAD", "--connections", "100", "--json", path)
		if err != nil {
			t.Fatal(text)
		}
		if held := readReport(t, path).Held; len(held) != 2 || held[0].Server != "chert" || !strings.HasPrefix(held[1].Server, "chert@") {
			t.Errorf("measured %+v", held)
		}
	})
}

// checkSeries has wide bounds: they find a wrong unit or a process that was not counted, not a slow machine.
func checkSeries(t *testing.T, s report.Series) {
	t.Helper()
	if len(s.Rounds) != 1 || s.ResponseBytes < 80 || s.Resident < 1<<20 {
		t.Errorf("%s: %+v", s.Server, s)
	}
	for _, r := range s.Rounds {
		if r.CPU < 0.2 || r.CPU > 1e5 || r.User < 0 || r.User > r.CPU || r.Requests < 8 || r.PerSecond < 8 {
			t.Errorf("%s: %+v", s.Server, r)
		}
	}
}

func TestDuets(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	need(t, "taskset")
	for _, name := range []string{"fastslow", "fastturns"} {
		t.Run(name, func(t *testing.T) {
			ownTemp(t)
			dir := t.TempDir()
			path := filepath.Join(dir, "report.json")
			_, text, err := runs(t.Context(), name, "--server", "nethttp", "--vs", "", "--rounds", "1", "--seconds", "1", "--json", path, "--plot", dir)
			if err != nil {
				t.Fatal(text)
			}
			for _, b := range readReport(t, path).Besides {
				r := b.Series[0].Rounds[0]
				if r.AloneP50 <= 0 || r.AloneP50 > r.AloneP99 || r.BesideP50 <= 0 || r.BesideP99 > r.BesideMax || r.Fast <= 0 || r.Slow <= 0 {
					t.Errorf("%s: %+v", b.Slow, r)
				}
				// 32 connections that wait for 20 ms each, or one core that computes for as long.
				if r.Slow > 1601 {
					t.Errorf("%s: %v slow requests a second", b.Slow, r.Slow)
				}
			}
			if plots, _ := filepath.Glob(filepath.Join(dir, "*.png")); len(plots) == 0 {
				t.Error("no plot")
			}
		})
	}
}

// Files, on the two servers that no module has to be loaded for. A plain handler sends a file's bytes, or wrk would wait.
func TestFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	need(t, "wrk", "nginx", "taskset")
	for _, args := range []string{"file1k", "file10m", "filetree --files 200"} {
		args := strings.Fields(args)
		t.Run(args[0], func(t *testing.T) {
			ownTemp(t)
			path := filepath.Join(t.TempDir(), "report.json")
			args := append(args, "--server", "nethttpfiles", "--vs", "nginx", "--rounds", "1", "--seconds", "1", "--connections", "8", "--json", path)
			_, text, err := runs(t.Context(), args...)
			if err != nil {
				t.Fatal(text)
			}
			for _, s := range readReport(t, path).Comparisons[0].Series {
				checkSeries(t, s)
				if least := map[string]int{"file1k": 1 << 10, "file10m": 10 << 20, "filetree": 2 << 10}[args[0]]; s.ResponseBytes < least {
					t.Errorf("%s: answers of %d bytes", s.Server, s.ResponseBytes)
				}
			}
		})
	}
}

func TestSlowReaders(t *testing.T) {
	need(t, "nginx", "taskset")
	ownTemp(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	_, text, err := runs(t.Context(), "slowreaders", "--server", "nethttpfiles", "--vs", "nginx", "--slow", "50", "--rounds", "1", "--seconds", "1",
		"--json", path, "--plot", dir)
	if err != nil {
		t.Fatal(text)
	}
	for _, s := range readReport(t, path).Readers.Series {
		r := s.Rounds[0]
		if r.Alone <= 0 || r.AloneP99 <= 0 || r.Beside <= 0 || r.BesideP99 > r.BesideMax || r.Slow <= 0 || r.Before < 1<<20 || r.Most < r.Before {
			t.Errorf("%s: %+v", s.Server, r)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "slowreaders.svg")); err != nil {
		t.Error(err)
	}
}

func TestStream(t *testing.T) {
	need(t, "taskset")
	ownTemp(t)
	path := filepath.Join(t.TempDir(), "report.json")
	_, text, err := runs(t.Context(), "stream", "--mib", "2", "--connections", "2", "--rounds", "1", "--seconds", "1", "--json", path)
	if err != nil {
		t.Fatal(text)
	}
	tables := readReport(t, path).Streams
	if len(tables) != 5 {
		t.Fatalf("%d tables", len(tables))
	}
	for _, table := range tables {
		if len(table.Series) != 3 {
			t.Errorf("%s: %d servers", table.Kind, len(table.Series))
		}
		for _, s := range table.Series {
			r := s.Rounds[0]
			if download := strings.HasPrefix(table.Kind, "download"); r.CPU <= 0 || r.Rate <= 0 || download != (r.Reads == 0) || r.Reads > 100 {
				t.Errorf("%s, %s: %+v", table.Kind, s.Server, r)
			}
		}
	}
}

func TestIdle(t *testing.T) {
	need(t, "taskset")
	ownTemp(t)
	path := filepath.Join(t.TempDir(), "idle.json")
	_, text, err := runs(t.Context(), "idle", "--server", "nethttp", "--vs", "", "--connections", "500", "--json", path, "--plot", t.TempDir())
	if err != nil {
		t.Fatal(text)
	}
	if p := readReport(t, path).Held[0]; p.Goroutines < 0.99 || p.Goroutines > 1.01 || p.Resident < 4<<10 || p.Resident > 100<<10 {
		t.Errorf("net/http keeps a goroutine and some 20 KB for each connection; measured %+v", p)
	}
}

// Echoes over WebSockets, by chert's package and by one of the libraries on net/http.
func TestSockets(t *testing.T) {
	need(t, "taskset")
	for _, name := range []string{"wsecho", "wsburst"} {
		t.Run(name, func(t *testing.T) {
			ownTemp(t)
			path := filepath.Join(t.TempDir(), "report.json")
			_, text, err := runs(t.Context(), name, "--vs", "gorilla", "--connections", "4", "--rounds", "1", "--seconds", "1", "--json", path)
			if err != nil {
				t.Fatal(text)
			}
			for _, s := range readReport(t, path).Comparisons[0].Series {
				r := s.Rounds[0]
				if s.ResponseBytes != 66 || r.CPU <= 0 || r.User > r.CPU || r.Requests < 8 || r.P50 <= 0 || r.P50 > r.P99 || r.Bytes != float64(66*r.Requests) {
					t.Errorf("%s: %+v", s.Server, s)
				}
			}
		})
	}
}

// chert has no goroutine for an idle WebSocket, the libraries on net/http have one.
func TestSocketsIdle(t *testing.T) {
	need(t, "taskset")
	ownTemp(t)
	path := filepath.Join(t.TempDir(), "idle.json")
	_, text, err := runs(t.Context(), "wsidle", "--tls", "--connections", "100", "--json", path)
	if err != nil {
		t.Fatal(text)
	}
	held := readReport(t, path).Held
	if len(held) != 5 {
		t.Errorf("%d servers", len(held))
	}
	for _, p := range held {
		// Pooled goroutines that the warm-up has left may still end.
		if p.Server == socketServer && p.Goroutines > 0.2 || p.Server != socketServer && (p.Goroutines < 0.8 || p.Goroutines > 1.2) {
			t.Errorf("%+v", p)
		}
	}
}

// What many connections get at once: events of chert's package, and messages of all libraries.
func TestBroadcast(t *testing.T) {
	need(t, "taskset")
	for _, tt := range []struct {
		args    string
		servers int
	}{{"ssebroadcast --events 2", 2}, {"wsbroadcast --messages 2", 5}} {
		args := strings.Fields(tt.args)
		t.Run(args[0], func(t *testing.T) {
			ownTemp(t)
			path := filepath.Join(t.TempDir(), "report.json")
			_, text, err := runs(t.Context(), append(args, "--receivers", "50", "--rounds", "1", "--json", path)...)
			if err != nil {
				t.Fatal(text)
			}
			series := readReport(t, path).Broadcast.Series
			if len(series) != tt.servers {
				t.Errorf("%d servers", len(series))
			}
			for _, s := range series {
				if len(s.Rounds) != 1 || s.Rounds[0].CPU <= 0 || s.Rounds[0].Rate <= 0 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// What viewers of the live page cost, and how often they get an event.
func TestPage(t *testing.T) {
	need(t, "wrk", "taskset")
	ownTemp(t)
	path := filepath.Join(t.TempDir(), "report.json")
	_, text, err := runs(t.Context(), "page", "--idle", "100", "--connections", "4", "--viewers", "2", "--rounds", "1", "--seconds", "2", "--json", path)
	if err != nil {
		t.Fatal(text)
	}
	for _, r := range readReport(t, path).Page.Rounds {
		if r.Without.Events != 0 || r.With.Events < 1 || r.With.Bytes < 500 || r.With.Largest <= 0 || r.Without.CPU <= 0 || r.With.CPU <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestNeedsGo(t *testing.T) {
	need(t, "taskset", "nginx", "wrk")
	for _, name := range []string{"idle", "post64", "fastslow"} {
		_, _, err := runs(t.Context(), name, "--server", "nginx", "--vs", "")
		if want := "nginx does not run the handlers that " + name + " needs"; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for profile, server := range map[string]string{"file1k": "nethttp", "slowreaders": "hertz"} {
		_, _, err := runs(t.Context(), profile, "--server", server, "--vs", "")
		if want := server + " does not serve the files that " + profile + " needs"; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", profile, err, want)
		}
	}
}

// Failed requests of any kind must be reported prominently and fail the run.
func TestFaults(t *testing.T) {
	need(t, "taskset")
	tests := []struct{ output, want string }{
		{"died", "read 128, write 145152"},
		{"notfound", "status 104275"},
		{"closed", "0 requests answered"},
	}
	for _, tt := range tests {
		t.Run(tt.output, func(t *testing.T) {
			ownTemp(t)
			recorded, err := filepath.Abs(filepath.Join("..", "load", "testdata", tt.output+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			fakeWrk(t, fmt.Sprintf("cat '%s'", recorded))
			out, text, err := runs(t.Context(), "hello", "--server", "nethttp", "--vs", "", "--rounds", "1", "--connections", "8")
			if !errors.Is(err, ErrFaulty) || !strings.Contains(out, "ERRORS: nethttp") || !strings.Contains(out, tt.want) {
				t.Error(text)
			}
		})
	}
}

// The server dies during a round: the run ends with the reason.
func TestServerDies(t *testing.T) {
	need(t, "taskset")
	ownTemp(t)
	fakeWrk(t, `touch "$TMPDIR/started"; sleep 1; echo "unable to connect" >&2; exit 1`)
	whenStarted(func(tmp string) {
		for _, pid := range processesOf(tmp) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	_, text, err := runs(t.Context(), "hello", "--server", "nethttp", "--vs", "", "--rounds", "1", "--connections", "8")
	if err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Error(text)
	}
}

// Ctrl-C in the middle of a round; ownTemp sees whether anything is left.
func TestCancel(t *testing.T) {
	need(t, "taskset")
	ownTemp(t)
	fakeWrk(t, `touch "$TMPDIR/started"; sleep 600 & sleep 600`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	whenStarted(func(string) { cancel() })
	start := time.Now()
	_, text, err := runs(ctx, "hello", "--server", "nethttp", "--vs", "", "--rounds", "1")
	if err == nil || time.Since(start) > 90*time.Second {
		t.Errorf("after %v: %s", time.Since(start), text)
	}
}
