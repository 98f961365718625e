package measure

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " S 5858 5862 5858 0 -1 4194624 548 0 1 0 38 174 2 3 20 0 1 0 76860 13578240 1401\n"
	want := processStat{parent: 5858, user: 380 * time.Millisecond, system: 1740 * time.Millisecond, waited: 50 * time.Millisecond}
	tests := []struct {
		name string // why
		text string
	}{
		{"plain", "5864 (nginx)" + rest},
		{"spaces", "5864 (nginx: worker p)" + rest},
		{"closing parenthesis", "5864 (a) S 1 2 3)" + rest},
		{"only parentheses", "5864 (()())" + rest},
		{"empty name", "5864 ()" + rest},
		{"newline in the name", "5864 (a\nb)" + rest},
	}
	for _, tt := range tests {
		got, err := parseStat(tt.text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, want)
		}
	}
	for _, bad := range []string{"", "5864", "5864 (nginx)", "5864 (nginx) S 1 2 3", strings.Replace(tests[0].text, "174", "x", 1)} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("parseStat(%q): no error", bad)
		}
	}
}

const procStat = `cpu  2619 0 1541 148587 422 0 75 12 0 0
cpu0 1000 0 500 80000 200 0 40 10 0 0
cpu1 1619 0 1041 68587 222 0 35 2 7 0
cpu10 1 1 1 1 1 1 1 1 0 0
intr 12 0
`

func TestParseCores(t *testing.T) {
	got, err := parseCores(procStat, []int{0, 1})
	want := Cores{all: 81750 + 71506, idle: 80200 + 68809, stolen: 12}
	if err != nil || got != want {
		t.Errorf("parseCores = %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseCores(procStat, []int{2}); err == nil {
		t.Error("core 2: no error")
	}
	if _, err := parseCores("cpu0 1 2 3\n", []int{0}); err == nil {
		t.Error("short line: no error")
	}
}

func TestStealSince(t *testing.T) {
	before := Cores{all: 1000, stolen: 10}
	if got := (Cores{all: 1200, stolen: 15}).StealSince(before); got != 2.5 {
		t.Errorf("steal %v %%, want 2.5", got)
	}
	if got := before.StealSince(before); got != 0 {
		t.Errorf("steal over no time %v %%, want 0", got)
	}
}

func TestOthersSince(t *testing.T) {
	before := Cores{all: 1000, idle: 500, stolen: 10}
	after := Cores{all: 1200, idle: 540, stolen: 20} // busy: 200 - 40 - 10
	if got := after.OthersSince(before, 1200*time.Millisecond); got != 15 {
		t.Errorf("others %v %%, want 15", got)
	}
	if got := after.OthersSince(before, 1600*time.Millisecond); got != 0 {
		t.Errorf("more accounted for than counted: %v %%, want 0", got)
	}
}

func TestParseCoreList(t *testing.T) {
	tests := []struct {
		list string
		want []int // nil: an error
	}{
		{"0", []int{0}},
		{"0-1", []int{0, 1}},
		{"2,4-6,9", []int{2, 4, 5, 6, 9}},
		{"", nil},
		{"3-1", nil},
		{"a", nil},
	}
	for _, tt := range tests {
		got, err := parseCoreList(tt.list)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("parseCoreList(%q) = %v, %v, want %v", tt.list, got, err, tt.want)
		}
	}
}

func TestParseKiB(t *testing.T) {
	rollup := "5586f2c00000-7ffd1f9e6000 ---p 00000000 00:00 0    [rollup]\nRss:                1544 kB\nPss:                 151 kB\n"
	if got, err := parseKiB(rollup, "Rss:"); err != nil || got != 1544<<10 {
		t.Errorf("smaps_rollup: %d, %v", got, err)
	}
	status := "Name:\tRss:\nVmHWM:\t    1600 kB\nVmRSS:\t    1540 kB\n"
	if got, err := parseKiB(status, "VmRSS:"); err != nil || got != 1540<<10 {
		t.Errorf("status: %d, %v", got, err)
	}
	if _, err := parseKiB(status, "Rss:"); err == nil {
		t.Error("a missing line: no error")
	}
}
