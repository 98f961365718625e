package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// patience is how long a server may take for a command.
const patience = 60 * time.Second

// Server is a redis-server of a test, on a port of 127.0.0.1. Its methods belong
// to the test's goroutine.
type Server struct {
	Addr string

	t    testing.TB
	dir  string
	args []string
	auth string // password, if it has one
	cmd  *exec.Cmd
	out  servertest.Log
}

// Start starts a server that stores nothing on disk. args are additional
// arguments, such as "--requirepass", "secret".
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	Need(t)
	s := &Server{t: t, dir: t.TempDir(), args: args}
	for i, a := range args {
		if a == "--requirepass" {
			s.auth = args[i+1]
		}
	}
	s.Addr = net.JoinHostPort("127.0.0.1", freeport.Port(t))
	if err := s.begin(); err != nil {
		t.Fatalf("redis-server does not start: %v\n%s", err, s.out.String())
	}
	t.Cleanup(s.Kill)
	return s
}

// Need skips a test if there is no redis-server.
func Need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("no redis-server; install the package redis-server")
		}
		t.Skip("no redis-server; install the package redis-server")
	}
}

// URL returns the URL of database 0.
func (s *Server) URL() string {
	if s.auth != "" {
		return "redis://:" + s.auth + "@" + s.Addr + "/0"
	}
	return "redis://" + s.Addr + "/0"
}

func (s *Server) begin() error {
	_, port, _ := net.SplitHostPort(s.Addr)
	args := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.dir}
	if len(s.args) > 0 && !strings.HasPrefix(s.args[0], "-") {
		args = nil // in a configuration file
	}
	s.cmd = exec.Command("redis-server", append(s.args[:len(s.args):len(s.args)], args...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func(cmd *exec.Cmd) { cmd.Wait(); close(ended) }(s.cmd)
	for deadline := time.Now().Add(patience); ; {
		if reply, err := s.Do("PING"); err == nil && reply == "PONG" {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it has ended")
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.cmd.Process.Kill()
			return errors.New("it does not answer")
		}
	}
}

// Kill kills the server.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	for s.alive() { // Wait runs in begin's goroutine
		time.Sleep(time.Millisecond)
	}
	s.cmd = nil
}

func (s *Server) alive() bool {
	c, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// Restart starts a server that was killed, on the same port and empty.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.begin(); err != nil {
		s.t.Fatalf("redis-server does not start again: %v\n%s", err, s.out.String())
	}
}

// Do sends a command on a new connection. It joins arrays by newlines.
func (s *Server) Do(args ...string) (string, error) {
	c, err := net.DialTimeout("tcp", s.Addr, patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(c)
	if s.auth != "" {
		if _, err := call(c, r, "AUTH", s.auth); err != nil {
			return "", err
		}
	}
	return call(c, r, args...)
}

// Must is Do for commands that do not fail.
func (s *Server) Must(args ...string) string {
	s.t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		s.t.Fatalf("redis: %s: %v", strings.Join(args, " "), err)
	}
	return reply
}

// Await repeats a command until its reply contains want.
func (s *Server) Await(want string, args ...string) {
	s.t.Helper()
	reply, err := "", error(nil)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if reply, err = s.Do(args...); err == nil && strings.Contains(reply, want) {
			return
		}
	}
	s.t.Fatalf("redis: %s: no %q in %q, %v\n%s", strings.Join(args, " "), want, reply, err, s.out.String())
}

func call(w io.Writer, r *bufio.Reader, args ...string) (string, error) {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := w.Write(b); err != nil {
		return "", err
	}
	return read(r)
}

func read(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '-':
		return "", errors.New(line[1:])
	case '$':
		if n < 0 {
			return "", nil
		}
		b := make([]byte, n+2)
		_, err := io.ReadFull(r, b)
		return string(b[:n]), err
	case '*':
		var all []string
		for range n {
			one, err := read(r)
			if err != nil {
				return "", err
			}
			all = append(all, one)
		}
		return strings.Join(all, "\n"), nil
	}
	return line[1:], nil
}
