//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// A configuration that is a pipe now is not waited for, so that signals count as before.
func TestReloadPipe(t *testing.T) {
	t.Parallel()
	p, file := startConfig(t, "[[site]]\nhosts = '*'\nroot = 'www'\n", map[string]string{"www/f": "f"})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := p.refuse(); !strings.Contains(said, "chert: reload: "+file+": a pipe cannot be read again\n") {
		t.Errorf("stderr %q", said)
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
}
