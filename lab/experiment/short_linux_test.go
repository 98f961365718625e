package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/perf"
	"github.com/chert-http/chert/lab/profile"
)

// Every experiment in its short form: it measures something, fails no request, and makes its page.
func TestExperiments(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for some minutes")
	}
	seats, err := profile.Seat(1)
	if err != nil {
		t.Skip(err)
	}
	programs := t.TempDir()
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			for _, program := range e.Helps {
				if _, err := child.Find(program); err != nil {
					missing(t, err)
				}
			}
			log := &lines{t: t}
			rec, result, err := Run(t.Context(), e, &Bench{Scale: Scale{Short: true}, Seats: seats, Dir: programs, Log: log})
			if unavailable := (*child.Missing)(nil); errors.As(err, &unavailable) {
				missing(t, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range rec.Faults {
				// wrk counts what takes longer than two seconds, which a busy machine may need.
				if !strings.Contains(fault, "connect 0, read 0, write 0,") || !strings.HasSuffix(fault, "status 0") {
					t.Error(fault)
				}
			}
			for _, note := range rec.Notes {
				// No package that could be installed would change that.
				if strings.Contains(note, perf.ErrKernel.Error()) {
					t.Skip(note)
				}
			}
			dir := t.TempDir()
			if err := rec.save(dir, result.Plots); err != nil {
				t.Fatal(err)
			}
			if len(rec.Tables) == 0 || len(rec.Plots) == 0 || len(rec.Values) == 0 {
				t.Errorf("%d tables, %d plots, %d values", len(rec.Tables), len(rec.Plots), len(rec.Values))
			}
			for _, table := range rec.Tables {
				for _, row := range table.Rows {
					if len(row) != len(table.Columns) {
						t.Errorf("%s: the row %q has not the columns %q", table.Title, row, table.Columns)
					}
				}
			}
			for _, p := range rec.Plots {
				decode(t, filepath.Join(dir, p.File+".png"))
			}
			checkLinks(t, dir, read(t, dir, e.Name+".md"))
			read(t, dir, e.Name+".json")
		})
	}
}

// missing skips a test, or fails it where everything is to be there.
func missing(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// lines writes progress to the test's log.
type lines struct{ t *testing.T }

func (l *lines) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}
