package stream

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// notedConn records each read deadline that has been set.
type notedConn struct {
	net.Conn
	set chan time.Time
}

func (c *notedConn) SetReadDeadline(t time.Time) error {
	err := c.Conn.SetReadDeadline(t)
	c.set <- t // afterwards, or another might be set before it
	return err
}

// reading is a connection whose user code is to read.
func reading(t *testing.T, stall time.Duration) (c *Conn, nc *notedConn, peer net.Conn) {
	ours, peer := net.Pipe()
	t.Cleanup(func() { ours.Close(); peer.Close() })
	nc = &notedConn{ours, make(chan time.Time, 1000)}
	c = New(nc, &conn.Limits{ReadStall: int64(stall)}, new(tally.Shard), nil)
	c.enter()
	return c, nc, peer
}

// A deadline is set for the first of many reads.
func TestReadDeadlineOnce(t *testing.T) {
	for _, stall := range []time.Duration{0, time.Hour} {
		c, nc, peer := reading(t, stall)
		go func() {
			for range 100 {
				peer.Write([]byte("x"))
			}
		}()
		for range 100 {
			if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if n := len(nc.set); n != 1 {
			t.Errorf("stall %v: %d deadlines were set for 100 reads", stall, n)
		}
	}
}

// One that fires for a later read, whose time has not come, is set anew.
func TestReadDeadlineEarly(t *testing.T) {
	for _, by := range []time.Duration{0, time.Hour} {
		c, nc, peer := reading(t, time.Hour)
		if by != 0 {
			c.SetReadDeadline(time.Now().Add(by))
		}
		c.mu.Lock()
		c.setReadDeadline(time.Now().Add(20 * time.Millisecond)) // as an earlier read has left it
		c.mu.Unlock()
		for len(nc.set) > 0 {
			<-nc.set
		}
		go func() {
			if at := servertest.Await(t, nc.set, "another deadline"); time.Until(at) < 10*time.Minute {
				t.Errorf("it is in %v", time.Until(at))
			}
			peer.Write([]byte("x"))
		}()
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Error(n, err)
		}
	}
}

// One that other code has set on the net.Conn ends the read.
func TestReadDeadlineOfOthers(t *testing.T) {
	for _, stall := range []time.Duration{0, time.Hour} {
		c, nc, _ := reading(t, stall)
		go func() {
			servertest.Await(t, nc.set, "the read")
			nc.Conn.SetReadDeadline(conn.LongAgo)
		}()
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(n, err)
		}
	}
}

// The user code's own counts when it is sooner, also while it reads.
func TestReadDeadlineSooner(t *testing.T) {
	c, nc, peer := reading(t, time.Hour)
	go peer.Write([]byte("x"))
	c.Read(make([]byte, 1))
	<-nc.set
	go func() {
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
	}()
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(n, err)
	}
	// And when it is over, it stays over.
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(n, err)
	}
	c.SetReadDeadline(time.Time{})
	go peer.Write([]byte("y"))
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Error(n, err)
	}
}
