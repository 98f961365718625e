//go:build linux || darwin

package sys

import (
	"strings"
	"testing"
)

func TestFileLimits(t *testing.T) {
	l := Limits()
	if l.Soft < 1 || l.Hard < l.Soft || MaxFiles() > l.Soft {
		t.Errorf("%+v, MaxFiles %d", l, MaxFiles())
	}
	if err := RaiseFiles(); err != nil {
		t.Fatal(err)
	}
	if l := Limits(); l.Soft != l.Hard {
		t.Errorf("after RaiseFiles: %+v", l)
	}
}

func TestFileLimitsSay(t *testing.T) {
	for _, tt := range []struct {
		l     FileLimits
		files int
		says  string
	}{
		{FileLimits{Soft: 1024, Hard: 524288, NROpen: 1 << 20, FileMax: 1 << 24}, 1024, "the hard one is 524288"},
		{FileLimits{Soft: 65536, Hard: 65536, NROpen: 1 << 20, FileMax: 1 << 24}, 65536, "RLIMIT_NOFILE of 65536"},
		{FileLimits{Soft: 1 << 20, Hard: 1 << 20, NROpen: 1 << 20, FileMax: 1 << 24}, 1 << 20, "fs.nr_open"},
		{FileLimits{Soft: 1 << 20, Hard: 1 << 20, NROpen: 1 << 20, FileMax: 100_000}, 100_000, "fs.file-max of 100000"},
		{FileLimits{Soft: 256, Hard: noLimit}, 256, "RLIMIT_NOFILE of 256"},
		{FileLimits{Soft: noLimit, Hard: noLimit}, noLimit, "no limit"},
	} {
		if got := tt.l.Files(); got != tt.files || !strings.Contains(tt.l.String(), tt.says) {
			t.Errorf("%+v: %d, %q; want %d, %q", tt.l, got, tt.l, tt.files, tt.says)
		}
	}
}
