package websocket

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/websocket"
)

// TestAutobahn runs the fuzzing client of Autobahn|Testsuite, which needs Python 2.7:
// CHERT_WSTEST is the command that starts its wstest, such as
// "python2.7 -m autobahntestsuite.wstest". CHERT_WSTEST_CASES selects some of its
// cases, such as "1.*,2.*", and CHERT_WSTEST_REPORT is a folder for its reports.
func TestAutobahn(t *testing.T) {
	command := strings.Fields(os.Getenv("CHERT_WSTEST"))
	if len(command) == 0 {
		t.Skip("CHERT_WSTEST is not set")
	}
	cases := []string{"*"}
	if v := os.Getenv("CHERT_WSTEST_CASES"); v != "" {
		cases = strings.Split(v, ",")
	}
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		// Some cases have messages of 16 MiB, and some 65,536 fragments, of 64 bytes.
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnMessage: echo, MaxMessage: 32 << 20, MaxUnsent: 64 << 20,
			Compression: &websocket.Compression{Threshold: -1, Window: 15, ClientWindow: 15},
		})))
		dir := t.TempDir()
		if v := os.Getenv("CHERT_WSTEST_REPORT"); v != "" {
			dir = filepath.Join(v, strings.ReplaceAll(t.Name(), "/", "-"))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		spec, err := json.Marshal(map[string]any{
			"outdir":  dir,
			"servers": []any{map[string]any{"agent": "chert", "url": "ws://" + ts.ListenAddr}},
			"cases":   cases, "exclude-cases": []string{}, "exclude-agent-cases": map[string]any{},
		})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "spec.json")
		if err := os.WriteFile(file, spec, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(command[0], append(command[1:], "-m", "fuzzingclient", "-s", file)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		checkReport(t, filepath.Join(dir, "index.json"))
	})
}

// checkReport fails for each case that is not OK, informational or, in how it ended
// after an error, not strict.
func checkReport(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Chert map[string]struct{ Behavior, BehaviorClose string }
	}
	if err := json.Unmarshal(b, &report); err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for name, c := range report.Chert {
		count[c.Behavior]++
		if good := []string{"OK", "INFORMATIONAL"}; !slices.Contains(good, c.Behavior) || !slices.Contains(good, c.BehaviorClose) {
			t.Errorf("case %s: %s, closed %s", name, c.Behavior, c.BehaviorClose)
		}
	}
	t.Log(len(report.Chert), "cases:", count)
}
