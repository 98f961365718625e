package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Two versions are built, and installed, run, upgraded and removed in a copy of this system; see testdata/install.sh.
func TestInstall(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a copy of the system")
	}
	for program, pkg := range map[string]string{"dpkg": "dpkg", "adduser": "adduser", "rpm": "rpm",
		"unshare": "util-linux", "setpriv": "util-linux", "ip": "iproute2", "curl": "curl"} {
		need(t, program, pkg)
	}
	first, second := packagesOf(t, testVersion), packagesOf(t, "v0.1.0-test.10")
	for _, format := range []string{"deb", "rpm"} {
		t.Run(format, func(t *testing.T) {
			files := [2]string{}
			for i, dist := range []string{first, second} {
				all, err := filepath.Glob(filepath.Join(dist, "*."+format))
				if err != nil || len(all) != 1 {
					t.Fatalf("%q %v", all, err)
				}
				files[i] = all[0]
			}
			script(t, "install.sh", format, files[0], files[1], t.TempDir(), "v0.1.0-test.10")
		})
	}
}

// packagesOf builds the packages of a version for this machine, once, and returns their folder.
func packagesOf(t *testing.T, version string) string {
	t.Helper()
	p := testProduct(t, version)
	dist := filepath.Join(p.temp, "dist")
	if _, err := os.Stat(dist); err == nil {
		return dist
	}
	if err := os.Mkdir(dist, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.packages(dist); err != nil {
		t.Fatal(err)
	}
	return dist
}

// need skips a test whose program is missing, and fails it where all must be there.
func need(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CHERT_REQUIRE_ALL") != "" {
		t.Fatalf("%s is missing, of Debian's package %s", program, pkg)
	}
	t.Skipf("%s is missing, of Debian's package %s", program, pkg)
}

// systemd itself runs the packaged service, with all that the unit restricts; see testdata/systemd.sh.
func TestSystemd(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can boot a copy of the system")
	}
	need(t, "/lib/systemd/systemd", "systemd")
	var debs []string
	for _, version := range []string{testVersion, "v0.1.0-test.10"} {
		all, err := filepath.Glob(filepath.Join(packagesOf(t, version), "*.deb"))
		if err != nil || len(all) != 1 {
			t.Fatalf("%q %v", all, err)
		}
		debs = append(debs, all[0])
	}
	script(t, "systemd.sh", debs[0], debs[1], t.TempDir(), "v0.1.0-test.10")
}

// script runs one of testdata, which ends with 77 where it cannot do what it does.
func script(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", append([]string{filepath.Join("testdata", name)},
		args...)...).CombinedOutput()
	t.Logf("%s", out)
	if code, ok := errors.AsType[*exec.ExitError](err); ok && code.ExitCode() == 77 {
		t.Skip("this system does not permit a copy of itself")
	}
	if err != nil {
		t.Error(err)
	}
}
