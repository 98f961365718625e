//go:build linux || darwin

package conntest

import (
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// OnLoop opens connections on a loop for each.
func OnLoop(pair servertest.Pair) Opener {
	return func(t testing.TB, o Options, s Session) Peer {
		t.Helper()
		l := Running(t)
		fd, nc := pair(t)
		if o.Small {
			syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_SNDBUF, servertest.Small(nc))
		}
		shared := &conn.Shared{Limits: o.Limits, Gate: loop.NewGate(0, 0)}
		shared.Gate.Enter()
		t.Cleanup(func() {
			servertest.Eventually(t, "its place is free", func() bool { return shared.Gate.Open() == 0 })
		})
		c := new(conn.Conn)
		opened := make(chan error, 1)
		l.Do(func() {
			s.On(c)
			deadline := int64(0)
			if o.Deadline != 0 {
				deadline = l.Now() + o.Deadline
			}
			local := nc.RemoteAddr()
			err := c.Open(l, fd, "peer", &local, s, shared, deadline)
			if err == nil && o.Layer != nil {
				err = c.SetLayer(o.Layer)
			}
			opened <- err
		})
		if err := servertest.Await(t, opened, "the loop"); err != nil {
			t.Fatal(err)
		}
		return Peer{Conn: nc, Command: func(m conn.Command, first func()) {
			obeyed := make(chan bool, 1)
			l.Do(func() {
				if first != nil {
					first()
				}
				l.Broadcast(m) // it is alone there
				obeyed <- true
			})
			servertest.Await(t, obeyed, "the loop")
		}}
	}
}

// Running is a loop that runs until the test's end.
func Running(t testing.TB) *loop.Loop {
	t.Helper()
	l, err := loop.New()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	t.Cleanup(func() {
		l.Do(l.Retire)
		if err := servertest.Await(t, done, "the loop's end"); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return l
}
