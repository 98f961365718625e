package autobahn

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/websocket"
)

// Command returns the command that starts wstest, which is CHERT_WSTEST, such as
// "python2.7 -m autobahntestsuite.wstest". Without it the test is skipped.
func Command(t testing.TB) []string {
	command := strings.Fields(os.Getenv("CHERT_WSTEST"))
	if len(command) == 0 {
		t.Skip("CHERT_WSTEST is not set")
	}
	return command
}

// Echo returns a handler for the client: it sends each message back. Some cases have messages of 16 MiB,
// and some 65,536 fragments, of 64 bytes.
func Echo(t testing.TB) *websocket.Handler {
	h, err := websocket.New(&websocket.Options{
		OnMessage:  func(c *websocket.Conn, typ websocket.Type, p []byte) { c.Send(typ, p) },
		MaxMessage: 32 << 20, MaxUnsent: 64 << 20,
		Compression: &websocket.Compression{Threshold: -1, Window: 15, ClientWindow: 15},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Run runs the client against the server at addr. CHERT_WSTEST_CASES selects some of its cases, such as
// "1.*,2.*", and CHERT_WSTEST_REPORT is a folder for its reports.
func Run(t *testing.T, command []string, addr string) {
	t.Helper()
	cases := []string{"*"}
	if v := os.Getenv("CHERT_WSTEST_CASES"); v != "" {
		cases = strings.Split(v, ",")
	}
	dir := t.TempDir()
	if v := os.Getenv("CHERT_WSTEST_REPORT"); v != "" {
		dir = filepath.Join(v, strings.ReplaceAll(t.Name(), "/", "-"))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := json.Marshal(map[string]any{
		"outdir":  dir,
		"servers": []any{map[string]any{"agent": "chert", "url": "ws://" + addr}},
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
	check(t, filepath.Join(dir, "index.json"))
}

// check fails for each case that is not OK, informational or, in how it ended
// after an error, not strict.
func check(t *testing.T, file string) {
	t.Helper()
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
	if len(report.Chert) == 0 {
		t.Fatal("no case was run")
	}
	good, count := []string{"OK", "INFORMATIONAL"}, make(map[string]int)
	for name, c := range report.Chert {
		count[c.Behavior]++
		if !slices.Contains(good, c.Behavior) || !slices.Contains(good, c.BehaviorClose) {
			t.Errorf("case %s: %s, closed %s", name, c.Behavior, c.BehaviorClose)
		}
	}
	t.Log(len(report.Chert), "cases:", count)
}
