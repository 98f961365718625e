//go:build linux || darwin

package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// upgradable is a chert with a file of its own, which tests replace. All processes that follow it write to its output.
type upgradable struct {
	*proc
	bin     string // its path
	control string
	dir     string
	config  string
	socket  string
}

// startUpgradable starts a command that serves, and waits for its first line. Its files are in a folder, which is
// where it is started too.
func startUpgradable(t *testing.T, args ...string) *upgradable {
	t.Helper()
	u := &upgradable{proc: &proc{t: t}}
	u.start(func() {}, args...)
	return u
}

// start is startUpgradable; prepare changes the command.
func (u *upgradable) start(prepare func(), args ...string) {
	t := u.t
	t.Helper()
	u.dir = shortDir(t)
	u.bin, u.control = filepath.Join(u.dir, "chert"), filepath.Join(u.dir, "control")
	u.install()
	write(t, filepath.Join(u.dir, "www", "f"), "body")
	u.cmd = exec.Command(u.bin, append(args, "--control", u.control, "--shutdown-timeout", "20s")...)
	u.cmd.Dir = u.dir
	u.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	prepare()
	u.launch()
	t.Cleanup(func() { syscall.Kill(-u.cmd.Process.Pid, syscall.SIGKILL) })
	line := u.line()
	_, where, ok := strings.Cut(line, " at ")
	if !ok {
		t.Fatalf("start-up line %q names no address", line)
	}
	u.urls = urlPattern.FindAllString(where, -1)
}

// install puts the binary that is tested in the place of what is there.
func (u *upgradable) install() {
	u.t.Helper()
	bin, err := binary()
	if err != nil {
		u.t.Fatal(err)
	}
	os.Remove(u.bin)
	if err := os.Link(bin, u.bin); err != nil {
		b, err := os.ReadFile(bin)
		if err != nil {
			u.t.Fatal(err)
		}
		writeProgram(u.t, u.bin, b)
	}
}

// script puts a shell script in the place of the binary; $REAL is that of the tests.
func (u *upgradable) script(text string) {
	u.t.Helper()
	bin, err := binary()
	if err != nil {
		u.t.Fatal(err)
	}
	os.Remove(u.bin)
	writeProgram(u.t, u.bin, []byte("#!/bin/sh\nREAL="+bin+"\n"+text+"\n"))
}

// upgrade calls "chert upgrade", and returns the number of the new process.
func (u *upgradable) upgrade() (pid int) {
	u.t.Helper()
	code, stdout, stderr := inProcess(u.t, "upgrade", u.control)
	if code != exitOK {
		u.t.Fatalf("upgrade: %d %q, stderr of the server: %s", code, stderr, u.stderr.String())
	}
	if _, err := fmt.Sscanf(stdout, "chert: process %d has taken over from ", &pid); err != nil {
		u.t.Fatalf("upgrade said %q", stdout)
	}
	return pid
}

// fails calls "chert upgrade", which must report an error with the text why, as the server's log does.
func (u *upgradable) fails(why string) {
	u.t.Helper()
	code, _, stderr := inProcess(u.t, "upgrade", u.control)
	if code != exitFailure || !strings.Contains(stderr, why) || !strings.HasSuffix(stderr, "; the server goes on as before\n") {
		u.t.Errorf("upgrade: %d %q, want %q", code, stderr, why)
	}
	until(u.t, func() bool {
		_, line, _ := strings.Cut(u.stderr.String(), why)
		return strings.Contains(line, "; serving goes on as before\n")
	})
}

// end stops the process that serves, and waits until all have ended, as which they close their output. It returns
// that.
func (u *upgradable) end(pid int) string {
	u.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		u.t.Fatal(err)
	}
	rest, err := io.ReadAll(u.stdout)
	if err != nil {
		u.t.Fatal(err)
	}
	if err := u.cmd.Wait(); err != nil {
		u.t.Errorf("the first process: %v; stderr: %s", err, u.stderr.String())
	}
	return string(rest)
}

// load is clients that ask until stop is closed. Each failure of one is an error: none tries again.
type load struct {
	t     *testing.T
	stop  chan struct{}
	once  sync.Once
	wait  sync.WaitGroup
	count [kinds]atomic.Int64 // of answers, by kind
}

// end may be called again.
func (l *load) end() {
	l.once.Do(func() { close(l.stop) })
	l.wait.Wait()
}

// run runs f, which makes one request or more, again and again.
func (l *load) run(kind int, f func() error) {
	l.wait.Go(func() {
		for {
			select {
			case <-l.stop:
				return
			default:
			}
			if err := f(); err != nil {
				l.t.Errorf("client of kind %d: %v", kind, err)
				return
			}
			l.count[kind].Add(1)
		}
	})
}

// answered waits until each kind of client has got n more answers.
func (l *load) answered(n int64) {
	l.t.Helper()
	for k := range l.count {
		want := l.count[k].Load() + n
		until(l.t, func() bool { return l.t.Failed() || l.count[k].Load() >= want })
	}
}

// keptClient asks on a connection as long as the server keeps it. An answer without "Connection: close" promises that
// the next request is answered.
type keptClient struct {
	network, addr string
	tls           *tls.Config
	c             net.Conn
	r             *bufio.Reader
}

func (k *keptClient) ask() (err error) {
	if k.c == nil {
		if k.c, err = net.Dial(k.network, k.addr); err != nil {
			return err
		}
		if k.tls != nil {
			k.c = tls.Client(k.c, k.tls)
		}
		k.r = bufio.NewReader(k.c)
	}
	k.c.SetDeadline(time.Now().Add(patience))
	if _, err = io.WriteString(k.c, "GET /f HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(k.r, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != 200 || string(body) != "body") {
		err = fmt.Errorf("%s %q", res.Status, body)
	}
	if err == nil && res.Close {
		err = k.c.Close()
		k.c = nil
	}
	return err
}

// newEachTime asks on a connection of its own for each request.
func newEachTime(network, addr string) func() error {
	return func() error {
		k := keptClient{network: network, addr: addr}
		err := k.ask()
		if k.c != nil {
			k.c.Close()
		}
		return err
	}
}

// The kinds of clients.
const (
	kept = iota
	each
	unixKept
	overTLS
	http2
	kinds
)

// loaded starts a server with a configuration, at a port, at a unix socket and at a port with TLS, and clients that
// ask all the time.
func loaded(t *testing.T) (*upgradable, *load) {
	t.Helper()
	ca, conf := newCA(t), shortDir(t)
	cert, key := ca.server(conf, "x", "x.test")
	write(t, filepath.Join(conf, "www", "f"), "body")
	file, socket := filepath.Join(conf, "chert.toml"), filepath.Join(conf, "socket")
	write(t, file, fmt.Sprintf(`
listen = [{address = "127.0.0.1:0", tls = false}, {address = "unix:%s", tls = false}, "127.0.0.1:0"]
[[site]]
hosts = ["*"]
root = "www"
tls_cert = %q
tls_key = %q
`, socket, cert, key))
	u := startUpgradable(t, "serve", "--config", file)
	u.config, u.socket = file, socket
	l := &load{t: t, stop: make(chan struct{})}
	t.Cleanup(l.end)
	plain, secure := addrOf(t, u.urls[0]), addrOf(t, u.urls[2])
	cfg := &tls.Config{RootCAs: ca.pool, ServerName: "x.test"}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg.Clone(), ForceAttemptHTTP2: true}, Timeout: patience}
	t.Cleanup(c.CloseIdleConnections)
	for range 2 {
		l.run(kept, (&keptClient{network: "tcp", addr: plain}).ask)
		l.run(each, newEachTime("tcp", plain))
		l.run(unixKept, (&keptClient{network: "unix", addr: socket}).ask)
		l.run(overTLS, (&keptClient{network: "tcp", addr: secure, tls: cfg.Clone()}).ask)
		l.run(http2, func() error {
			res, err := c.Get("https://" + secure + "/f")
			if err != nil {
				return err
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil && (res.ProtoMajor != 2 || string(body) != "body") {
				err = fmt.Errorf("%s %q", res.Proto, body)
			}
			return err
		})
	}
	return u, l
}

// No request fails while processes follow each other, whether they can or not.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	u, l := loaded(t)
	const some = 50
	l.answered(some)
	for range 2 {
		u.upgrade()
		l.answered(some)
	}
	t.Run("broken", func(t *testing.T) {
		u.script("echo broken >&2; exit 3")
		u.fails("ended before it was ready: exit status 3")
		l.answered(some)
	})
	t.Run("missing", func(t *testing.T) {
		os.Remove(u.bin)
		u.fails("cannot start " + u.bin + ": no such file or directory")
		l.answered(some)
	})
	t.Run("another", func(t *testing.T) {
		u.script("exec 3>&-; exec sleep 60") // it closes the descriptor that it does not know
		u.fails("it may be another program")
		l.answered(some)
	})
	t.Run("configuration", func(t *testing.T) {
		u.install()
		good, err := os.ReadFile(u.config)
		if err != nil {
			t.Fatal(err)
		}
		write(t, u.config, string(good)+"\nroott = 1\n")
		u.fails("unknown key")
		write(t, u.config, string(good))
		l.answered(some)
	})
	t.Run("dies", func(t *testing.T) {
		// Ready is reported after the line about where it serves.
		u.script(`"$REAL" "$@" > said & until grep -q serving said; do sleep 0.01; done; sleep 0.1; kill -9 $!; exit 9`)
		u.fails("was ready, and then ended: exit status 9")
		l.answered(some)
	})
	u.install()
	last := u.upgrade()
	l.answered(some)
	l.end()
	syscall.Kill(last, syscall.SIGHUP) // it is a server as any other
	for !strings.HasPrefix(u.line(), "chert: reloaded; ") {
	}
	u.end(last)
	if _, err := os.Lstat(u.socket); !os.IsNotExist(err) {
		t.Errorf("the last process has left its socket: %v", err)
	}
}

// Upgrades may overlap: processes that were replaced end when their last request has, or their time is over.
func TestUpgradesOverlap(t *testing.T) {
	t.Parallel()
	u := startUpgradable(t, "demo", "--listen", "127.0.0.1:0", "--log", "off")
	addr := addrOf(t, u.urls[0])
	var all []*wsClient
	pid := 0
	for range 3 {
		all = append(all, openWebSocket(t, addr))
		pid = u.upgrade()
	}
	last := openWebSocket(t, addr)
	for i, c := range all {
		if code := c.closeCode(); code != 1001 {
			t.Errorf("WebSocket %d was closed with %d", i, code)
		}
	}
	syscall.Kill(pid, syscall.SIGTERM)
	if code := last.closeCode(); code != 1001 {
		t.Errorf("the last WebSocket was closed with %d", code)
	}
	if out, err := io.ReadAll(u.stdout); err != nil {
		t.Errorf("%s %v", out, err)
	}
	if err := u.cmd.Wait(); err != nil {
		t.Errorf("the first process: %v", err)
	}
}

// The admin page follows the process that serves: its event stream ends when that is another one, though the old one
// has a request to finish.
func TestUpgradeAdmin(t *testing.T) {
	t.Parallel()
	u := startUpgradable(t, "serve", "www", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	page := urlPattern.FindString(u.line())
	held, err := net.Dial("tcp", addrOf(t, u.urls[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	io.WriteString(held, "GET /f HTTP/1.1\r\n")
	c := newClient(t, "")
	until(t, func() bool {
		_, counters := get(t, c, page+"stats")
		return strings.Contains(counters, `"Active":1,`)
	})
	res, err := c.Get(page + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	pid := u.upgrade()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Errorf("the stream: %v", err)
	}
	io.WriteString(held, "Host: a\r\n\r\n")
	held.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(held).ReadString('\n')
	if line != "HTTP/1.1 200 OK\r\n" {
		t.Errorf("the old process has gone before the stream has ended: %q, %v", line, err)
	}
	u.end(pid)
}

// SIGUSR2 upgrades too, without --control.
func TestUpgradeBySignal(t *testing.T) {
	t.Parallel()
	u := startUpgradable(t, "serve", "www", "--listen", "127.0.0.1:0")
	url := u.urls[0]
	u.signal(syscall.SIGUSR2)
	pid := 0
	for pid == 0 {
		fmt.Sscanf(u.line(), "chert: upgrade: process %d has taken over from ", &pid)
	}
	if status, body := get(t, newClient(t, ""), url+"f"); status != 200 || body != "body" {
		t.Errorf("%d %q", status, body)
	}
	u.end(pid)
}

// An upgrade under way ends with the server, and its new process too.
func TestUpgradeStopped(t *testing.T) {
	t.Parallel()
	u := startUpgradable(t, "serve", "www", "--listen", "127.0.0.1:0")
	u.script("echo began; exec sleep 60")
	u.signal(syscall.SIGUSR2)
	for u.line() != "began\n" {
	}
	u.end(u.cmd.Process.Pid)
}

func TestUpgradeErrors(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(shortDir(t), "none")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{}, exitUsage, "no socket given; it is the one of --control of the server. Without one: kill -USR2 PID"},
		{[]string{"a", "b"}, exitUsage, "one socket at most"},
		{[]string{"@a"}, exitUsage, "want a path after unix:; abstract sockets are not supported"},
		{[]string{socket}, exitFailure, "cannot reach a server at the socket " + quote(socket) + ": no such file or directory; is one running with --control " + socket + "?"},
		{[]string{"unix:" + socket}, exitFailure, "cannot reach a server at the socket " + quote(socket) + ": no such file or directory; is one running with --control " + socket + "?"},
	} {
		code, _, stderr := inProcess(t, append([]string{"upgrade"}, tt.args...)...)
		if code != tt.code || !strings.HasPrefix(stderr, "chert: "+tt.want) {
			t.Errorf("%q: %d %q", tt.args, code, stderr)
		}
	}
}

// wsClient is a WebSocket that says nothing.
type wsClient struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

func openWebSocket(t *testing.T, addr string) *wsClient {
	t.Helper()
	w, err := dialWebSocket(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.c.Close() })
	w.t = t
	return w
}

func dialWebSocket(addr string) (*wsClient, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(c, "GET /chat HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", addr)
	w := &wsClient{nil, c, bufio.NewReader(c)}
	res, err := http.ReadResponse(w.r, nil)
	if err == nil && res.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(res.Status)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return w, nil
}

// closeCode is readClose.
func (w *wsClient) closeCode() int {
	w.t.Helper()
	code, err := w.readClose()
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

// readClose reads up to the Close frame, answers it and returns its code.
func (w *wsClient) readClose() (code int, err error) {
	defer w.c.Close()
	for {
		var head [4]byte
		if _, err := io.ReadFull(w.r, head[:2]); err != nil {
			return 0, err
		}
		n := int(head[1])
		if n == 126 {
			if _, err := io.ReadFull(w.r, head[2:]); err != nil {
				return 0, err
			}
			n = int(head[2])<<8 | int(head[3])
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(w.r, payload); err != nil {
			return 0, err
		}
		if head[0]&15 == 8 {
			w.c.Write(append([]byte{0x88, 0x80 | byte(n), 0, 0, 0, 0}, payload...)) // the mask is zero
			return int(payload[0])<<8 | int(payload[1]), nil
		}
	}
}
