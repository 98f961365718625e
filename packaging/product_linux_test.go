package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const testVersion = "v0.1.0-test.9"

// Of every module that a binary contains there is a licence, in the file of copyrights and in the bill of materials.
func TestMaterials(t *testing.T) {
	p := testProduct(t, testVersion)
	dist := t.TempDir()
	if err := p.materials(dist); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dist, "chert_0.1.0-test.9_linux_"+host.arch+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Component struct{ Name, Version string }
		}
		Components []struct {
			Name, Purl string
			Licenses   []struct{ Expression string }
		}
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.Metadata.Component.Version != testVersion ||
		len(bom.Components) != len(p.binaries[0].info.Deps)+1 {
		t.Errorf("%s %s of %s, with %d components", bom.BOMFormat, bom.SpecVersion, bom.Metadata.Component.Version,
			len(bom.Components))
	}
	for _, c := range bom.Components {
		if len(c.Licenses) != 1 || c.Licenses[0].Expression == "" || !strings.HasPrefix(c.Purl,
			"pkg:golang/"+c.Name+"@") {
			t.Errorf("%+v", c)
		}
		if !strings.Contains(string(p.copyright), "\nFiles: "+c.Name+"@") {
			t.Errorf("the file of copyrights does not have %s", c.Name)
		}
	}
}

// The binary has no part of a path of this machine in it.
func TestBinaryIsClean(t *testing.T) {
	p := testProduct(t, testVersion)
	data, err := os.ReadFile(p.binaries[0].path)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{p.root, p.temp} {
		if strings.Contains(string(data), path+"/") {
			t.Errorf("the binary contains %s", path)
		}
	}
}

func TestChecksums(t *testing.T) {
	p := testProduct(t, testVersion)
	dist := t.TempDir()
	if err := p.archives(dist); err != nil {
		t.Fatal(err)
	}
	if err := checksums(dist); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--strict", "--check", sumsName)
	cmd.Dir = dist
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), ".tar.gz: OK") {
		t.Errorf("%v: %s", err, out)
	}
}

// What lintian finds is either mended or in the overrides.
func TestLintian(t *testing.T) {
	need(t, "lintian", "lintian")
	debs, _ := filepath.Glob(filepath.Join(packagesOf(t, testVersion), "*.deb"))
	out, err := exec.CommandContext(t.Context(), "lintian", append([]string{"--fail-on=error,warning", "--allow-root"},
		debs...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// dockerfile returns the arguments of instructions, such as CMD.
func dockerfile(t *testing.T, instruction string) (words []string) {
	t.Helper()
	f, err := os.Open("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), instruction+" "); ok {
			_, list, _ := strings.Cut(rest, "[")
			if err := json.Unmarshal([]byte("["+list), &words); err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
			return words
		}
	}
	t.Fatalf("the Dockerfile has no %s", instruction)
	return nil
}

// copyState does what the COPY with --chown of the Dockerfile does, after the one of the root: a folder gets the owner
// only if the COPY makes it.
func copyState(t *testing.T, context, root string) {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^COPY --chown=65532:65532 (\S+) (\S+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the Dockerfile has no COPY with --chown")
	}
	to := filepath.Join(root, string(m[2]))
	if _, err := os.Lstat(to); err == nil {
		t.Fatalf("%s is in the root already, and COPY leaves its owner", m[2])
	}
	if err := os.Rename(filepath.Join(context, string(m[1])), to); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(to, 65532, 65532); err != nil {
		t.Fatal(err)
	}
}

// The root of the image is enough to run the commands of the Dockerfile, as its user and without any other file.
func TestImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root folder")
	}
	p := testProduct(t, testVersion)
	dist := t.TempDir()
	if err := p.image(dist); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dist, "image", "linux", host.arch)
	copyState(t, filepath.Join(dist, "image"), root)
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	inside := func(args []string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = "/"
		cmd.Env = []string{"PORT=" + port, "STATE_DIRECTORY=/var/lib/chert",
			"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return cmd
	}
	if out, err := inside([]string{"/usr/bin/chert", "cert", "--dir", "/var/lib/chert", "localhost"}).CombinedOutput(); err != nil {
		t.Errorf("the user's folder: %v %s", err, out)
	}
	check := dockerfile(t, "HEALTHCHECK")
	if out, err := inside(check).CombinedOutput(); err == nil || !strings.Contains(string(out), "connection refused") {
		t.Errorf("the health check without a server: %v %s", err, out)
	}
	server := inside(append(dockerfile(t, "ENTRYPOINT"), dockerfile(t, "CMD")...))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Signal(syscall.SIGTERM)
	var out []byte
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if out, err = inside(check).CombinedOutput(); err == nil {
			break
		}
	}
	if err != nil || !strings.Contains(string(out), ":"+port+"/: 200 OK") {
		t.Errorf("the health check: %v %s", err, out)
	}
}
