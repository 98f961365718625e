package h2

import (
	"testing"

	"github.com/chert-http/chert/internal/conn"
)

// hereLink is a countingLink on a loop, which no Run loses.
type hereLink struct{ countingLink }

func (l *hereLink) Start(r conn.Run, _ *conn.Here) bool {
	r.Run()
	return true
}

// counted is a Session that counts its calls.
type counted struct {
	conn.Session
	n int
}

func (c *counted) Data(bool) conn.Next { c.n++; return conn.More }

// The tunnels of a connection have their turns within Config.Slice, after which other
// connections have theirs.
func TestTunnelsTakeTurns(t *testing.T) {
	t.Parallel()
	s, _, _ := quiet()
	l := new(hereLink)
	l.shard.Init(nil)
	s.Client.Link, s.loops = l, true
	const all = 10
	var one counted
	for id := uint32(3); id <= 2*all+1; id += 2 { // after that of quiet
		st := &stream{s: s, id: id, state: stateSending}
		st.tunnel = &tunnel{offers: offers{st: st}, session: &one}
		s.streams = append(s.streams, st)
		st.feedLater()
	}
	// The time is over whenever it is asked for.
	if s.after(true); one.n == 0 || one.n >= all {
		t.Errorf("%d of %d had a turn", one.n, all)
	}
	for turns := 0; one.n < all; turns++ {
		if l.posts == 0 || turns == all {
			t.Fatalf("%d of %d had a turn, and no other comes", one.n, all)
		}
		l.posts, s.settling = 0, false // what was posted
		s.after(true)
	}
}

// ends is a Session whose Writable ends it.
type ends struct {
	conn.Session
	by conn.Next
}

func (e ends) Writable() conn.Next { return e.by }
func (e ends) Closed(bool)         {}

// The end of a tunnel whose session wants it in Writable is sent, although settle calls that after it has sent what
// was ready.
func TestTunnelEndsInWritable(t *testing.T) {
	t.Parallel()
	for _, by := range []conn.Next{conn.Close, conn.Reset} {
		s, st, _ := quiet()
		l := new(hereLink)
		l.shard.Init(nil)
		s.Client.Link = l
		st.state = stateSending
		st.tunnel = &tunnel{offers: offers{st: st, owed: true}, session: ends{by: by}}
		s.mu.Lock()
		st.tunnel.sentLocked()
		s.mu.Unlock()
		if s.settle(conn.More); l.posts == 0 && len(s.out.Bytes()) > 0 {
			t.Errorf("%v: nothing sends %q", by, s.out.Bytes())
		}
		s.out.Drop()
	}
}
