package million

import (
	"bytes"
	"strings"
	"testing"
)

// A few real connections, with every figure.
func TestReal(t *testing.T) {
	var out, log bytes.Buffer
	if err := Run(t.Context(), []string{"-memory", "0", "-real", "400", "-idle", "100ms"}, &out, &log); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &log)
	}
	for _, want := range []string{"400 real connections", "what ended it: it is the number", "an event to the 200 streams", "Shutdown of a server with 400"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
