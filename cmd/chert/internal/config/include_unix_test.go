//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe that nobody writes to would be waited for.
func TestIncludePipe(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"c.toml": "include = 'x/*'\n" + good, "www/": "", "x/": ""})
	if err := syscall.Mkfifo(filepath.Join(dir, "x", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(filepath.Join(dir, "c.toml"), ofRates(checks))
	if err == nil || !strings.HasSuffix(err.Error(), `c.toml:1:11: include: "x/*": "pipe": this is not a regular file`) {
		t.Error(err)
	}
}
