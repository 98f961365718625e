package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/lab/link"
	"github.com/chert-http/chert/lab/lossy"
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

// Two short pages over a path that loses packets.
func TestH3Pages(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, for network namespaces and TUN devices")
	}
	need(t, "ip", "taskset")
	l, err := link.Open(t.Context(), link.Options{MTU: 1500, Congestion: "cubic", Path: &lossy.Path{Rate: 1e6, Queue: 1}})
	if err != nil {
		t.Skip("no namespaces or TUN devices here: ", err) // root of a container may not have them
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ownTemp(t)
	path := filepath.Join(t.TempDir(), "report.json")
	out := runsWell(t, "h3pages", "--rounds", "1", "--files", "3", "--delay", "5ms", "--loss", "0,2", "--json", path)
	f := readReport(t, path)
	if len(f.Pages) != 2 || !strings.Contains(out, "5ms each way, 2 % of packets lost") {
		t.Fatal(out)
	}
	for _, table := range f.Pages {
		var over []string
		for _, s := range table.Series {
			over = append(over, fmt.Sprint(s.Server, s.HTTP))
			// Over new connections a handshake is part of it: two more round trips at least, of TCP, or one, of QUIC.
			if len(s.New) != 1 || len(s.Warm) != 1 || s.New[0].Page < 30 || s.Warm[0].Page < 20 {
				t.Errorf("%+v", s)
			}
		}
		if want := []string{"chert33", "chert32", "chert31", "quicgo3", "quicgo2", "quicgo1"}; !slices.Equal(over, want) {
			t.Errorf("%q, want %q", over, want)
		}
	}
}

func TestH3PagesRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--loss", "100"}, {"--loss", "few"}, {"--loss", ""}, {"--http", "none"}, {"--http", "4"},
		{"--rounds", "0"}, {"--files", "0"}, {"--rate", "0"}, {"--queue", "0"}, {"--mtu", "1"},
	} {
		if _, text, err := runs(t.Context(), append([]string{"h3pages"}, args...)...); err == nil {
			t.Errorf("%q: %s", args, text)
		}
	}
}
