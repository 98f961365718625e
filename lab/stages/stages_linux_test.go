package stages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/stages/proof"
)

// most is how many lines a stage may have, with all that it imports from here.
const most = 200

func TestShort(t *testing.T) {
	shared := lines(t, "socket/socket_linux.go")
	for stage, files := range map[string][]string{"1": nil, "2": nil, "3": {"loop/loop_linux.go"}, "4": {"loop/loop_linux.go"}} {
		n := lines(t, stage+"/main_linux.go")
		for _, file := range files {
			n += lines(t, file)
		}
		if n >= most {
			t.Errorf("stage %s has %d lines, and %d that all share", stage, n, shared)
		}
		if _, err := os.Stat(filepath.Join(stage, "README.md")); err != nil {
			t.Error(err)
		}
	}
}

func lines(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func TestStages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds four programs")
	}
	for _, tt := range []struct {
		stage string
		keeps bool
	}{{"1", false}, {"2", false}, {"3", true}, {"4", true}} {
		t.Run(tt.stage, func(t *testing.T) {
			t.Parallel()
			spec := rival.Program("stage"+tt.stage, "stages/"+tt.stage)
			spec.Closes = !tt.keeps
			ready, err := rival.Ready(t.Context(), t.TempDir(), []rival.Spec{spec})
			if err != nil {
				t.Fatal(err)
			}
			s, err := rival.Start(t.Context(), ready[0], rival.Room{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			proof.Server(t, s.Addr, tt.keeps)
		})
	}
}
