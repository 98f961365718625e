package load

import (
	"syscall"
	"testing"
)

func TestRaiseFiles(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Skip(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)
	got, err := RaiseFiles(1)
	var after syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &after); err != nil {
		t.Fatal(err)
	}
	if err != nil || after.Cur != before.Max || got < 1 {
		t.Errorf("RaiseFiles(1) = %d, %v; the limit is %d of %d", got, err, after.Cur, before.Max)
	}
	// More than the hard limit: it needs the right to, and may not fail without.
	if got, err := RaiseFiles(got + 1); err != nil || got < int(min(before.Max, 1<<30)) {
		t.Errorf("more: %d, %v", got, err)
	}
}
