package profile

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/report"
)

func TestNames(t *testing.T) {
	tests := []struct {
		server, vs string
		want       []string
	}{
		{"chert", "nethttp,nginx", []string{"chert", "nethttp", "nginx"}},
		{"chert", "", []string{"chert"}},
		{"nethttp", " nginx, nethttp ,nginx", []string{"nethttp", "nginx"}}, // none twice
	}
	for _, tt := range tests {
		c := common{server: tt.server, vs: tt.vs}
		if got := c.names(); !slices.Equal(got, tt.want) {
			t.Errorf("%q vs %q: %q, want %q", tt.server, tt.vs, got, tt.want)
		}
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
	if n, message := clamp(10000, 20000); n != 10000 || message != "" {
		t.Errorf("enough files: %d, %q", n, message)
	}
	n, message := clamp(10000, 4096)
	if n != 4096-spareFiles || !strings.Contains(message, "4096") || !strings.Contains(message, "instead of 10000") {
		t.Errorf("too few files: %d, %q", n, message)
	}
	if n, _ := clamp(10000, 10); n != 1 {
		t.Errorf("hardly any files: %d", n)
	}
}

func TestPick(t *testing.T) {
	cores, err := measure.Allowed()
	if err != nil {
		t.Skip(err)
	}
	if got, err := pick(-1, 0); err != nil || got != cores[0] {
		t.Errorf("default: %d, %v", got, err)
	}
	if got, err := pick(cores[len(cores)-1], 0); err != nil || got != cores[len(cores)-1] {
		t.Errorf("flagged: %d, %v", got, err)
	}
	if _, err := pick(-1, len(cores)); err == nil {
		t.Error("one core too many: no error")
	}
	if _, err := pick(1<<20, 0); err == nil {
		t.Error("no such core: no error")
	}
}

func TestRoundOf(t *testing.T) {
	res := load.Result{Requests: 200000, PerSecond: 100000, Errors: load.Errors{Read: 2, Status: 1},
		Latency: load.Latency{P50: 142 * time.Microsecond, P99: 3580 * time.Microsecond}}
	used := measure.CPU{Total: 1600 * time.Millisecond, User: 400 * time.Millisecond, System: 1200 * time.Millisecond}
	want := report.Round{CPU: 8, User: 2, PerSecond: 100000, Requests: 200000, Errors: 3, Steal: 1.5, Others: 7, P50: 142, P99: 3580}
	if got := roundOf(res, cost{used, 1.5, 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := roundOf(load.Result{}, cost{cpu: used}); got.CPU != 0 {
		t.Errorf("no requests: %+v", got)
	}
}

func TestParseFlags(t *testing.T) {
	f := flag.NewFlagSet("hello", flag.ContinueOnError)
	if err := parse(f, []string{"nginx"}); err == nil || !strings.Contains(err.Error(), "nginx") {
		t.Errorf("parse = %v", err)
	}
}
