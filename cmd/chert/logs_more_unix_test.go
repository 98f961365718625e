//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Over many reloads, valid and not, with signals to open the logs again, no descriptor of a log
// stays open.
func TestLogsOverReloads(t *testing.T) {
	t.Parallel()
	const site = "[[site]]\nhosts = 'a.example'\nroot = 'www'\nlog = { file = '%s' }\n" +
		"[[site]]\nhosts = 'b.example'\nroot = 'www'\nlog = { file = 'shared.log' }\n"
	text := func(name string) string {
		return "log = { file = 'shared.log', format = 'common' }\n" + fmt.Sprintf(site, name)
	}
	p, file := startConfig(t, text("0.log"), map[string]string{"www/f": "f"})
	c := newClient(t, "")
	round := func(i int) {
		write(t, file, text(fmt.Sprintf("%d.log", i%3)))
		p.reload()
		p.signal(syscall.SIGUSR1)
		send(t, c, p.urls[0], "f", "a.example", nil)
		send(t, c, p.urls[0], "f", "b.example", nil)
		write(t, file, text("missing/x.log"))
		p.refuse()
		// It is refused after the logs are open.
		write(t, file, "listen = ['127.0.0.1:0']\n"+text("9.log")+"[[site]]\nhosts = 'c.example'\nroot = 'none'\n")
		p.refuse()
	}
	logsOpen := func() (n int) {
		dir := fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid)
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Skip(err)
		}
		for _, e := range all {
			if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.Contains(to, ".log") {
				n++
			}
		}
		return n
	}
	const rounds = 12
	for i := range rounds {
		round(i)
	}
	until(t, func() bool { return logsOpen() == 2 })
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	dir := filepath.Dir(file)
	own := linesOf(t, filepath.Join(dir, "0.log"), filepath.Join(dir, "1.log"), filepath.Join(dir, "2.log"))
	if shared := linesOf(t, filepath.Join(dir, "shared.log")); len(own) != rounds || len(shared) != rounds {
		t.Errorf("%d and %d lines, want %d each", len(own), len(shared), rounds)
	}
}

// A disk that is full is reported, and does not stop requests; a pipe is refused with its position.
func TestLogFull(t *testing.T) {
	t.Parallel()
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Skip("no /dev/full")
	}
	const text = "log = { file = '%s', format = 'common' }\n[[site]]\nhosts = '*'\nroot = 'www'\n"
	p, file := startConfig(t, fmt.Sprintf(text, "/dev/full"), map[string]string{"www/f": "f"})
	c := newClient(t, "")
	for range 3 {
		if r := send(t, c, p.urls[0], "f", "a", nil); r.status != 200 {
			t.Errorf("%+v", r)
		}
	}
	until(t, func() bool { return strings.Contains(p.stderr.String(), `the log "/dev/full" has lost `) })
	pipe := filepath.Join(filepath.Dir(file), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, file, fmt.Sprintf(text, "pipe"))
	if said := p.refuse(); !strings.Contains(said, "chert.toml:1:16: file: ") {
		t.Errorf("a pipe: %s", said)
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	if said := p.stderr.String(); !strings.Contains(said, "no space left") {
		t.Errorf("stderr: %s", said)
	}
}

// A route without a log has none, also if the file has none: the log of its site is not used.
// --quiet leaves files as they are.
func TestLogsQuiet(t *testing.T) {
	t.Parallel()
	for _, top := range []string{"", "log = 'off'\n", "log = 'common'\n"} {
		socket := filepath.Join(shortDir(t), "s") // with --quiet no line names an address
		file := filepath.Join(folder(t, map[string]string{"www/f": "f"}), "chert.toml")
		write(t, file, top+"[[site]]\nhosts = 'a.example'\nlog = { file = 'a.log', format = 'common' }\n"+
			"[[site.route]]\npath = '/quiet'\nrespond = 200\nlog = 'off'\n[[site.route]]\npath = '/{rest...}'\nrespond = 200\n"+
			"[[site]]\nhosts = 'b.example'\nroot = 'www'\nlog = 'json'\n")
		p := launch(t, "serve", "--config", file, "--quiet", "--listen", "unix:"+socket)
		until(t, func() bool { // the file is there since bind, before listen
			c, err := net.Dial("unix", socket)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
		c := newClient(t, socket)
		for range 2 {
			for _, path := range []string{"f", "quiet"} {
				send(t, c, "http://h/", path, "a.example", nil)
				send(t, c, "http://h/", path, "b.example", nil)
				send(t, c, "http://h/", path, "c.example", nil)
			}
		}
		p.signal(syscall.SIGTERM)
		p.waitFor(exitOK)
		if got := linesOf(t, filepath.Join(filepath.Dir(file), "a.log")); len(got) != 2 || strings.Contains(got[0]+got[1], "quiet") {
			t.Errorf("%q: %q", top, got)
		}
		if said := p.stderr.String(); said != "" {
			t.Errorf("%q: stderr: %s", top, said)
		}
	}
}

// Ids of a trusted proxy are used, and the client's address is in the same line, on both paths;
// those of others are not.
func TestLogIDsBehindProxy(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		file    string // of the whole file's log
		proxies string
		trusted bool
	}{{"request_id = true, ", "127.0.0.1", true}, {"", "127.0.0.1", true}, {"request_id = true, ", "192.0.2.1", false}} {
		p, file := startConfig(t, "trusted_proxies = ['"+way.proxies+"']\nlog = { "+way.file+"file = 'all.log', format = 'json' }\n"+
			"[[site]]\nhosts = 'a.example'\nroot = 'www'\nlog = { file = 'a.log', format = 'json', request_id = true }\n",
			map[string]string{"www/f": "f"})
		c := newClient(t, "")
		const requests = 4 // a file is loaded on the ordinary path
		for i := range requests {
			id := fmt.Sprintf("theirs-%d", i)
			r := send(t, c, p.urls[0], "f", "a.example", http.Header{"X-Request-Id": {id}, "X-Forwarded-For": {"203.0.113.7"}})
			if got := r.header.Values("X-Request-Id"); len(got) != 1 || (got[0] == id) != way.trusted {
				t.Errorf("%v: ids %q", way, got)
			}
		}
		p.signal(syscall.SIGTERM)
		p.waitFor(exitOK)
		got := linesOf(t, filepath.Join(filepath.Dir(file), "a.log"))
		if len(got) != requests {
			t.Errorf("%v: %q", way, got)
		}
		for _, line := range got {
			if strings.Contains(line, `"request_id":"theirs-`) != way.trusted ||
				strings.Contains(line, `"remote":"203.0.113.7`) != way.trusted || !strings.Contains(line, `"request_id":"`) {
				t.Errorf("%v: %s", way, line)
			}
		}
	}
}
