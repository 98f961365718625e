package simulate

import (
	"io"
	"strings"
	"testing"
)

// A seed runs, and what is printed says how fast.
func TestSim(t *testing.T) {
	var out strings.Builder
	if err := Main(t.Context(), []string{"-seed", "1", "-seeds", "1", "-requests", "100", "-model", "h1"}, &out, io.Discard); err != nil {
		t.Fatal(err, out.String())
	}
	if s := out.String(); !strings.Contains(s, "1 seeds, ") || !strings.Contains(s, "simulated seconds a second; faults: ") {
		t.Error(s)
	}
	out.Reset()
	if err := Main(t.Context(), []string{"-model", "none"}, &out, io.Discard); err == nil {
		t.Error("a model that there is not")
	}
}
