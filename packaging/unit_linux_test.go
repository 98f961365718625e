package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The score of the unit is 2.0 at most; lower is better, and that of a unit without restrictions is 9.6.
func TestUnitScore(t *testing.T) {
	t.Parallel()
	need(t, "systemd-analyze", "systemd")
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=20",
		"files/chert.service").CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	t.Log(lines[len(lines)-1])
}

// calls returns the system calls of a group, by systemd's own list.
func calls(t *testing.T, group string) map[string]bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "--no-pager", "syscall-filter", group).Output()
	if err != nil {
		t.Fatalf("%s: %v", group, err)
	}
	all := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, " ") || strings.HasPrefix(name, "#") || name == "":
		case strings.HasPrefix(name, "@"):
			for c := range calls(t, name) {
				all[c] = true
			}
		default:
			all[name] = true
		}
	}
	return all
}

// What the server does while it starts, serves with TLS, is reloaded and stops is what the unit permits: its system
// calls, the families of its sockets, and no memory that can be written and executed.
func TestUnitPermits(t *testing.T) {
	need(t, "systemd-analyze", "systemd")
	need(t, "strace", "strace")
	p := testProduct(t, testVersion)
	program := p.binaries[0].path
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	socket := filepath.Join(dir, "socket")
	log := filepath.Join(dir, "access.log")
	config := filepath.Join(dir, "chert.toml")
	text := `listen = ["127.0.0.1:0", "unix:` + socket + otherGroup(t) + `"]
log = { file = "` + log + `", format = "combined" }
[[site]]
hosts = ["*"]
root = "www"
tls_self = true
`
	if err := os.Mkdir(filepath.Join(dir, "www"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "www", "index.html"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-o", trace, program, "serve", "--config", config)
	cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`https://[^ ,\n]+`).FindString(line)
	for _, at := range []string{strings.TrimPrefix(strings.TrimSuffix(url, "/"), "https://"), "unix:" + socket} {
		if out, err := exec.CommandContext(t.Context(), program, "health", "https://localhost/", "--at", at,
			"-k").CombinedOutput(); err != nil {
			t.Errorf("%q: %v: %s", line, err, out)
		}
	}
	// strace passes on what it gets only if it is attached; the server is its child.
	server := strings.Fields(firstLine(t, trace))[0]
	for _, sig := range []string{"-HUP", "-TERM"} {
		if out, err := exec.CommandContext(t.Context(), "kill", sig, server).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server: %v", err)
	}
	judge(t, trace)
}

// otherGroup returns the option of a socket that gives it to another group than the process's, if there is one to which
// the user may give it.
func otherGroup(t *testing.T) string {
	t.Helper()
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		groups = []int{os.Getgid() + 1}
	}
	for _, gid := range groups {
		if gid != os.Getgid() {
			return fmt.Sprintf("?group=%d", gid)
		}
	}
	return ""
}

func firstLine(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// judge compares a trace with the unit.
func judge(t *testing.T, trace string) {
	t.Helper()
	unit, err := os.ReadFile("files/chert.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n", "MemoryDenyWriteExecute=true\n"} {
		if !strings.Contains(string(unit), line) {
			t.Fatalf("the unit does not have %q; bring this test up to date", line)
		}
	}
	allowed := map[string]bool{}
	for _, filter := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(@[\w-]+)$`).FindAllStringSubmatch(string(unit), -1) {
		for c := range calls(t, filter[2]) {
			allowed[c] = filter[1] == ""
		}
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`^\d+ +(\w+)\((.*)`)
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		m := call.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		switch name := m[1]; {
		case !allowed[name]:
			if !seen[name] {
				t.Errorf("the unit forbids %s", name)
			}
		case name == "socket" && !regexp.MustCompile(`^AF_(INET|INET6|UNIX),`).MatchString(m[2]):
			t.Errorf("the unit forbids %s", m[0])
		case (name == "mmap" || name == "mprotect") && strings.Contains(m[2], "PROT_WRITE|PROT_EXEC"):
			t.Errorf("the unit forbids %s", m[0])
		}
		seen[m[1]] = true
	}
	if !seen["accept4"] || !seen["epoll_create1"] && !seen["epoll_create"] {
		t.Errorf("the trace has no server: %v", seen)
	}
}
