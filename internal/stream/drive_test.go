package stream

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// turns is a session whose Data returns the result of data. It records the calls.
type turns struct {
	conn.Quiet
	data   func() conn.Next
	called []string
}

func (s *turns) Data(eof bool) conn.Next {
	if s.called = append(s.called, "Data"); eof {
		return conn.Close
	}
	return s.data()
}

func (s *turns) Closed(bool) { s.called = append(s.called, "Closed") }

// After Elsewhere the owner calls Data before any posted function.
func TestElsewhereBeforePosts(t *testing.T) {
	t.Parallel()
	for _, next := range []conn.Next{conn.More, conn.Wait, conn.Requeue, conn.Close} {
		ours, peer := net.Pipe()
		c := New(ours, new(conn.Limits), nil, nil)
		s := new(turns)
		s.data = func() conn.Next {
			if len(s.called) > 1 {
				return conn.More
			}
			c.Post(func() conn.Next {
				s.called = append(s.called, "post")
				go peer.Close()
				if next == conn.Wait {
					c.Post(func() conn.Next { return conn.Requeue })
				}
				return next
			})
			return conn.Elsewhere
		}
		ended := make(chan bool)
		go func() {
			c.Run(s)
			close(ended)
		}()
		peer.Write([]byte("x"))
		servertest.Await(t, ended, "Run")
		if !slices.Equal(s.called[:3], []string{"Data", "Data", "post"}) || s.called[len(s.called)-1] != "Closed" {
			t.Errorf("%d: %v", next, s.called)
		}
	}
}

// Drive calls Data even if its context has ended, but does not wait.
func TestDriveWithoutWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, next := range []conn.Next{conn.More, conn.Wait, conn.Pause} {
		ours, _ := net.Pipe()
		c := New(ours, new(conn.Limits), nil, nil)
		s := &turns{data: func() conn.Next { return next }}
		c.Switch(s)
		if got := c.Drive(ctx, conn.Elsewhere); got != conn.Elsewhere || len(s.called) != 1 {
			t.Errorf("%d: %d, %v", next, got, s.called)
		}
		c.End(conn.Close)
	}
}

// sizes is a net.Conn that records the length of each Write.
type sizes struct {
	net.Conn
	all []int
}

func (c *sizes) Write(p []byte) (int, error) {
	c.all = append(c.all, len(p))
	return len(p), nil
}

// A large message is written in pieces, since Limits.WriteStall applies to each Write.
func TestPieces(t *testing.T) {
	t.Parallel()
	ours, _ := net.Pipe()
	nc := &sizes{Conn: ours}
	c := New(nc, &conn.Limits{WriteStall: 1 << 40}, nil, nil)
	c.Switch(new(turns))
	c.Share()
	sum := 0
	for _, n := range []int{5, 1 << 20, 0, pieceSize - 5} {
		sum += n
		if _, err := c.Out().Offer(make([]byte, n), nil, -1); err != nil {
			t.Fatal(err)
		}
	}
	c.End(conn.Close)
	for _, n := range nc.all {
		if sum -= n; n > pieceSize {
			t.Errorf("a Write of %d bytes", n)
		}
	}
	if sum != 0 {
		t.Errorf("%d bytes are missing", sum)
	}
}

// lateConn is a socket whose next read deadline has passed when it is set.
type lateConn struct {
	*net.TCPConn
	late bool
}

func (c *lateConn) SetReadDeadline(t time.Time) error {
	if !c.late && !t.IsZero() {
		c.late = true
		time.Sleep(time.Until(t))
	}
	return c.TCPConn.SetReadDeadline(t)
}

// What has arrived before Drain is given to the session even if the grace is over before it is read.
func TestDrainUnread(t *testing.T) {
	t.Parallel()
	ours, peer := servertest.TCPConns(t)
	c := New(&lateConn{TCPConn: ours}, new(conn.Limits), nil, nil)
	s := &drained{turns: turns{data: func() conn.Next { return conn.Close }}}
	c.Switch(s)
	c.Drain()
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "it has arrived", c.unread)
	if c.Run(s); !slices.Equal(s.called, []string{"Data", "Closed"}) {
		t.Errorf("%v", s.called)
	}
}

// A connection whose deadline has passed, or whose peer has ended its stream, ends with Drain
// although there are bytes that nothing will read.
func TestDrainUnreadable(t *testing.T) {
	t.Parallel()
	for name, eof := range map[string]bool{"deadline": false, "eof": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, peer := servertest.TCPConns(t)
			var nc net.Conn = ours
			if eof {
				nc = ended{ours}
			}
			c := New(nc, new(conn.Limits), nil, nil)
			s := &drained{ignores: eof}
			c.Switch(s)
			if !eof {
				c.SetDeadline(1)
			}
			if _, err := peer.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			servertest.Eventually(t, "it has arrived", c.unread)
			c.Drain()
			over := make(chan bool)
			go func() {
				c.Run(s)
				close(over)
			}()
			peer.CloseWrite()
			servertest.Await(t, over, "Run")
		})
	}
}

// ended is a socket that reads as ended by what is above it, as TLS does after the peer's alert.
type ended struct{ *net.TCPConn }

func (ended) Read([]byte) (int, error) { return 0, io.EOF }

// drained is a session that ends where it waits.
type drained struct {
	turns
	ignores bool // the end of the peer's stream
}

func (s *drained) Data(eof bool) conn.Next {
	if s.ignores {
		return conn.More
	}
	return s.turns.Data(eof)
}

func (*drained) Drain(int64) conn.Next { return conn.Close }
