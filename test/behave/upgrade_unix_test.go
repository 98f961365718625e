//go:build linux || darwin

package behave

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
)

// upgradeEnv is the folder of a process that TestUpgrade starts.
const upgradeEnv = "CHERT_TEST_UPGRADE"

// TestUpgradeChild is the program that TestUpgrade upgrades. It fails if its folder has a file "fail".
func TestUpgradeChild(t *testing.T) {
	dir := os.Getenv(upgradeEnv)
	if dir == "" {
		t.Skip("for TestUpgrade")
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
	mux.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
	mux.HandleFunc("/wait", func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("waiting")
		<-r.Context().Done()
	})
	up := new(chert.Upgrader)
	srv := &chert.Server{
		Addr: "127.0.0.1:0", Handler: mux, Upgrader: up, ErrorLog: servertest.NewLogger(os.Stdout),
	}
	go func() {
		<-up.Replaced()
		fmt.Println("replaced")
	}()
	err = chert.Run(context.Background(), srv, 10*time.Second, func() error {
		if _, err := os.Stat(filepath.Join(dir, "fail")); err == nil {
			return errors.New("as the file says")
		}
		l, err := srv.Listen("tcp", srv.Addr)
		if err != nil {
			return err
		}
		fmt.Println("addr", l.Addr())
		return srv.Serve(l)
	}, func() error {
		l, err := up.Listen("unix", filepath.Join(dir, "socket"))
		if err != nil {
			return err
		}
		return srv.Serve(l)
	})
	fmt.Println("ended:", err)
	os.Exit(0) // not through the search for leaks: the process that has followed goes on, and is waited for
}

// upgraded is a line of processes, which share their output.
type upgraded struct {
	t     *testing.T
	dir   string
	lines *bufio.Scanner
}

// wants reads lines up to one that begins with a text, and returns the rest of that.
func (u *upgraded) wants(prefix string) string {
	u.t.Helper()
	for u.lines.Scan() {
		if rest, ok := strings.CutPrefix(u.lines.Text(), prefix); ok {
			return rest
		}
	}
	u.t.Fatalf("the processes ended before %q", prefix)
	return ""
}

// pidOf asks which process serves a new connection.
func (u *upgraded) pidOf(network, addr string) int {
	u.t.Helper()
	nc, err := net.Dial(network, addr)
	if err != nil {
		u.t.Fatal(err)
	}
	pid, _ := pidOn(servertest.NewClient(u.t, nc))
	return pid
}

// pidOn asks on a connection, and reports whether the answer was its last.
func pidOn(c *servertest.Client) (pid int, last bool) {
	c.T.Helper()
	res, body := c.Get("/pid")
	pid, err := strconv.Atoi(body)
	if err != nil {
		c.T.Fatalf("%v %q", res, body)
	}
	return pid, res.Close
}

// lastOn is pidOn after a signal. Half a second after it, a quarter of the time of Drain, idle connections may be closed
// too, which a request on a busy machine meets: then there is no pid.
func lastOn(c *servertest.Client, signaled time.Time) (pid int, last bool) {
	c.T.Helper()
	c.SetDeadline(time.Now().Add(servertest.Patience))
	io.WriteString(c.Conn, "GET /pid HTTP/1.1\r\nHost: h\r\n\r\n")
	res, err := http.ReadResponse(c.R, nil)
	if err != nil {
		if servertest.IsTimeout(err) || time.Since(signaled) < time.Second/2 {
			c.T.Error(err)
		}
		return 0, true
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.T.Error(err)
	}
	pid, _ = strconv.Atoi(string(body))
	return pid, res.Close
}

// startUpgraded starts the first process. Its output is read by lines, and at the end as it is.
func startUpgraded(t *testing.T) (u *upgraded, cmd *exec.Cmd, stdout io.Reader) {
	t.Helper()
	dir, err := os.MkdirTemp("", "chert") // a short path, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd = exec.Command(os.Args[0], "-test.run=^TestUpgradeChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), upgradeEnv+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	if stdout, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return &upgraded{t: t, dir: dir, lines: bufio.NewScanner(stdout)}, cmd, stdout
}

// A program that serves by Run is upgraded by a signal: its clients are told to come again, each as its protocol has
// it, and a process that cannot serve changes nothing.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	u, cmd, stdout := startUpgraded(t)
	dir := u.dir
	addr, socket := u.wants("addr "), filepath.Join(dir, "socket")
	servertest.Eventually(t, "the socket", func() bool { _, err := os.Stat(socket); return err == nil })
	first := u.pidOf("tcp", addr)
	if other := u.pidOf("unix", socket); first != cmd.Process.Pid || other != first {
		t.Fatalf("processes %d and %d, not %d", first, other, cmd.Process.Pid)
	}
	pid := first
	for range 2 {
		kept := servertest.Dial(t, addr)
		if _, last := pidOn(kept); last {
			t.Error("a connection was closed before the upgrade")
		}
		ws, sse := servertest.Dial(t, addr), servertest.Dial(t, addr)
		ws.Send("GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		ws.Head()
		sse.Send("GET /sse HTTP/1.1\r\nHost: h\r\n\r\n")
		sse.Head()
		signaled := time.Now()
		syscall.Kill(pid, syscall.SIGUSR2)
		if again := u.wants("addr "); again != addr {
			t.Fatalf("the next process listens at %s, not %s", again, addr)
		}
		u.wants("replaced")
		servertest.Eventually(t, "the next process", func() bool { return u.pidOf("tcp", addr) != pid })
		// The process may be about to hear that it is replaced.
		servertest.Eventually(t, "the end of a kept connection", func() bool {
			got, last := lastOn(kept, signaled)
			if got != 0 && got != pid {
				t.Errorf("a kept connection has moved from %d to %d", pid, got)
			}
			return last
		})
		ws.Want("\x88\x02\x03\xe9") // 1001
		ws.Send("\x88\x82\x00\x00\x00\x00\x03\xe9")
		ws.Ended()
		if rest := sse.Rest(); !strings.HasSuffix(rest, "0\r\n\r\n") {
			t.Errorf("the stream ended with %q", rest)
		}
		u.wants("ended: <nil>")
		pid = u.pidOf("tcp", addr)
		if other := u.pidOf("unix", socket); other != pid {
			t.Errorf("processes %d and %d", pid, other)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "fail"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(pid, syscall.SIGUSR2)
	if why := u.wants("chert: Upgrade: the new process "); !strings.HasSuffix(why, " failed: as the file says; serving goes on as before") {
		t.Errorf("got %q", why)
	}
	if got := u.pidOf("tcp", addr); got != pid {
		t.Errorf("process %d, not %d", got, pid)
	}
	syscall.Kill(pid, syscall.SIGTERM)
	u.wants("ended: <nil>")
	if _, err := io.Copy(io.Discard, stdout); err != nil { // until all have ended
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the first process: %v", err)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the last process has left its socket: %v", err)
	}
}

// Signals to a process that has been replaced, and has a request still, end its drain and then the process. With the
// race detector the process fails if it reports something.
func TestUpgradeSignals(t *testing.T) {
	t.Parallel()
	u, cmd, _ := startUpgraded(t)
	c := servertest.Dial(t, u.wants("addr "))
	c.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
	u.wants("waiting")
	syscall.Kill(cmd.Process.Pid, syscall.SIGUSR2)
	u.wants("replaced")
	syscall.Kill(cmd.Process.Pid, syscall.SIGTERM)
	syscall.Kill(cmd.Process.Pid, syscall.SIGINT)
	u.wants("ended: chert: second signal")
	if err := cmd.Wait(); err != nil { // which closes its output; the process in its place ends with the test
		t.Error(err)
	}
}
