package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/internal/sys"
)

// startSmall starts chert with 256 descriptors: 88 connections.
func startSmall(t *testing.T, args ...string) *proc {
	t.Helper()
	cmd := command(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	sh := exec.Command("sh", append([]string{"-c", `ulimit -n 256 && exec "$0" "$@"`}, cmd.Args...)...)
	p := &proc{t: t, cmd: sh}
	p.begin()
	return p
}

const smallConns = 88

// beginGet sends a GET for a path and reads the head of the response: the body
// stays in the connection.
func beginGet(t *testing.T, base, path string) (status int, c net.Conn) {
	t.Helper()
	nc := dial(t, base)
	nc.SetReadBuffer(4 << 10)
	nc.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path)
	res, err := http.ReadResponse(bufio.NewReaderSize(nc, 512), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, nc
}

// Clients that read different files slowly do not use up the descriptors:
// beyond the limit, connections are refused before their first request.
func TestAttackReadersOfManyFiles(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"small.txt": "small"})
	const readers = 140
	for i := range 2 * readers {
		name := filepath.Join(dir, fmt.Sprintf("%d.bin", i))
		write(t, name, "")
		if err := os.Truncate(name, 64<<20); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		os.Chtimes(name, old, old)
	}
	p := startSmall(t, dir, "--max-conns-per-addr", "0")
	// First all that may be kept open are.
	for i := range readers {
		res, err := http.Head(fmt.Sprintf("%s%d.bin", p.urls[0], readers+i))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("got %v, %v", res, err)
		}
	}
	answered, refused := 0, 0
	for i := range readers {
		switch status, _ := beginGet(t, p.urls[0], fmt.Sprintf("/%d.bin", i)); status {
		case 200:
			answered++
		case 503:
			refused++
		default:
			t.Errorf("got %d", status)
		}
	}
	if answered > smallConns || answered < smallConns-2 || answered+refused != readers {
		t.Errorf("%d were served and %d refused", answered, refused)
	}
	if said := p.stderr.String(); strings.Contains(said, "too many open files") {
		t.Errorf("the log has %s", said)
	}
}

// A client that opens as many connections as it can, again and again, keeps no
// other out: its connections are those that have been idle longest.
func TestAttackIdleConnections(t *testing.T) {
	t.Parallel()
	p := startSmall(t, folder(t, map[string]string{"a.txt": "a"}), "--max-conns-per-addr", "0")
	for range 2 {
		for range 230 {
			beginGet(t, p.urls[0], "/a.txt")
		}
		until(t, func() bool { // at once, if the machine is not loaded
			status, _ := beginGet(t, p.urls[0], "/a.txt")
			return status == 200
		})
	}
}

// One address has half of the places, also for connections that are not idle.
func TestPlacesOfOneAddress(t *testing.T) {
	t.Parallel()
	p := startSmall(t, folder(t, map[string]string{"a.txt": "a"}))
	held := 0
	for range smallConns {
		nc := dial(t, p.urls[0])
		io.WriteString(nc, "GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\nG")
		res, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == 200 {
			held++
		}
	}
	if held != smallConns/2 {
		t.Errorf("one address has %d places", held)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext, DisableKeepAlives: true}}
	res, err := client.Get(p.urls[0] + "a.txt")
	if err != nil || res.StatusCode != 200 {
		t.Errorf("another got %v, %v", res, err)
	}
}

// A peer on a unix socket is no proxy, and no client but "unix", whatever name
// its end has.
func TestAttackUnixNames(t *testing.T) {
	dir := shortDir(t)
	web := folder(t, map[string]string{"a.txt": "a"})
	socket := filepath.Join(dir, "s")
	binary()     // is made here
	t.Chdir(dir) // so that names can be without a folder
	p := start(t, web, "--listen", "unix:"+socket, "--rate-limit", "5/m", "--trusted-proxy", "10.0.0.0/8", "--log", "common")
	const clients = 19
	admitted := 0
	for i := range clients {
		name := "10.0.0.1:80"
		if i%2 == 0 {
			name = fmt.Sprintf("192.0.2.%d:80", i)
		}
		os.Remove(name)
		nc, err := net.DialUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}, &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(nc, "GET /a.txt HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 198.51.100.%d\r\nConnection: close\r\n\r\n", i)
		res, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == 200 {
			admitted++
		}
		nc.Close()
	}
	if admitted != 5 {
		t.Errorf("%d of %d were admitted, want 5", admitted, clients)
	}
	until(t, func() bool { return strings.Count(p.stderr.String(), "\n") >= clients })
	if said := p.stderr.String(); strings.Contains(said, "192.0.2.") || strings.Contains(said, "198.51.100.") || strings.Contains(said, "10.0.0.1") {
		t.Errorf("the log has %s", said)
	}
}

func TestConnLimitsOver(t *testing.T) {
	t.Parallel()
	number := func(n int) *int { return &n }
	set := func(n int) boundFlag { return boundFlag{n: n, set: true} }
	for _, tt := range []struct {
		flags   connFlags
		file    config.Config
		proxies bool
		want    connLimits
	}{
		{flags: connFlags{all: set(100)}, want: connLimits{100, 50}},
		{flags: connFlags{all: set(1)}, want: connLimits{1, 1}},
		{flags: connFlags{all: set(100)}, proxies: true, want: connLimits{100, 0}},
		{flags: connFlags{all: set(100), perAddr: set(7)}, proxies: true, want: connLimits{100, 7}},
		{flags: connFlags{all: set(100), perAddr: set(0)}, want: connLimits{100, 0}},
		{file: config.Config{MaxConns: number(10)}, want: connLimits{10, 5}},
		{file: config.Config{MaxConns: number(10), MaxConnsPerAddr: number(0)}, want: connLimits{10, 0}},
		{flags: connFlags{all: set(30), perAddr: set(4)}, file: config.Config{MaxConns: number(10), MaxConnsPerAddr: number(2)}, want: connLimits{30, 4}},
	} {
		if got := tt.flags.over(&tt.file, tt.proxies); got != tt.want {
			t.Errorf("%+v gives %+v, want %+v", tt, got, tt.want)
		}
	}
	for _, wrong := range []string{"--max-conns=0", "--max-conns=x", "--max-conns-per-addr=-1"} {
		if code, _, stderr := inProcess(t, "serve", wrong); code != exitUsage || !strings.Contains(stderr, "want a number from ") {
			t.Errorf("%s: %d %s", wrong, code, stderr)
		}
	}
}

// A reload leaves the limits as they are, and says so.
func TestReloadConnLimits(t *testing.T) {
	t.Parallel()
	const site = "\n[[site]]\nhosts = ['*']\nroot = 'www'\n"
	p, file := startConfig(t, "max_conns = 50"+site, map[string]string{"www/f": ""})
	p.reload()
	if said := p.stderr.String(); said != "" {
		t.Errorf("said %q", said)
	}
	write(t, file, "max_conns = 60"+site)
	p.reload()
	until(t, func() bool { return strings.Contains(p.stderr.String(), "restart chert for that") })
}

func TestConnLimitsWarning(t *testing.T) {
	files := sys.FileLimits{Soft: 20_000, Hard: 20_000, NROpen: 1 << 20}
	for _, tt := range []struct {
		all  int
		want string
	}{
		{9343, ""},
		{100, ""},
		{10_000, "max_conns is 10000; 9343 would leave descriptors for files and other connections: RLIMIT_NOFILE of 20000"},
		{1_000_000, "max_conns is 1000000, but the limit of open files allows fewer: RLIMIT_NOFILE of 20000"},
	} {
		if got := (connLimits{all: tt.all}).warning(9343, files); got != tt.want {
			t.Errorf("%d: %q, want %q", tt.all, got, tt.want)
		}
	}
}
