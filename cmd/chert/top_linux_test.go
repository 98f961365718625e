package main

import (
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/admin"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// reading collects what a terminal shows.
func reading(master *os.File) *servertest.Log {
	out := new(servertest.Log)
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := master.Read(buf)
			out.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return out
}

func resize(t *testing.T, f *os.File, rows, columns uint16) {
	t.Helper()
	size := [4]uint16{rows, columns}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))); errno != 0 {
		t.Fatal(errno)
	}
}

// On a terminal "chert top" uses another page, follows its size and leaves it as it was.
func TestTopTerminal(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(admin.New(&chert.Server{}, nil))
	defer ts.Close()
	master, slave := terminal(t)
	resize(t, slave, 30, 100)
	p := &proc{t: t, cmd: command(t, "top", ts.URL, "--interval", "100ms")}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	screen := reading(master)
	shows := func(s string) { until(t, func() bool { return strings.Contains(screen.String(), s) }) }
	shows("\x1b[?1049h")
	shows("chert at http://127.0.0.1:")
	shows("by time")
	master.WriteString("l")
	shows("by latency")
	master.WriteString("c")
	shows("(connections)")
	resize(t, slave, 12, 40)
	shows("q quit  space pause  tab view (connections)"[:39] + "\u2026")
	ts.CloseClientConnections()
	ts.Config.Close()
	shows("cannot reach"[:6])
	master.WriteString("q")
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("q: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("q does not quit")
	}
	shows("\x1b[?1049l")
	var state syscall.Termios
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, slave.Fd(), syscall.TCGETS, uintptr(unsafe.Pointer(&state))); errno != 0 {
		t.Fatal(errno)
	}
	if state.Lflag&syscall.ICANON == 0 || state.Lflag&syscall.ECHO == 0 {
		t.Error("the terminal is still in raw mode")
	}
}
