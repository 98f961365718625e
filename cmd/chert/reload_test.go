package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// startConfig starts chert with a configuration file beside the given files.
func startConfig(t *testing.T, text string, files map[string]string, args ...string) (p *proc, file string) {
	t.Helper()
	file = filepath.Join(folder(t, files), "chert.toml")
	write(t, file, text)
	return start(t, append([]string{"--config", file, "--listen", "127.0.0.1:0"}, args...)...), file
}

// getHost fetches a page of a site.
func getHost(t *testing.T, c *http.Client, base, host, path string) (int, string) {
	t.Helper()
	r := send(t, c, base, path, host, nil)
	return r.status, r.body
}

// reload makes the server read its configuration again and waits until it has.
func (p *proc) reload() {
	p.t.Helper()
	p.signal(syscall.SIGHUP)
	if line := p.line(); !strings.HasPrefix(line, "chert: reloaded; ") {
		p.t.Fatalf("line %q", line)
	}
}

// refuse makes the server read an invalid configuration, and waits until it has reported that.
func (p *proc) refuse() (said string) {
	p.t.Helper()
	before := len(p.stderr.String())
	p.signal(syscall.SIGHUP)
	until(p.t, func() bool {
		said = p.stderr.String()[before:]
		return strings.Contains(said, "chert: reload: serving goes on as before\n")
	})
	return said
}

func TestConfigSites(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, `
[[site]]
hosts = ["a.example", "*.a.example"]
root = "a"
[[site]]
hosts = ["[::1]"]
root = "b"
[[redirect]]
hosts = ["old.example"]
to = "https://a.example{uri}"
`, map[string]string{"a/f": "of a", "b/f": "of b"})
	c := newClient(t, "")
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for host, want := range map[string]struct {
		status int
		body   string
	}{
		"a.example":         {200, "of a"},
		"A.example.:80":     {200, "of a"},
		"x.y.a.example":     {200, "of a"},
		"[::1]":             {200, "of b"},
		"[0:0::1]:8080":     {200, "of b"},
		"old.example":       {301, ""},
		"127.0.0.1":         {421, "421 no site of that name is served here\n"},
		"a.example.evil":    {421, "421 no site of that name is served here\n"},
		"xa.example":        {421, "421 no site of that name is served here\n"},
		"OLD.example.:1234": {301, ""},
	} {
		for range 3 { // the first takes the ordinary path, the others may not
			if status, body := getHost(t, c, p.urls[0], host, "f"); status != want.status || body != want.body {
				t.Errorf("%s: %d %q, want %v", host, status, body, want)
			}
		}
	}
}

// keepAlive sends requests over one connection until stop is set, and fails the test if the connection does not last.
func keepAlive(t *testing.T, base string, stop *atomic.Bool, check func(status int, body string) bool) {
	c := dial(t, base)
	r := bufio.NewReader(c)
	for n := 0; !stop.Load(); n++ {
		fmt.Fprintf(c, "GET /f HTTP/1.1\r\nHost: a.example\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Errorf("request %d of the connection: %v", n, err)
			return
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || !check(res.StatusCode, string(body)) {
			t.Errorf("request %d of the connection: %d %q %v", n, res.StatusCode, body, err)
			return
		}
	}
}

// After fifty reloads no request has failed, no connection is lost, and nothing leaks.
func TestReloadUnderLoad(t *testing.T) {
	needSignals(t)
	t.Parallel()
	site := func(i int) string {
		return fmt.Sprintf("[[site]]\nhosts = ['a.example']\nroot = 'v%d'\n", i%2)
	}
	p, file := startConfig(t, site(0), map[string]string{"v0/f": "body 0", "v1/f": "body 1"})
	c := newClient(t, "")
	var stop atomic.Bool
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			keepAlive(t, p.urls[0], &stop, func(status int, body string) bool {
				return status == 200 && (body == "body 0" || body == "body 1")
			})
		})
	}
	var before int
	for i := 1; i <= 50; i++ {
		write(t, file, site(i))
		p.reload()
		if status, body := getHost(t, c, p.urls[0], "a.example", "f"); status != 200 || body != fmt.Sprintf("body %d", i%2) {
			t.Errorf("reload %d: %d %q", i, status, body)
		}
		if i == 10 { // all there is is open by now, and what was replaced may be too
			until(t, func() bool { before = descriptors(t, p); return before < 100 })
		}
	}
	stop.Store(true)
	clients.Wait()
	until(t, func() bool { return descriptors(t, p) <= before })
	if len(p.stderr.String()) > 0 {
		t.Errorf("stderr: %s", p.stderr.String())
	}
	// The runtime's response to SIGABRT: all goroutines.
	p.signal(syscall.SIGABRT)
	p.wait()
	most := 30 + 4*runtime.GOMAXPROCS(0) // of loops and the collector there are some for each processor
	if n := strings.Count(p.stderr.String(), "\ngoroutine "); n == 0 || n > most || strings.Contains(p.stderr.String(), ".retire(") {
		t.Errorf("%d goroutines:\n%s", n, p.stderr.String())
	}
}

// descriptors counts the open descriptors of the process; 0 where that cannot be known.
func descriptors(t *testing.T, p *proc) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(all)
}

func TestWrongConfigChangesNothing(t *testing.T) {
	needSignals(t)
	t.Parallel()
	good := "[[site]]\nhosts = ['*']\nroot = 'a'\n"
	p, file := startConfig(t, good, map[string]string{"a/f": "as before", "b/f": "changed"})
	c := newClient(t, "")
	for _, wrong := range []struct{ text, want string }{
		{"[[site]]\n", `FILE:1:3: [[site]] has no hosts; "*" stands for all that no other site is for` + "\n" +
			`FILE:1:3: [[site]] has no root, the folder to serve, no proxy and no [[site.route]]` + "\n"},
		{"[[site]\n", "FILE:1:"},
		{good + "nonsense = 1\n", `FILE:4:1: unknown key "nonsense" in [[site]]` + "\n"},
	} {
		write(t, file, wrong.text)
		said := strings.ReplaceAll(p.refuse(), "chert: reload: "+file+":", "FILE:")
		if !strings.HasPrefix(said, wrong.want) {
			t.Errorf("stderr %q, want %q", said, wrong.want)
		}
		if status, body := getHost(t, c, p.urls[0], "x", "f"); status != 200 || body != "as before" {
			t.Errorf("%d %q", status, body)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if said := p.refuse(); !strings.Contains(said, file+": no such file\n") {
		t.Errorf("stderr %q", said)
	}
	write(t, file, strings.Replace(good, "'a'", "'b'", 1))
	p.reload()
	if status, body := getHost(t, c, p.urls[0], "x", "f"); status != 200 || body != "changed" {
		t.Errorf("%d %q", status, body)
	}
}

func TestWrongConfigAtStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.toml")
	write(t, file, "[[site]]\nhosts = ['*']\n")
	oneLine(t, exitFailure, file+":1:3: [[site]] has no root, the folder to serve, no proxy and no [[site.route]]\nchert: 1 error, so nothing is served", "serve", "-c", file)
}

// A download that began before a reload continues to its end.
func TestReloadKeepsDownload(t *testing.T) {
	needSignals(t)
	t.Parallel()
	p, d := slowDownload(t)
	p.reload()
	p.reload()
	if err := d.finish(); err != nil {
		t.Error(err)
	}
}

func TestReloadListen(t *testing.T) {
	needSignals(t)
	t.Parallel()
	dir := shortDir(t)
	write(t, filepath.Join(dir, "www", "f"), "x")
	file := filepath.Join(dir, "c.toml")
	config := func(listen string) string {
		return "listen = [" + listen + "]\n[[site]]\nhosts = '*'\nroot = 'www'\n"
	}
	write(t, file, config("'127.0.0.1:0'"))
	p := start(t, "--config", file)
	c := newClient(t, "")
	get(t, c, p.urls[0]+"f")

	write(t, file, config("'127.0.0.1:0', 'unix:s'"))
	p.signal(syscall.SIGHUP)
	want := "chert: reloaded; serving 1 site of " + quote(file) + " at " + p.urls[0] + " and unix:" + filepath.Join(dir, "s") + "\n"
	if line := p.line(); line != want {
		t.Errorf("line %q, want %q", line, want)
	}
	unix := newClient(t, filepath.Join(dir, "s"))
	if status, _ := get(t, unix, "http://unix/f"); status != 200 {
		t.Errorf("the new socket: status %d", status)
	}

	// What cannot be opened changes nothing.
	write(t, filepath.Join(dir, "taken"), "")
	write(t, file, config("'unix:new', 'unix:taken'"))
	if said := p.refuse(); !strings.Contains(said, "exists and is not a socket") {
		t.Errorf("stderr %q", said)
	}
	if _, err := os.Lstat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
		t.Errorf("the socket that was opened first is still there: %v", err)
	}

	write(t, file, config("'127.0.0.1:0'"))
	p.reload()
	until(t, func() bool {
		_, err := os.Lstat(filepath.Join(dir, "s"))
		return os.IsNotExist(err)
	})
	if status, _ := get(t, c, p.urls[0]+"f"); status != 200 {
		t.Errorf("the old port: status %d", status)
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
}

// What cannot be opened at a reload is explained by its cause. A restart is advised only where it helps.
func TestOverlappingListen(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	own := l.Addr().String()
	_, port, _ := net.SplitHostPort(own)
	const restart = "; restart chert for that"
	while := " while " + own + " is open" + restart
	tests := []struct {
		e    endpoint
		want string // its beginning, and all of it if it advises a restart
	}{
		{endpoint{address: ":" + port}, "cannot listen on :" + port + while},
		{endpoint{address: ":" + port, upgrade: true}, "cannot listen on :" + port + while},
		{endpoint{address: "localhost:" + port}, "cannot listen on localhost:" + port + while},
		{endpoint{address: own, tls: true}, "whether " + own + " speaks TLS cannot change while it is open" + restart},
		{endpoint{address: own, upgrade: true}, "whether " + own + " redirects to TLS cannot change while it is open" + restart},
		{endpoint{address: "192.0.2.1:" + port}, "cannot listen on 192.0.2.1:" + port + ", which is no address of this machine"},
	}
	if other, err := net.Listen("tcp", "127.0.0.2:"+port); err == nil { // not everywhere it is an address
		defer other.Close()
		tests = append(tests, struct {
			e    endpoint
			want string
		}{endpoint{address: "127.0.0.2:" + port}, "127.0.0.2:" + port + " is already in use; stop the program that holds it"})
	}
	s := &service{srv: &chert.Server{}, bindings: []*binding{{listener: listener{Listener: l}, at: endpoint{network: "tcp", address: own}}}}
	for _, tt := range tests {
		tt.e.network = "tcp"
		_, _, err := s.bind([]endpoint{tt.e}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), restart) && err.Error() != tt.want {
			t.Errorf("%+v: %v, want %s", tt.e, err, tt.want)
		}
	}
}

// The socket of a process is at its path still when the file wants it with TLS.
func TestReloadSocketTLS(t *testing.T) {
	t.Parallel()
	s := &service{srv: &chert.Server{}}
	e := endpoint{network: "unix", address: filepath.Join(shortDir(t), "s")}
	var err error
	if s.bindings, _, err = s.bind([]endpoint{e}, nil); err != nil {
		t.Fatal(err)
	}
	defer s.unbind(s.bindings)
	e.tls = true
	want := "whether " + e.String() + " speaks TLS cannot change while it is open; restart chert for that"
	if _, _, err := s.bind([]endpoint{e}, nil); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Without a configuration file the folder is opened again.
func TestReloadFolder(t *testing.T) {
	needSignals(t)
	t.Parallel()
	top := folder(t, map[string]string{"www/f": "old", "new/f": "new"})
	www := filepath.Join(top, "www")
	p := start(t, www, "--listen", "127.0.0.1:0")
	c := newClient(t, "")
	if err := os.Rename(www, filepath.Join(top, "was")); err != nil {
		t.Fatal(err)
	}
	if said := p.refuse(); !strings.Contains(said, "chert: reload: no such folder: "+quote(www)) {
		t.Errorf("stderr %q", said)
	}
	if err := os.Rename(filepath.Join(top, "new"), www); err != nil {
		t.Fatal(err)
	}
	p.reload()
	if status, body := get(t, c, p.urls[0]+"f"); status != 200 || body != "new" {
		t.Errorf("%d %q", status, body)
	}
}

// The command line overrides the file.
func TestConfigBelowFlags(t *testing.T) {
	needSignals(t)
	t.Parallel()
	text := "listen = 'unix:never'\nlog = 'json'\nshutdown_timeout = '1s'\n[[site]]\nhosts = '*'\nroot = 'www'\n"
	p, file := startConfig(t, text, map[string]string{"www/f": ""}, "--log", "off", "--shutdown-timeout", "7s")
	get(t, newClient(t, ""), p.urls[0])
	p.signal(syscall.SIGTERM)
	if line := p.line(); !strings.Contains(line, "for up to 7s") {
		t.Errorf("line %q", line)
	}
	p.waitFor(exitOK)
	if _, err := os.Lstat(filepath.Join(filepath.Dir(file), "never")); len(p.urls) != 1 || len(p.stderr.String()) > 0 || err == nil {
		t.Errorf("addresses %q, stderr %q", p.urls, p.stderr.String())
	}
}

// The format of the log changes with the file, for requests and errors.
func TestReloadLog(t *testing.T) {
	needSignals(t)
	t.Parallel()
	site := "[[site]]\nhosts = '*'\nroot = 'www'\n"
	p, file := startConfig(t, site, map[string]string{"www/f": "x"})
	c := newClient(t, "")
	get(t, c, p.urls[0]+"f")
	write(t, file, "log = 'json'\n"+site)
	p.reload()
	get(t, c, p.urls[0]+"f")
	write(t, file, "log = 'text'\n"+site)
	p.reload()
	get(t, c, p.urls[0]+"f")
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	lines := strings.Split(strings.TrimSuffix(p.stderr.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("stderr %q", lines)
	}
	for i, parse := range []func(string) (requestLine, error){parseJSON, parseText} {
		if r, err := parse(lines[i]); err != nil || r.Status != 200 {
			t.Errorf("%q: %v", lines[i], err)
		}
	}
}

// A socket whose path is relative stays open over reloads, which read the configuration, and so the paths in it, by an
// absolute path; the spelling of the path does not matter either.
func TestReloadKeepsSocket(t *testing.T) {
	needSignals(t)
	for _, listen := range []string{"unix:s", "unix:./s", "unix:DIR/s", "unix:www/../s?mode=0600"} {
		t.Run(listen, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			write(t, filepath.Join(dir, "www", "f"), "x")
			config := func(root string) {
				write(t, filepath.Join(dir, "c.toml"), "listen = '"+strings.ReplaceAll(listen, "DIR", dir)+"'\n[[site]]\nhosts = '*'\nroot = '"+root+"'\n")
			}
			config("www")
			p := &proc{t: t, cmd: command(t, "serve", "--config", "c.toml")}
			p.cmd.Dir = dir
			p.begin()
			c := newClient(t, filepath.Join(dir, "s"))
			if _, body := get(t, c, "http://unix/f"); body != "x" {
				t.Fatalf("got %q", body)
			}
			write(t, filepath.Join(dir, "new", "f"), "y")
			config("new")
			p.reload()
			if _, body := get(t, c, "http://unix/f"); body != "y" {
				t.Errorf("after the reload: %q", body)
			}
		})
	}
}

// Releases are exchanged by renaming, also the folder in which chert was started: a reload uses the folder that has the
// path then, not the old one under its new name.
func TestReloadOfRenamedFolder(t *testing.T) {
	needSignals(t)
	for _, how := range []string{"folder", "config"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			site := filepath.Join(base, "site")
			release := func(text string) {
				t.Helper()
				write(t, filepath.Join(site, "f"), text)
				write(t, filepath.Join(site, "www", "f"), text)
				write(t, filepath.Join(site, "chert.toml"), "[[site]]\nhosts = ['*']\nroot = 'www'\n")
			}
			rename := func(from, to string) {
				t.Helper()
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
			}
			release("one")
			args := map[string][]string{"folder": {"."}, "config": {"--config", "chert.toml"}}[how]
			p := &proc{t: t, cmd: command(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
			p.cmd.Dir = site
			p.begin()
			c := newClient(t, "")
			if _, body := get(t, c, p.urls[0]+"f"); body != "one" {
				t.Fatalf("got %q", body)
			}

			// Gone: it is said, with the whole path, and what is open is served on.
			rename(site, filepath.Join(base, "old"))
			if said := p.refuse(); !strings.Contains(said, site) {
				t.Errorf("said %q", said)
			}
			if _, body := get(t, c, p.urls[0]+"f"); body != "one" {
				t.Errorf("got %q", body)
			}
			release("two")
			p.reload()
			if _, body := get(t, c, p.urls[0]+"f"); body != "two" {
				t.Errorf("got %q", body)
			}
		})
	}
}

// An upgrade that ends tells how long a drain may take while a reload changes that.
func TestReloadWhileUpgradeEnds(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.errsTo.log = newLog(io.Discard)
	told := make(chan string)
	go func() { told <- s.takenOver(1) }()
	s.use(&setup{timeout: time.Minute, gen: newGeneration(http.NotFoundHandler(), nil)})
	if text := servertest.Await(t, told, "the text"); !strings.HasPrefix(text, "process 1 has taken over") {
		t.Errorf("it says %q", text)
	}
}
