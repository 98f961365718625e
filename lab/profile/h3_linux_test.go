package profile

import (
	"path/filepath"
	"testing"
)

// HTTP/3 by chert and by quic-go's server, beside HTTP/2 by chert.
func TestH3(t *testing.T) {
	need(t, "taskset")
	for _, args := range [][]string{
		{"h3hello16", "--vs", "quicgo,chert", "--connections", "2", "--rounds", "1", "--seconds", "1"},
		{"h3file1k", "--vs", "quicgo,chertfiles", "--connections", "2", "--rounds", "1", "--seconds", "1"},
		{"h3download", "--vs", "quicgo,chert", "--rounds", "1", "--mib", "2"},
		{"h3idle", "--vs", "quicgo,chert", "--connections", "50"},
		{"sseidle", "--h3", "--connections", "100", "--streams", "10"},
	} {
		t.Run(args[0], func(t *testing.T) {
			ownTemp(t)
			path := filepath.Join(t.TempDir(), "report.json")
			runsWell(t, append(args, "--json", path)...)
			f := readReport(t, path)
			for _, c := range f.Comparisons {
				for _, s := range c.Series {
					if r := s.Rounds[0]; r.Requests < 32 || r.CPU <= 0 || r.P99 < r.P50 {
						t.Errorf("%s: %+v", s.Server, r)
					}
				}
			}
			for _, d := range f.Streams {
				for _, s := range d.Series {
					if r := s.Rounds[0]; r.CPU <= 0 || r.Rate <= 0 {
						t.Errorf("%s: %+v", s.Server, r)
					}
				}
			}
			if n := len(f.Comparisons) + len(f.Streams) + len(f.Held); n == 0 {
				t.Error("no table")
			}
		})
	}
}
