package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// terminal opens a pair of which the second is a terminal that is hung up when the first is closed.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	var unlock, n int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &n} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
			t.Skip("no terminals here: ", errno)
		}
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// startIn starts chert under a terminal.
func startIn(t *testing.T, slave *os.File, before ...string) *proc {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &proc{t: t, cmd: command(t)}
	p.cmd.Path = "/bin/sh"
	p.cmd.Args = append([]string{"sh", "-c", strings.Join(before, "") + `exec "$@"`, "sh"}, bin, "serve", t.TempDir(), "-l", "127.0.0.1:0")
	p.cmd.Stdin = slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	p.begin()
	slave.Close()
	return p
}

// echoes reports whether a terminal shows what is typed.
func echoes(t *testing.T, terminal *os.File) bool {
	t.Helper()
	var state syscall.Termios
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), syscall.TCGETS, uintptr(unsafe.Pointer(&state)))
	if errno != 0 {
		t.Fatal(errno)
	}
	return state.Lflag&syscall.ECHO != 0
}

// A signal at the prompt of hash-password ends it, and leaves a terminal that shows what is typed.
func TestHashPasswordInterrupted(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM} {
		_, slave := terminal(t)
		c := command(t, "hash-password")
		c.Stdin = slave
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return !echoes(t, slave) })
		if err := c.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err == nil || !echoes(t, slave) {
			t.Errorf("%v: %v, and the terminal shows what is typed: %v", sig, err, echoes(t, slave))
		}
	}
}

// When its terminal closes chert ends, as other programs do. Otherwise an invisible process would hold its port.
func TestTerminalCloses(t *testing.T) {
	t.Parallel()
	// The tests may run under nohup, and a program inherits what is ignored, but
	// not what is caught.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	master, slave := terminal(t)
	p := startIn(t, slave)
	p.reload() // the terminal is there, so the signal is a request to reload
	master.Close()
	if line := p.line(); !strings.HasPrefix(line, "chert: hangup: finishing running requests") {
		t.Errorf("line %q", line)
	}
	p.waitFor(exitOK)
}

func TestTerminalClosesNohup(t *testing.T) {
	t.Parallel()
	master, slave := terminal(t)
	p := startIn(t, slave, "trap '' HUP; ")
	master.Close()
	// Once the terminal is gone, it means what it says. The terminal's own may come at the same time as one of these.
	reloaded := make(chan string, 1)
	go func() {
		line, _ := p.stdout.ReadString('\n')
		reloaded <- line
	}()
	until(t, func() bool {
		p.signal(syscall.SIGHUP)
		select {
		case line := <-reloaded:
			return strings.HasPrefix(line, "chert: reloaded; ")
		case <-time.After(10 * time.Millisecond):
			return false
		}
	})
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
}
