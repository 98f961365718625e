//go:build linux || darwin

package http3_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	chert3 "github.com/chert-http/chert/http3"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// What the processes of the tests of upgrades are told: their kind, and the address they listen at.
const (
	upgradeEnv = "CHERT_TEST_UPGRADE_HTTP3"
	addrEnv    = "CHERT_TEST_UPGRADE_ADDR"
)

// The kinds of programs that upgradeEnv names.
const (
	plainLine   = "plain"
	earlyLine   = "early"   // with early data
	crowdedLine = "crowded" // with a limit of connections
)

const crowdedConns = 8

// TestUpgradeChild is the program that the tests of upgrades run.
func TestUpgradeChild(t *testing.T) {
	kind := os.Getenv(upgradeEnv)
	if kind == "" {
		t.Skip("for the tests of upgrades")
	}
	sockets, err := websocket.New(&websocket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	streams, err := eventstream.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ws", sockets)
	mux.Handle("/sse", streams)
	mux.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, os.Getpid()) })
	mux.HandleFunc("/held", func(w http.ResponseWriter, r *http.Request) { // until the client's body ends
		fmt.Fprintln(w, os.Getpid())
		http.NewResponseController(w).Flush()
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d bytes, %v", n, err)
	})
	up := new(chert.Upgrader)
	cert, _ := servertest.Certificate(t)
	srv := &chert.Server{
		Handler: mux, Upgrader: up, HTTP3: chert3.New(&chert3.Options{EarlyData: kind == earlyLine}), ExtendedConnect: true,
		ReadHeaderTimeout: servertest.Patience, // and for handshakes
		ErrorLog:          servertest.NewLogger(os.Stdout), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
	}
	if kind == crowdedLine {
		srv.MaxConns = crowdedConns
	}
	srv.TLSConfig.SetSessionTicketKeys([][32]byte{{1}}) // as of a cluster
	go func() {
		<-up.Replaced()
		fmt.Println("replaced")
	}()
	err = chert.Run(context.Background(), srv, servertest.Patience, func() error {
		l, err := srv.Listen("tcp", os.Getenv(addrEnv))
		if err != nil {
			return err
		}
		fmt.Println("addr", l.Addr())
		return srv.ServeTLS(l, "", "")
	})
	fmt.Println("ended:", err)
	os.Exit(0) // not through the search for leaks: the process that has followed goes on, and is waited for
}

// line is processes that follow each other, which share their output.
type line struct {
	*running
	cmd    *exec.Cmd
	stdout io.Reader
	lines  *bufio.Scanner
}

func startLine(t *testing.T, kind string) *line {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestUpgradeChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), upgradeEnv+"="+kind, addrEnv+"="+freeport.Both(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	l := &line{cmd: cmd, stdout: stdout, lines: bufio.NewScanner(stdout)}
	l.running = &running{t: t, addr: ""}
	l.addr = l.wants("addr ")
	return l
}

// wants reads lines up to one that begins with a text, and returns the rest of that.
func (l *line) wants(prefix string) string {
	l.t.Helper()
	for l.lines.Scan() {
		if rest, ok := strings.CutPrefix(l.lines.Text(), prefix); ok {
			return rest
		}
	}
	l.t.Fatalf("the processes ended before %q", prefix)
	return ""
}

// upgrade upgrades a process, and returns the number of the next one.
func (l *line) upgrade(pid int) int {
	l.t.Helper()
	syscall.Kill(pid, syscall.SIGUSR2)
	l.wants("replaced")
	next := pidOf(l.t, l.raw())
	if next == pid {
		l.t.Fatal("a new connection came to the process that was replaced")
	}
	return next
}

func pidOf(t testing.TB, c *raw) int {
	t.Helper()
	a := c.open(true, headers(path(get, "/pid")...)).read()
	pid, err := strconv.Atoi(strings.TrimSpace(a.body))
	if err != nil {
		t.Fatalf("%v: %v", a, err)
	}
	return pid
}

// finish waits for the end of all processes.
func (l *line) finish() {
	l.t.Helper()
	if _, err := io.Copy(io.Discard, l.stdout); err != nil {
		l.t.Error(err)
	}
	if err := l.cmd.Wait(); err != nil {
		l.t.Errorf("the first process: %v", err)
	}
}

// guest is a client's connection on which something lasts.
type guest struct {
	*raw
	pid           int
	held, ws, sse *exchange
}

func (l *line) guest() *guest {
	l.t.Helper()
	g := &guest{raw: l.raw()}
	g.ws = g.open(false, headers(":method: CONNECT", ":protocol: websocket", ":scheme: https", ":authority: example.com",
		":path: /ws", "sec-websocket-version: 13"))
	g.sse = g.open(true, headers(path(get, "/sse")...))
	g.held = g.open(false, headers(path(post, "/held")...), data("first"))
	for _, e := range []*exchange{g.ws, g.sse, g.held} {
		h, p, err := e.next()
		if err != nil || h.Type != codec.FrameHeaders || decode(l.t, p)[0] != ":status: 200" {
			l.t.Fatalf("%v %v %v", h, p, err)
		}
	}
	var err error
	if g.pid, err = strconv.Atoi(strings.TrimSpace(g.held.upTo("\n"))); err != nil {
		l.t.Fatal(err)
	}
	return g
}

// finish ends the held request, whose answer must be whole.
func (g *guest) finish() {
	g.t.Helper()
	g.held.Write(data("second"))
	g.held.Close()
	if a := g.held.read(); a.body != "11 bytes, <nil>" || a.err != nil {
		g.t.Errorf("the request of process %d: %q, %v", g.pid, a.body, a.err)
	}
}

// What is under way ends in the process where it has begun, however many have followed, and as at
// every end of a server; a new request is refused when the client knows, so that it connects again.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	l := startLine(t, plainLine)
	pid := pidOf(t, l.raw())
	first := descriptors(t, pid)
	var guests []*guest
	for range 3 {
		g := l.guest()
		if g.pid != pid {
			t.Fatalf("process %d, not %d", g.pid, pid)
		}
		guests = append(guests, g)
		kept := l.client()
		ask := func() string {
			res, err := kept.Get(l.url("/pid"))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, _ := io.ReadAll(res.Body)
			return strings.TrimSpace(string(b))
		}
		if got := ask(); got != strconv.Itoa(pid) {
			t.Errorf("process %s, not %d", got, pid)
		}
		pid = l.upgrade(pid)
		servertest.Eventually(t, "the client moves", func() bool { return ask() == strconv.Itoa(pid) })
	}
	for _, g := range guests {
		if said := g.ws.upTo("\x88\x02\x03\xe9"); said != "\x88\x02\x03\xe9" { // 1001
			t.Errorf("the WebSocket said %q", said)
		}
		g.ws.Write(data(message(wsframe.Close, "\x03\xe9")))
		g.ws.Close()
		if a := g.sse.read(); a.err != nil {
			t.Errorf("the event stream: %v", a.err)
		}
		servertest.Eventually(t, "requests are refused", func() bool {
			a := g.open(true, headers(path(get, "/pid")...)).read()
			if a.err == nil && strings.TrimSpace(a.body) != strconv.Itoa(g.pid) {
				t.Errorf("a connection of %d has moved to %s", g.pid, a.body)
			}
			return a.ending() == "RESET H3_REQUEST_REJECTED"
		})
	}
	for _, i := range []int{1, 0, 2} {
		guests[i].finish()
		l.wants("ended: <nil>")
	}
	if first > 0 {
		servertest.Eventually(t, "as few descriptors as in the first process", func() bool {
			return descriptors(t, pid) <= first
		})
	}
	syscall.Kill(pid, syscall.SIGTERM)
	l.finish()
}

// descriptors counts those of a process, where the system has them as files.
func descriptors(t *testing.T, pid int) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Error(err)
	}
	return len(all)
}

// When the process that has followed dies, the one before serves its own connections to their end.
func TestSuccessorDies(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells that the other end of a pair is gone")
	}
	l := startLine(t, plainLine)
	g := l.guest()
	next := l.upgrade(g.pid)
	other := l.guest()
	if other.pid != next {
		t.Fatalf("process %d, not %d", other.pid, next)
	}
	last := l.upgrade(next)
	lost := l.guest()
	syscall.Kill(last, syscall.SIGKILL)
	var reset *quic.StatelessResetError
	lost.held.Write(data("second"))
	if a := lost.held.read(); !errors.As(a.err, &reset) {
		t.Errorf("a connection of the process that died: %v", a.err)
	}
	other.finish()
	g.finish()
	l.finish()
}

// A client whose process was killed learns from the next one that its connection is gone.
func TestPredecessorDies(t *testing.T) {
	t.Parallel()
	l := startLine(t, plainLine)
	g := l.guest()
	next := l.upgrade(g.pid)
	l.cmd.Process.Kill()
	begun := time.Now()
	var reset *quic.StatelessResetError
	g.held.Write(data("second"))
	if a := g.held.read(); !errors.As(a.err, &reset) {
		t.Errorf("%v after %v", a.err, time.Since(begun))
	}
	if pid := pidOf(t, l.raw()); pid != next {
		t.Errorf("process %d, not %d", pid, next)
	}
	syscall.Kill(next, syscall.SIGTERM)
	if _, err := io.Copy(io.Discard, l.stdout); err != nil { // until it has ended
		t.Error(err)
	}
	l.cmd.Wait()
}
