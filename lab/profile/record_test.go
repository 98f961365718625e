package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert/lab/chart"
)

const tables = "## A heading\n\n```\n" + `plain, 64 keep-alive connections: 7 rounds of 1 s, server on core 0, wrk on core 1
CPU: microseconds of the server's processor time per request, user + system. bytes: one response.

server       CPU best  CPU median  quartiles  user median
chert            4.13        4.15  4.15-4.23         1.09
hertz            4.83        4.91  4.89-5.28         1.58

ratio          CPU best
chert / hertz      0.85
` + "```\n\n```\n" + `plain, 1 keep-alive connections: 7 rounds of 1 s, server on core 0, wrk on core 1

server       CPU best  CPU median    quartiles  user median
chert           25.03       26.01  25.79-26.67         4.30
` + "```\n"

func TestRecorded(t *testing.T) {
	t.Parallel()
	got, err := recorded("plain", tables)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Lines) != 1 || got.Lines[0].Name != "chert" {
		t.Fatalf("%+v; only chert is in both tables", got.Lines)
	}
	line := got.Lines[0]
	if want := []int{1, 64}; len(line.X) != 2 || line.X[0] != want[0] || line.X[1] != want[1] {
		t.Errorf("connections %v, want %v", line.X, want)
	}
	if want := (chart.Value{Middle: 4.15, Low: 4.15, High: 4.23}); line.Values[1] != want {
		t.Errorf("%+v, want %+v", line.Values[1], want)
	}
	for text, want := range map[string]string{
		"": "0 tables",
		tables[:strings.Index(tables, "## ")+300]:                              "1 tables",
		strings.ReplaceAll(tables, "quartiles", "spread"):                      "without medians and quartiles",
		strings.ReplaceAll(tables, "4.15-", "a-"):                              "invalid syntax",
		strings.ReplaceAll(tables, "chert           25", "other           25"): "no server is in all",
	} {
		if _, err := recorded("plain", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q of:\n%s", err, want, text)
		}
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "2026-01-02.md")
	if err := os.WriteFile(file, []byte(tables), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Draw("plain", file, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "2026-01-02-plain.svg")); err != nil {
		t.Error(err)
	}
}
