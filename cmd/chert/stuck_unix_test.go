//go:build unix

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
)

// stuckPipe is a pipe that is full, and that nothing reads.
func stuckPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	fd := int(w.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = syscall.Write(fd, make([]byte, size))
		}
		if err != syscall.EAGAIN {
			t.Fatal(err)
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	return w
}

// A server serves and stops though nothing reads its errors.
func TestStuckStderr(t *testing.T) {
	needSignals(t)
	t.Run("serves", func(t *testing.T) {
		t.Parallel()
		p := &proc{t: t, cmd: command(t, "serve", folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0",
			"--tls-self", "--tls-storage", t.TempDir())}
		p.cmd.Stderr = stuckPipe(t)
		p.begin()
		for range 20 {
			c := dial(t, p.urls[0])
			c.SetDeadline(time.Now().Add(patience))
			fmt.Fprint(c, "\x16\x03\x01\x00\x05hello")
			if _, err := io.ReadAll(c); err != nil {
				t.Fatal(err)
			}
		}
		c := mustDialTLS(t, p.urls[0], &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"})
		fmt.Fprint(c, "GET /f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if got, err := io.ReadAll(c); !strings.HasSuffix(string(got), "\r\n\r\nbody") {
			t.Errorf("%q %v", got, err)
		}
		p.signal(syscall.SIGTERM)
		p.waitFor(exitOK)
	})
	t.Run("second signal", func(t *testing.T) {
		t.Parallel()
		p := &proc{t: t, cmd: command(t, "serve")}
		p.cmd.Stderr = stuckPipe(t)
		p.slowDownload()
		p.signal(syscall.SIGTERM)
		p.line()
		p.signal(os.Interrupt) // whose message cannot be written
		p.waitFor(exitFailure)
	})
	t.Run("cut off", func(t *testing.T) {
		t.Parallel()
		p := &proc{t: t, cmd: command(t, "serve", "--shutdown-timeout", "100ms")}
		p.cmd.Stderr = stuckPipe(t)
		p.slowDownload()
		p.signal(syscall.SIGTERM)
		p.waitFor(exitFailure) // which cannot be explained
	})
}

// A server prints without waiting for long: what is written while a line waits is dropped.
func TestUnwaited(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	u := &unwaited{w: g}
	fmt.Fprint(u, "first ")
	fmt.Fprint(u, "second ")
	close(g.open)
	for u.busy.Load() {
		runtime.Gosched()
	}
	fmt.Fprint(u, "third")
	if got := g.buf.String(); got != "first third" {
		t.Errorf("%q", got)
	}
}

// A server goes on when what reads its errors and its log has gone, and ends as it would.
func TestStderrGone(t *testing.T) {
	needSignals(t)
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	p := &proc{t: t, cmd: command(t, "serve", folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0",
		"--log", "combined")}
	p.cmd.Stderr = w
	p.begin()
	for range 3 {
		if status, body := get(t, newClient(t, ""), p.urls[0]+"f"); status != 200 || body != "body" {
			t.Errorf("%d %q", status, body)
		}
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
}

// announced is a gate that tells of its first Write.
type announced struct {
	*gate
	once  sync.Once
	began chan struct{}
}

func (g *announced) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.began) })
	return g.gate.Write(p)
}

// An error is reported without waiting for the reader of stderr, which learns how many were dropped.
func TestErrorsAreDropped(t *testing.T) {
	t.Parallel()
	g := &announced{gate: &gate{open: make(chan struct{})}, began: make(chan struct{})}
	o := &errorOutput{log: newLog(g)}
	o.set(logOff)
	l := slog.New(o)
	long := strings.Repeat("x", 10000)
	l.Error(long)
	<-g.began
	n := 1
	for ; !o.log.Full(); n++ {
		l.Error(long)
	}
	for range 3 {
		l.Error(long)
	}
	close(g.open)
	o.close()
	if got := g.buf.String(); strings.Count(got, long) != n ||
		!strings.HasSuffix(got, "x\nchert: errors that were dropped, as nothing read them in time: 3\n") {
		t.Errorf("%d errors of %d, the end is %q", strings.Count(got, long), n, got[max(len(got)-200, 0):])
	}
}

// turns is a writer each of whose writes waits until it may go on.
type turns struct{ begun, goOn chan struct{} }

func (w turns) Write(p []byte) (int, error) {
	w.begun <- struct{}{}
	<-w.goOn
	return len(p), nil
}

// An error is reported without waiting, too, if the line that tells of dropped ones takes the last room.
func TestErrorsAfterDropped(t *testing.T) {
	t.Parallel()
	const room = 64 << 10
	w := turns{make(chan struct{}), make(chan struct{})}
	o := &errorOutput{log: middleware.NewLineWriter(w, &middleware.LineWriterOptions{BufferSize: room, FlushInterval: -1})}
	o.set(logOff)
	lines := func(n int) { o.log.Write([]byte(strings.Repeat("x", n-1) + "\n")) }
	lines(room)
	servertest.Await(t, w.begun, "the first write")
	lines(room)
	slog.New(o).Error("dropped")
	w.goOn <- struct{}{}
	servertest.Await(t, w.begun, "the second write")
	lines(room - 1)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		slog.New(o).Error("this one too")
	}()
	servertest.Await(t, reported, "the error to be dropped")
	go func() {
		for range w.begun {
			w.goOn <- struct{}{}
		}
	}()
	w.goOn <- struct{}{}
	o.close()
	close(w.begun)
}
