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
	if _, err := pick(-1, 1); err != nil {
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

func TestHello(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	need(t, "wrk", "nginx", "taskset")
	ownTemp(t)
	path := filepath.Join(t.TempDir(), "hello.json")
	var out, log strings.Builder
	err := runHello(t.Context(), []string{"--server", "nethttp", "--vs", "nginx", "--rounds", "2", "--seconds", "1",
		"--connections", "8", "--json", path}, &out, &log)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), log.String())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f report.File
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Comparisons[0].Series {
		if len(s.Rounds) != 2 || s.ResponseBytes < 100 {
			t.Errorf("%s: %+v", s.Server, s)
		}
		for _, r := range s.Rounds {
			// Wide bounds: they find a wrong unit or a process that was not counted, not a slow machine.
			if r.CPU < 0.5 || r.CPU > 500 || r.User <= 0 || r.User >= r.CPU || r.Requests < 100 || r.PerSecond < 100 {
				t.Errorf("%s: %+v", s.Server, r)
			}
		}
	}
	if !strings.Contains(out.String(), "nethttp / nginx") {
		t.Errorf("no ratios:\n%s", out.String())
	}
}

func TestIdle(t *testing.T) {
	need(t, "taskset")
	ownTemp(t)
	var out, log strings.Builder
	path := filepath.Join(t.TempDir(), "idle.json")
	err := runIdle(t.Context(), []string{"--server", "nethttp", "--vs", "", "--connections", "500", "--json", path}, &out, &log)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), log.String())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f report.File
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if p := f.Held[0]; p.Goroutines < 0.99 || p.Goroutines > 1.01 || p.Resident < 4<<10 || p.Resident > 100<<10 {
		t.Errorf("net/http keeps a goroutine and some 20 KB for each connection; measured %+v", p)
	}
}

func TestIdleNeedsStats(t *testing.T) {
	need(t, "taskset", "nginx")
	err := runIdle(t.Context(), []string{"--server", "nginx", "--vs", ""}, &strings.Builder{}, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "nginx has no /debug/stats") {
		t.Errorf("runIdle = %v", err)
	}
}

// Failed requests must be told loudly and fail the run, whichever kind they are.
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
			var out, log strings.Builder
			err = runHello(t.Context(), []string{"--server", "nethttp", "--vs", "", "--rounds", "1", "--connections", "8"}, &out, &log)
			if !errors.Is(err, ErrFaulty) || !strings.Contains(out.String(), "ERRORS: nethttp") || !strings.Contains(out.String(), tt.want) {
				t.Errorf("%v\n%s%s", err, out.String(), log.String())
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
	var out, log strings.Builder
	err := runHello(t.Context(), []string{"--server", "nethttp", "--vs", "", "--rounds", "1", "--connections", "8"}, &out, &log)
	if err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("runHello = %v", err)
	}
}

// Ctrl-C in the middle of a round; ownTemp sees whether anything is left.
func TestCancel(t *testing.T) {
	need(t, "taskset")
	ownTemp(t)
	fakeWrk(t, `touch "$TMPDIR/started"; sleep 60 & sleep 60`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	whenStarted(func(string) { cancel() })
	start := time.Now()
	err := runHello(ctx, []string{"--server", "nethttp", "--vs", "", "--rounds", "1"}, &strings.Builder{}, &strings.Builder{})
	if err == nil || time.Since(start) > 30*time.Second {
		t.Errorf("runHello = %v after %v", err, time.Since(start))
	}
}
