package conntest

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// ending is a link in some state, for the ways in which it may end there.
type ending struct {
	*suite
	s       *script
	c       *client
	entered chan bool  // user code has begun
	leave   chan bool  // closed to let it go on
	gone    chan bool  // PeerGone was called
	err     chan error // of the user code
}

// A state is what a link is doing when it is ended.
type state struct {
	name string
	// line is what the session does for each line but "next".
	line func(e *ending, s *script) conn.Next
	// begin brings the link into the state.
	begin func(e *ending)
	// fails: user code waits for the peer, and sees its end.
	user, fails bool
	// all is what the peer gets from a link that is drained in the state; nil
	// accepts anything.
	all func() string
}

// code is user code that waits in the given way, and then answers "done".
func code(pooled bool, wait func(e *ending, s *script) error) func(*ending, *script) conn.Next {
	return func(e *ending, s *script) conn.Next {
		return s.either(pooled, func() conn.Next {
			e.entered <- true
			err := wait(e, s)
			e.err <- err
			if err != nil || s.Write([]byte("done\n"), nil) != nil {
				return conn.Close
			}
			return conn.More
		})
	}
}

func (e *ending) enters() {
	e.c.Send("go\n")
	servertest.Await(e.T, e.entered, "the user code")
}

func computes(e *ending, s *script) error {
	if s.Lent().WatchPeer() { // it is gone already
		e.s.PeerGone(false)
	}
	<-e.leave
	return nil
}

func reads(_ *ending, s *script) error  { return s.Lent().Fill() }
func writes(_ *ending, s *script) error { return s.Write(pattern(), nil) }

func sends(how conn.Next) func(*ending, *script) conn.Next {
	return func(e *ending, s *script) conn.Next {
		e.entered <- true
		h := &holder{t: e.T}
		e.Cleanup(h.gone)
		if s.Send(&conn.Write{A: []byte("x"), B: pattern(), Holder: h}) != nil {
			return conn.Close
		}
		return how
	}
}

func done() string    { return "done\n" }
func written() string { return string(pattern()) + "done\n" }
func sent() string    { return "x" + string(pattern()) }

var states = []state{
	{name: "fresh", begin: func(*ending) {}, all: func() string { return "" }},
	{name: "idle", begin: func(e *ending) { e.c.Send("next\n"); e.c.Want("next\n") }, all: func() string { return "" }},
	{name: "partial", begin: func(e *ending) { e.c.Send("next\nne"); e.c.Want("next\n") }},
	{name: "inline", user: true, line: code(false, computes), begin: (*ending).enters, all: done},
	{name: "pooled", user: true, line: code(true, computes), begin: (*ending).enters, all: done},
	{name: "reading", user: true, fails: true, line: code(false, reads), begin: (*ending).enters},
	{name: "reading, pooled", user: true, fails: true, line: code(true, reads), begin: (*ending).enters},
	{name: "writing", user: true, fails: true, line: code(false, writes), begin: (*ending).enters, all: written},
	{name: "writing, pooled", user: true, fails: true, line: code(true, writes), begin: (*ending).enters, all: written},
	{name: "stalled", line: sends(conn.More), begin: (*ending).enters, all: sent},
	{name: "stalled, to close", line: sends(conn.Close), begin: (*ending).enters, all: sent},
	{name: "stalled, to linger", line: sends(conn.Linger), begin: (*ending).enters, all: sent},
	{name: "stalled, shared", line: func(e *ending, s *script) conn.Next {
		s.Share()
		return sends(conn.More)(e, s)
	}, begin: (*ending).enters},
	{name: "stalled, shared, to close", line: func(e *ending, s *script) conn.Next {
		s.Share()
		return sends(conn.Close)(e, s)
	}, begin: (*ending).enters, all: sent},
	{name: "lingering", line: func(e *ending, s *script) conn.Next {
		s.send("no\n")
		return conn.Linger
	}, begin: func(e *ending) { e.c.Send("go\n"); e.c.Want("no\n") }},
	{name: "waiting", begin: func(e *ending) {
		held := make(chan bool, 1)
		e.s.held = held
		e.c.Send("next\n")
		servertest.Await(e.T, held, "the wait")
	}},
	{name: "runs", line: func(e *ending, s *script) conn.Next {
		s.Share()
		s.start(func() {
			e.entered <- true
			<-e.leave
			s.queue([]byte("run\n"))
		}, nil)
		return conn.More
	}, begin: (*ending).enters},
	{name: "runs that queue", line: func(e *ending, s *script) conn.Next {
		s.Share()
		s.start(func() {
			s.queue(pattern())
			e.entered <- true
			<-e.leave
			for {
				if _, err := s.queue(pattern()[:1000]); err != nil && err != conn.ErrFull {
					return
				}
				runtime.Gosched()
			}
		}, nil)
		return conn.More
	}, begin: (*ending).enters},
}

// A way is what ends a link.
type way struct {
	name string
	can  func(*client) bool
	do   func(e *ending)
	// notified: user code that has the link is notified by PeerGone; dead: its calls
	// fail.
	notified, dead bool
	drain          bool
}

var ways = []way{
	{name: "kill", do: func(e *ending) { e.c.command(conn.Kill) }, notified: true, dead: true},
	{name: "kill twice", notified: true, dead: true,
		do: func(e *ending) { e.c.command(conn.Kill); e.c.command(conn.Kill) }},
	{name: "drain", do: func(e *ending) { e.c.command(conn.Drain) }, drain: true},
	{name: "drain and kill", notified: true, dead: true,
		do: func(e *ending) { e.c.command(conn.Drain); e.c.command(conn.Kill) }},
	{name: "close", do: func(e *ending) { e.c.Close() }, notified: true, dead: true},
	{name: "vanish", do: func(e *ending) { e.c.vanish() }, notified: true, dead: true},
	{name: "reset", can: (*client).canReset, do: func(e *ending) { e.c.reset() }, notified: true, dead: true},
	{name: "FIN", can: (*client).canHalfClose, do: func(e *ending) { e.c.CloseWrite() }, notified: true},
}

// testEnds: each way in each state ends the link, once, with its user code
// notified, and leaks nothing.
func testEnds(x *suite) {
	for _, st := range states {
		for _, w := range ways {
			x.Run(st.name+", "+w.name, func(t *testing.T) {
				t.Parallel()
				(&suite{T: t, opener: x.opener, sides: x.sides}).testEnd(st, w)
			})
		}
	}
}

func (x *suite) testEnd(st state, w way) {
	e := &ending{
		suite: x, entered: make(chan bool, 1), leave: make(chan bool),
		gone: make(chan bool, 10), err: make(chan error, 1),
	}
	e.s = &script{onWritable: ignore, onGone: func(bool) {
		select {
		case e.gone <- true:
		default:
		}
	}}
	e.s.line = func(s *script, line string) conn.Next {
		if strings.HasSuffix(line, "next") || st.line == nil {
			return s.send(line + "\n")
		}
		return st.line(e, s)
	}
	e.c = x.open(Options{Small: true}, e.s)
	if w.can != nil && !w.can(e.c) {
		close(e.leave)
		return
	}
	st.begin(e)
	w.do(e)
	if st.user && !st.fails && w.notified {
		servertest.Await(x.T, e.gone, "PeerGone")
	}
	close(e.leave)
	got := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(e.c.R)
		got <- string(b)
	}()
	switch {
	case st.name == "partial" && w.drain:
		// It may be completed.
		e.c.Send("xt\n")
	case st.name == "waiting":
		e.s.release()
	case strings.HasPrefix(st.name, "reading") && w.drain:
		e.c.Send("next\n")
	}
	all := servertest.Await(x.T, got, "the end")
	if st.user {
		err := servertest.Await(x.T, e.err, "the end of the user code")
		if st.fails && w.dead && err == nil {
			x.Error("the user code's call has not failed")
		}
		if w.drain && err != nil {
			x.Errorf("the user code's call has failed: %v", err)
		}
	}
	if w.drain && st.all != nil {
		same(x.T, []byte(all), []byte(st.all()))
	}
	e.c.Close()
	if servertest.Await(x.T, e.s.closed, "Closed") {
		x.Error("hijacked")
	}
}
