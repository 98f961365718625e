package child

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// gone reports whether no process of the group runs any more. A zombie does not count: its parent must reap it.
func gone(t *testing.T, pgid int) bool {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Fatal("no /proc", err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if state, group := fields[0], fields[2]; group == strconv.Itoa(pgid) && state != "Z" {
			return false
		}
	}
	return true
}

func TestCancelEndsGrandchildren(t *testing.T) {
	tests := []struct{ name, script string }{
		{"obedient", "sleep 60 & sleep 60"},
		{"leader leaves first", "sleep 60 & exit 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, err := Start(ctx, Command{Args: []string{"sh", "-c", tt.script}})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			cancel()
			p.Stop()
			if !gone(t, p.PID()) {
				t.Errorf("process group %d still has members", p.PID())
			}
		})
	}
}

// A command of a Group takes with it what it has started, which would run for ten minutes.
func TestGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 600 & echo began; wait")
	Group(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("began\n"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, out) // until the last of them has
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(90 * time.Second):
		t.Error("what the command has started runs on")
	}
	cmd.Wait()
}

func TestEndedTellsLastWords(t *testing.T) {
	p, err := Start(t.Context(), Command{Args: []string{"sh", "-c", "echo cannot bind >&2; exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	err = p.Ended()
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "cannot bind") {
		t.Errorf("Ended() = %v", err)
	}
}

func TestRun(t *testing.T) {
	out, err := Run(t.Context(), Command{Args: []string{"sh", "-c", "echo $LAB_WORD; echo aside >&2"},
		Env: []string{"LAB_WORD=flint"}})
	if err != nil || out.Stdout != "flint\n" {
		t.Errorf("Run = %+v, %v", out, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, Command{Args: []string{"sleep", "60"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run past its deadline: %v", err)
	}
}

func TestPinned(t *testing.T) {
	if _, err := Find("taskset"); err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	out, err := Run(t.Context(), Command{Args: []string{"grep", "Cpus_allowed_list", "/proc/self/status"}, Cores: []int{firstCore(t)}})
	if err != nil {
		t.Fatal(err)
	}
	if list := strings.Fields(out.Stdout)[1]; strings.ContainsAny(list, ",-") {
		t.Errorf("may run on cores %s, want one core", list)
	}
}

// firstCore is a core this test may use; it need not be 0 in a container.
func firstCore(t *testing.T) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
	n := 0
	for _, c := range list {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func TestFindNamesThePackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	old := sbin
	sbin = nil
	defer func() { sbin = old }()
	for program, want := range map[string]string{
		"wrk":     "wrk is not installed; on Debian: apt-get install wrk",
		"taskset": "taskset is not installed; on Debian: apt-get install util-linux",
	} {
		if _, err := Find(program); err == nil || err.Error() != want {
			t.Errorf("Find(%q) = %v, want %q", program, err, want)
		}
	}
}
