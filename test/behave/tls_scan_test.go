package behave

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert"
)

// testssl tries the known attacks on TLS and its implementations.
func TestTLSScan(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	needProgram(t, "testssl", "testssl.sh")
	ts, _ := programServer(t, chert.EngineLoops)
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.Command("testssl", "--quiet", "--warnings", "batch", "--color", "0", "--protocols", "--vulnerable", "--jsonfile", report, ts.ListenAddr)
	out, err := cmd.CombinedOutput() // its status is the number of findings
	b, e := os.ReadFile(report)
	if e != nil {
		t.Fatalf("%v, %v\n%s", err, e, out)
	}
	var findings []struct{ ID, Severity, Finding string }
	if err := json.Unmarshal(b, &findings); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	seen := map[string]bool{}
	for _, f := range findings {
		switch f.Severity {
		case "MEDIUM", "HIGH", "CRITICAL", "FATAL":
			// The certificate is the test's own.
			if !strings.HasPrefix(f.ID, "cert_") {
				t.Errorf("%s: %s: %s", f.Severity, f.ID, f.Finding)
			}
		case "OK":
			seen[f.ID] = true
		}
	}
	for _, id := range []string{"SSLv3", "TLS1_2", "TLS1_3", "heartbleed", "CCS", "ticketbleed", "ROBOT", "secure_renego", "secure_client_renego", "CRIME_TLS", "SWEET32"} {
		if !seen[id] {
			t.Errorf("%s: not tested, or not in order", id)
		}
	}
}
