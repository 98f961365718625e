package child

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// debian names the package that holds a program, where the two names differ.
var debian = map[string]string{
	"taskset": "util-linux",
	"ab":      "apache2-utils",
	"h2load":  "nghttp2-client",
	"perf":    "linux-perf",
	"initdb":  "postgresql",
	"ip":      "iproute2",
}

// Missing is the error of a program that is not installed.
type Missing struct {
	Program string
	Package string // Debian's
}

func (m *Missing) Error() string {
	return fmt.Sprintf("%s is not installed; on Debian: apt-get install %s", m.Program, m.Package)
}

// sbin is searched after PATH: Debian keeps servers there, out of the PATH of ordinary users.
var sbin = []string{"/usr/sbin", "/usr/local/sbin"}

// Find returns the path of an installed program, or a *Missing.
func Find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range sbin {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	pkg := debian[program]
	if pkg == "" {
		pkg = program
	}
	return "", &Missing{Program: program, Package: pkg}
}
