//go:build linux || darwin

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// manager is what systemd is for a service: a socket for its messages.
type manager struct {
	t *testing.T
	c *net.UnixConn
}

func newManager(t *testing.T) (m *manager, path string) {
	t.Helper()
	path = filepath.Join(shortDir(t), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(patience))
	return &manager{t, c}, path
}

// next returns the next message that is not of the watchdog, and how many of those came before.
func (m *manager) next() (text string, alive int) {
	m.t.Helper()
	for {
		var b [4096]byte
		n, err := m.c.Read(b[:])
		if err != nil {
			m.t.Fatal(err)
		}
		if text = string(b[:n]); text != "WATCHDOG=1" {
			return text, alive
		}
		alive++
	}
}

// numbers are those of messages that differ from run to run.
var numbers = regexp.MustCompile(`(MONOTONIC_USEC=|process )[0-9]+`)

// wants reads the next message, in which * stands for one of numbers.
func (m *manager) wants(text string) {
	m.t.Helper()
	got, _ := m.next()
	if masked := numbers.ReplaceAllString(got, "$1*"); masked != text {
		m.t.Fatalf("the service manager got %q, want %q", got, text)
	}
}

// The service manager knows at any time what the service does, and which process it is.
func TestNotify(t *testing.T) {
	t.Parallel()
	m, path := newManager(t)
	u := &upgradable{proc: &proc{t: t}}
	u.start(func() { u.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path) }, "serve", "www", "--listen", "127.0.0.1:0")
	m.wants("READY=1")
	u.script("exit 3")
	u.fails("exit status 3")
	m.wants("RELOADING=1\nMONOTONIC_USEC=*\nSTATUS=Starting a new process.")
	m.wants("READY=1\nSTATUS=The upgrade failed: the new process * ended before it was ready: exit status 3")
	u.install()
	pid := u.upgrade()
	m.wants("RELOADING=1\nMONOTONIC_USEC=*\nSTATUS=Starting a new process.")
	if got, _ := m.next(); got != fmt.Sprintf("MAINPID=%d\nREADY=1\nSTATUS=", pid) {
		t.Errorf("got %q", got)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	m.wants("RELOADING=1\nMONOTONIC_USEC=*")
	m.wants("READY=1")
	u.end(pid)
	m.wants("STOPPING=1")
}

// The service manager may ask the new process to reload before that knows itself that it is the service. It must not
// wait in vain for an answer.
func TestNotifyOfEarlyReload(t *testing.T) {
	t.Parallel()
	m, path := newManager(t)
	u := &upgradable{proc: &proc{t: t}}
	u.start(func() { u.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path) }, "serve", "www", "--listen", "127.0.0.1:0")
	m.wants("READY=1")
	u.script(`echo $$ > pid; exec $REAL "$@"`)
	u.signal(syscall.SIGUSR2)
	m.wants("RELOADING=1\nMONOTONIC_USEC=*\nSTATUS=Starting a new process.")
	u.line() // it takes signals, and has two seconds to go until it is the service
	text, err := os.ReadFile(filepath.Join(u.dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got, _ := m.next(); got != fmt.Sprintf("MAINPID=%d\nREADY=1\nSTATUS=", pid) {
		t.Errorf("got %q", got)
	}
	m.wants("RELOADING=1\nMONOTONIC_USEC=*")
	m.wants("READY=1")
	u.end(pid)
	m.wants("STOPPING=1")
}

// The watchdog hears of the process while it is the service's.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	m, path := newManager(t)
	u := &upgradable{proc: &proc{t: t}}
	u.start(func() {
		u.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=20000")
	}, "serve", "www", "--listen", "127.0.0.1:0")
	m.wants("READY=1")
	var b [64]byte
	for range 3 {
		if n, err := m.c.Read(b[:]); err != nil || string(b[:n]) != "WATCHDOG=1" {
			t.Fatalf("%q %v", b[:n], err)
		}
	}
	u.end(u.cmd.Process.Pid)
	m.wants("STOPPING=1")
}

// passing starts a command as systemd does a service with sockets, of these names.
func passing(t *testing.T, names []string, args ...string) (u *upgradable, addrs []string) {
	t.Helper()
	u = &upgradable{proc: &proc{t: t}}
	u.start(func() {
		for range names {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			f, err := l.(*net.TCPListener).File()
			if err != nil {
				t.Fatal(err)
			}
			addrs = append(addrs, "http://"+l.Addr().String()+"/")
			l.Close()
			t.Cleanup(func() { f.Close() })
			u.cmd.ExtraFiles = append(u.cmd.ExtraFiles, f)
		}
		// The process's own number is known once it runs.
		u.cmd.Env = append(os.Environ(), fmt.Sprint("LISTEN_FDS=", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
		u.cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, u.bin}, u.cmd.Args[1:]...)
		u.cmd.Path = "/bin/sh"
	}, args...)
	return u, addrs
}

// Sockets of systemd are served by name, by number or all of them, and passed on.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	c := newClient(t, "")
	for _, tt := range []struct {
		name  string
		names []string
		args  []string
		want  []int
		log   string
	}{
		{"all", []string{"web", "web"}, nil, []int{0, 1}, ""},
		{"by name", []string{"a", "b"}, []string{"--listen", "fd:b"}, []int{1}, "the socket fd:a of systemd is not used"},
		{"by number", []string{"web", "web"}, []string{"--listen", "fd:4"}, []int{1}, "the socket fd:web of systemd is not used"},
		{"the first of a name", []string{"web", "web"}, []string{"--listen", "fd:web"}, []int{0},
			"the socket fd:web of systemd is not used; listen on fd:4, or"},
		{"in another order", []string{"a", "b"}, []string{"--listen", "fd:b", "--listen", "fd:a"}, []int{1, 0}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u, addrs := passing(t, tt.names, append([]string{"serve", "www"}, tt.args...)...)
			var want []string
			for _, i := range tt.want {
				want = append(want, addrs[i])
			}
			pid := u.cmd.Process.Pid
			for range 2 {
				if fmt.Sprint(u.urls) != fmt.Sprint(want) {
					t.Fatalf("serves at %q, want %q", u.urls, want)
				}
				for _, url := range u.urls {
					if status, body := get(t, c, url+"f"); status != 200 || body != "body" {
						t.Errorf("%d %q", status, body)
					}
				}
				c.CloseIdleConnections()
				pid = u.upgrade()
				u.urls = urlPattern.FindAllString(u.line(), -1)
			}
			until(t, func() bool { return strings.Contains(u.stderr.String(), tt.log) })
			u.end(pid)
		})
	}
	code, _, stderr := inProcess(t, "serve", "--listen", "fd:web")
	if code != exitFailure || !strings.HasPrefix(stderr, `chert: cannot listen on fd:web: no socket "web" was passed to the process; systemd passes`) {
		t.Errorf("%d %q", code, stderr)
	}
}
