package experiment

import (
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/lab/chart"
)

// Every row that was published is measured by an experiment that is there, or has a sentence why not.
func TestPublished(t *testing.T) {
	figures := published()
	if len(figures) < 50 {
		t.Errorf("%d figures", len(figures))
	}
	seen := map[string]bool{}
	for _, f := range figures {
		if seen[f.ID] {
			t.Errorf("%s is there twice", f.ID)
		}
		seen[f.ID] = true
		if f.What == "" || f.Published == "" || f.Server == "" {
			t.Errorf("%+v lacks something", f)
		}
		if (f.Experiment == "") == (f.Why == "") {
			t.Errorf("%s: experiment %q, and why not %q", f, f.Experiment, f.Why)
		}
		if _, ok := Find(f.Experiment); f.Experiment != "" && (!ok || f.Here == "") {
			t.Errorf("%s: no experiment %q, or nothing of it", f, f.Experiment)
		}
		if f.Why != "" && !strings.HasSuffix(f.Why, ".") {
			t.Errorf("%s: %q is no sentence", f, f.Why)
		}
	}
}

// A rule says nothing about what was not measured.
func TestNotMeasured(t *testing.T) {
	names := map[string]bool{}
	for _, e := range All() {
		if names[e.Name] || e.Title == "" || e.Asks == "" || len(e.Claims) == 0 || chapters[e.Name] == "" {
			t.Errorf("experiment %q lacks something, or is there twice", e.Name)
		}
		names[e.Name] = true
		for _, c := range e.Claims {
			if got := c.finding(Values{}); got.Verdict != NotMeasured || c.Text == "" || c.Rule == "" || c.Here == "" {
				t.Errorf("%s: %q: %+v", e.Name, c.Text, got)
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	tests := []struct {
		name   string
		values Values
		claim  string // its beginning
		want   Verdict
	}{
		{"stages", Values{"stage1/flat": 0.97}, "With one thread", Held},
		{"stages", Values{"stage1/flat": 0.7}, "With one thread", HeldInPart},
		{"stages", Values{"stage1/flat": 0.3}, "With one thread", Refuted},
		{"stages", Values{"stage1/grows": 15.6}, "There, latency", Held},
		{"stages", Values{"stage1/grows": 2}, "There, latency", Refuted},
		{"keepalive", Values{"stage3/kept/rate": 300, "stage3/closed/rate": 100}, "A connection that is kept", Held},
		{"keepalive", Values{"stage3/kept/rate": 700, "stage3/closed/rate": 100}, "A connection that is kept", Refuted},
		{"pools", Values{"saved": 95}, "About 95 %", Held},
		{"workers", Values{"naked/slow/goroutines": 507, "pool/slow/goroutines": 108}, "A pool holds memory", Held},
		{"workers", Values{"naked/slow/goroutines": 507, "pool/slow/goroutines": 507}, "A pool holds memory", HeldInPart},
		{"flint", Values{"flint/plain/limited/ok": 1498, "nethttp/plain/limited/ok": 1497, "chert/plain/limited/ok": 10000}, "The limiter", HeldInPart},
		{"goroutines", Values{"connections": 4096, "nethttp/idle/goroutines": 4101, "polling/idle/goroutines": 9}, "net/http has a goroutine", Held},
		{"static", Values{"dup-1k/cpu": 10, "small-1k/cpu": 10}, "Leaving out the dup", Refuted},
		{"iouring", Values{"ring-defer/64/cpu": 3.7, "epoll/64/cpu": 4}, "The four calls", HeldInPart},
		{"scaling", Values{"chert/residual": 40}, "A model", Refuted},
	}
	for _, tt := range tests {
		e, ok := Find(tt.name)
		if !ok {
			t.Fatalf("no experiment %q", tt.name)
		}
		i := slices.IndexFunc(e.Claims, func(c Claim) bool { return strings.HasPrefix(c.Text, tt.claim) })
		if i < 0 {
			t.Errorf("%s: no claim %q", tt.name, tt.claim)
			continue
		}
		if got := e.Claims[i].Judge(tt.values); got != tt.want {
			t.Errorf("%s: %q with %v: %s, want %s", tt.name, tt.claim, tt.values, got, tt.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.12345: "0.123", 1: "1", 4.5678: "4.57", 45.678: "45.7", 99.96: "100", 456.7: "457", 1234567: "1,234,567",
		-3.14159: "-3.14", math.NaN(): "–", math.Inf(1): "–"} {
		if got := number(x); got != want {
			t.Errorf("number(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestFill(t *testing.T) {
	v := Values{"a/rate": 20000, "b/rate": 10000, "zero": 0}
	for text, want := range map[string]string{
		"{a/rate} req/s, {a/rate:b/rate} times": "20,000 req/s, 2 times",
		"{missing}, {a/rate:missing}, {zero}":   "–, –, 0",
		"{a/rate:zero} and {open":               "– and {open",
		"nothing":                               "nothing",
	} {
		if got := v.fill(text); got != want {
			t.Errorf("fill(%q) = %q, want %q", text, got, want)
		}
	}
}

// The pages are made from a record alone, and the story has all experiments, measured or not.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	e, _ := Find("keepalive")
	r := Result{Values: Values{"stage3/kept/rate": 300, "stage3/closed/rate": 100, "not a number": math.NaN()},
		Tables: []Table{{"A table", []string{"server", "a|b"}, [][]string{{"chert", "1"}}}}, Faults: []string{"one failed"}}
	r.note("A note.")
	r.plot("bars", `Bars say "so"`, chart.Bars{Title: "bars", Axis: "things", Bars: []chart.Bar{{Name: "chert", Value: chart.Value{Middle: 1, Low: 1, High: 1}}}})
	rec := e.record(r, &Bench{Scale: Scale{Short: true}}, 0)
	if err := rec.save(dir, r.Plots); err != nil {
		t.Fatal(err)
	}
	if err := Story(dir); err != nil {
		t.Fatal(err)
	}
	page, story := read(t, dir, "keepalive.md"), read(t, dir, "README.md")
	for _, want := range []string{"# What keeping connections is worth", "**held**", "3 times", "51,105 req/s", "| chert | 1 |", `a\|b`, "A note.", "one failed",
		"plots/keepalive-bars-dark.svg", "Bars say &quot;so&quot;", "short form"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, want := range []string{"(keepalive.md)", "**held**", "Not measured yet: `go run -C lab . experiment stages`", "plots/keepalive-bars.svg", "cannot be measured on one machine"} {
		if !strings.Contains(story, want) {
			t.Errorf("the story lacks %q:\n%s", want, story)
		}
	}
	checkLinks(t, dir, page)
	checkLinks(t, dir, story)
}

var pictures = regexp.MustCompile(`(?:src|srcset)="([^"]+)"`)

// checkLinks looks for the files that a page shows.
func checkLinks(t *testing.T, dir, page string) {
	t.Helper()
	for _, m := range pictures.FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(dir, m[1])); err != nil {
			t.Error(err)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func decode(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}
