package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestShort runs all of it for a few seconds, with few clients.
func TestShort(t *testing.T) {
	program := filepath.Join(t.TempDir(), "cluster")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, store := range []string{"redis", "nats"} {
		t.Run(store, func(t *testing.T) {
			if store == "redis" {
				need(t)
			}
			cmd := exec.CommandContext(t.Context(), program, "-store", store, "-time", "20s", "-quiet", "2s", "-clients", "90",
				"-topics", "10", "-rate", "50")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "twice: 0, out of order: 0, missing without a gap: 0") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// -h prints the flags, and is no failure.
func TestHelp(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	if err := run(t.Context(), []string{"-h"}, io.Discard, &log); err != nil || !strings.Contains(log.String(), "-store") {
		t.Errorf("%v: %s", err, &log)
	}
}

// TestCompare has three sides deliver, for a moment.
func TestCompare(t *testing.T) {
	need(t)
	program := filepath.Join(t.TempDir(), "cluster")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, "-rounds", "2", "-quiet", "1s", "-clients", "90", "-topics",
		"10", "-rate", "50", "-also", program).CombinedOutput()
	for _, want := range []string{"| memory | ", "| redis | ", "| redis by cluster | ", "redis to memory, delivering: median ",
		"redis by cluster to memory, delivering and publishing: median "} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v: %s, want %q", err, out, want)
		}
	}
}

func need(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("no redis-server; install the package redis-server")
		}
		t.Skip("no redis-server; install the package redis-server")
	}
}

// What is wrong with a client's events is found.
func TestVerdict(t *testing.T) {
	t.Parallel()
	kept := []id{{1, 0}, {2, 0}, {3, 0}, {4, 0}}
	event := func(ms uint64) record { return record{MS: ms} }
	gap, start := record{Kind: kindGap}, record{Kind: kindStart, MS: 1}
	for _, tt := range []struct {
		why                      string
		records                  []record
		twice, disorder, missing int
	}{
		{"all", []record{start, event(2), event(3), event(4)}, 0, 0, 0},
		{"one is missing", []record{start, event(2), event(4)}, 0, 0, 1},
		{"the first is missing", []record{start, event(3), event(4)}, 0, 0, 1},
		{"the end is missing", []record{start, event(2), event(3)}, 0, 0, 1},
		{"a gap", []record{start, event(2), gap, event(4)}, 0, 0, 0},
		{"a gap at the end", []record{start, event(2), gap}, 0, 0, 0},
		{"twice", []record{start, event(2), event(2), event(3), event(4)}, 1, 1, 0},
		{"twice after a gap", []record{start, event(2), event(3), gap, event(2), event(3), event(4)}, 2, 0, 0},
		{"out of order", []record{start, event(3), event(2), event(3), event(4)}, 1, 1, 1},
		{"one that is lost", []record{start, event(2), event(3), {MS: 3, Seq: 1}, event(4)}, 0, 0, 0},
	} {
		var v verdict
		v.client(tt.records, kept, 0, new(strings.Builder))
		if v.twice != tt.twice || v.disorder != tt.disorder || v.missing != tt.missing {
			t.Errorf("%s: %+v", tt.why, v)
		}
	}
}
