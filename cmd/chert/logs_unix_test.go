//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const logsFile = `
[log]
file = "all.log"
format = "common"
[[site]]
hosts = "a.example"
root = "www"
[[site]]
hosts = "b.example"
log = { file = "b.log", format = "json", fields = ["path", "status", "request_id"], skip = ["/healthz", "*.css"], request_id = true }
[[site.route]]
path = "/healthz"
respond = 200
[[site.route]]
path = "/quiet"
respond = 200
log = "off"
[[site.route]]
path = "/own"
respond = 200
log = { file = "own.log", format = "common" }
[[site.route]]
path = "/sampled"
respond = 200
log = { sample = 1000000 }
`

// Each request is in the log of its route, its site or the file.
func TestLogsOfSites(t *testing.T) {
	t.Parallel()
	p, file := startConfig(t, logsFile, map[string]string{"www/f": "f"})
	dir := filepath.Dir(file)
	c := newClient(t, "")
	for _, r := range []struct{ host, path string }{
		{"a.example", "f"}, {"unknown.example", "f"}, {"b.example", "healthz"}, {"b.example", "x.css"},
		{"b.example", "quiet"}, {"b.example", "own"}, {"b.example", "none"}, {"b.example", "sampled"},
	} {
		res := send(t, c, p.urls[0], r.path, r.host, http.Header{"X-Request-Id": {"forged"}})
		if id := res.header.Get("X-Request-Id"); (id != "") != (r.host == "b.example") || id == "forged" {
			t.Errorf("%v: the id %q", r, id)
		}
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	for name, want := range map[string][]string{
		"all.log": {`"GET /f HTTP/1.1" 200 1`, `"GET /f HTTP/1.1" 421 `},
		"b.log":   {`"path":"/none","status":404,"request_id":"`},
		"own.log": {`"GET /own HTTP/1.1" 200 - `},
	} {
		got := linesOf(t, filepath.Join(dir, name))
		if len(got) != len(want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: line %q, want %q", name, got[i], want[i])
			}
		}
	}
	if said := p.stderr.String(); strings.Contains(said, "GET") {
		t.Errorf("stderr has requests: %s", said)
	}
}

// While logs are renamed, and opened again by both signals, no line is lost.
func TestLogRotation(t *testing.T) {
	t.Parallel()
	p, file := startConfig(t, "log = { file = 'all.log', format = 'common' }\n[[site]]\nhosts = '*'\nroot = 'www'\n",
		map[string]string{"www/f": "f"})
	log := filepath.Join(filepath.Dir(file), "all.log")
	files := []string{log}
	stop, sent := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { sent <- n }()
		for c := newClient(t, ""); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			res, err := c.Get(fmt.Sprintf("%sf?%d", p.urls[0], n))
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
		}
	}()
	for i := range 6 {
		until(t, func() bool { return len(linesOf(t, log)) > 0 })
		old := fmt.Sprintf("%s.%d", log, i)
		if err := os.Rename(log, old); err != nil {
			t.Fatal(err)
		}
		files = append(files, old)
		if i%2 == 0 {
			p.signal(syscall.SIGUSR1)
		} else {
			p.reload()
		}
	}
	until(t, func() bool { return len(linesOf(t, log)) > 0 })
	close(stop)
	n := <-sent
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	got := linesOf(t, files...)
	for _, line := range got {
		if !strings.HasSuffix(line, "\"GET /f HTTP/1.1\" 200 1\n") {
			t.Errorf("torn: %q", line)
		}
	}
	if len(got) != n {
		t.Errorf("%d lines of %d requests", len(got), n)
	}
}

// logrotate works as docs/deployment.md has it.
func TestLogrotate(t *testing.T) {
	t.Parallel()
	rotate, err := exec.LookPath("logrotate")
	if err != nil {
		rotate, err = exec.LookPath("/usr/sbin/logrotate")
	}
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal(err)
		}
		t.Skip("no logrotate: Debian's package logrotate")
	}
	p, file := startConfig(t, "log = { file = 'access.log', format = 'common' }\n[[site]]\nhosts = '*'\nroot = 'www'\n",
		map[string]string{"www/f": "f"})
	dir := filepath.Dir(file)
	page, err := os.ReadFile("../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := os.ReadFile("../../packaging/files/chert.logrotate")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```logrotate\n"+string(packaged)+"```") {
		t.Error("docs/deployment.md does not have the file of the packages")
	}
	text := strings.NewReplacer("/var/log/chert/*.log", filepath.Join(dir, "*.log"), "\tsu chert chert\n", "",
		"systemctl kill -s USR1 chert.service", "kill -USR1 "+fmt.Sprint(p.cmd.Process.Pid)).Replace(string(packaged))
	if strings.Contains(text, "systemctl") || strings.Contains(text, "su chert") || !strings.Contains(text, dir) {
		t.Fatalf("the file has changed: %s", text)
	}
	conf, state := filepath.Join(dir, "rotate.conf"), filepath.Join(dir, "state")
	write(t, conf, text)
	if err := os.Chmod(conf, 0o644); err != nil {
		t.Fatal(err)
	}
	log, c := filepath.Join(dir, "access.log"), newClient(t, "")
	send(t, c, p.urls[0], "f", "a", nil)
	until(t, func() bool { return len(linesOf(t, log)) == 1 })
	if out, err := exec.Command(rotate, "-f", "-s", state, conf).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	until(t, func() bool { _, err := os.Stat(log); return err == nil })
	until(t, func() bool { send(t, c, p.urls[0], "f", "a", nil); return len(linesOf(t, log)) > 0 })
	if len(linesOf(t, log+".1")) == 0 {
		t.Error("the old file is empty")
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
}

// A file that cannot be opened again stays in use, and that is said.
func TestReopenFailsLoudly(t *testing.T) {
	t.Parallel()
	p, file := startConfig(t, "log = { file = 'logs/a.log', format = 'common' }\n[[site]]\nhosts = '*'\nroot = 'www'\n",
		map[string]string{"www/f": "f", "logs/x": ""})
	dir := filepath.Dir(file)
	if err := os.Rename(filepath.Join(dir, "logs"), filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR1)
	until(t, func() bool { return strings.Contains(p.stderr.String(), "cannot be opened again") })
	send(t, newClient(t, ""), p.urls[0], "f", "a", nil)
	until(t, func() bool { return len(linesOf(t, filepath.Join(dir, "gone", "a.log"))) == 1 })
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
}
