package conntest

import (
	"bytes"
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
	gone    chan bool  // gets what PeerGone was called with
	err     chan error // of the user code
}

// A state is what a link is doing when it is ended.
type state struct {
	name string
	// line makes what the session does for the line "go"; nil, and for others: it echoes them.
	line func(e *ending) server
	// begin brings the link into the state; nil sends a line, for which line enters.
	begin func(e *ending)
	// fails: user code waits for the peer, and sees its end.
	user, fails bool
	// all is what the peer gets from a link that is drained in the state; nil
	// accepts anything.
	all func() string
}

// code is user code that waits in the given way, and then answers "done".
func code(pooled bool, wait func(e *ending, s *script) error) func(*ending) server {
	return func(e *ending) server {
		return inUser(pooled, func(s *script, _ string) conn.Next {
			err := wait(e, s)
			e.err <- err
			if err != nil || s.Write([]byte("done\n"), nil) != nil {
				return conn.Close
			}
			return conn.More
		})
	}
}

func computes(e *ending, s *script) error {
	if s.Lent().WatchPeer() { // before the peer may end it: otherwise PeerGone might not be called
		e.Error("the peer is gone")
	}
	e.entered <- true
	<-e.leave
	return nil
}

func reads(e *ending, s *script) error {
	e.entered <- true
	return s.Lent().Fill()
}

func writes(e *ending, s *script) error {
	e.entered <- true
	return s.Write(pattern(), nil)
}

// sends is a session that sends much in one Write, and then requests how.
func sends(how conn.Next, shared bool) func(*ending) server {
	return func(e *ending) server {
		return func(s *script, _ string) conn.Next {
			s.shareIf(shared)
			e.entered <- true
			h := &holder{t: e.T}
			e.Cleanup(h.gone)
			if s.Send(&conn.Write{A: []byte("x"), B: pattern(), Holder: h}) != nil {
				return conn.Close
			}
			return how
		}
	}
}

func done() string    { return "done\n" }
func written() string { return string(pattern()) + "done\n" }
func sent() string    { return "x" + string(pattern()) }

func none() string { return "" }

var states = []state{
	{name: "fresh", begin: func(*ending) {}, all: none},
	{name: "idle", begin: func(e *ending) { e.c.Send("next\n"); e.c.Want("next\n") }, all: none},
	{name: "partial", begin: func(e *ending) { e.c.Send("next\nne"); e.c.Want("next\n") }},
	{name: "inline", user: true, line: code(false, computes), all: done},
	{name: "pooled", user: true, line: code(true, computes), all: done},
	{name: "reading", user: true, fails: true, line: code(false, reads)},
	{name: "reading, pooled", user: true, fails: true, line: code(true, reads)},
	{name: "writing", user: true, fails: true, line: code(false, writes), all: written},
	{name: "writing, pooled", user: true, fails: true, line: code(true, writes), all: written},
	{name: "stalled", line: sends(conn.More, false), all: sent},
	{name: "stalled, to close", line: sends(conn.Close, false), all: sent},
	{name: "stalled, to linger", line: sends(conn.Linger, false), all: sent},
	{name: "stalled, shared", line: sends(conn.More, true)},
	{name: "stalled, shared, to close", line: sends(conn.Close, true), all: sent},
	{name: "lingering", line: func(*ending) server { return refuses },
		begin: func(e *ending) { e.c.Send("go\n"); e.c.Want("no\n") }},
	{name: "waiting", line: func(e *ending) server { return waits(e.entered) }, begin: func(e *ending) {
		e.c.Send("go\n")
		servertest.Await(e.T, e.entered, "the wait")
		e.c.Send("next\n") // which is not read
	}},
	{name: "runs", line: func(e *ending) server {
		return beside(func(s *script) {
			e.entered <- true
			<-e.leave
			s.queue([]byte("run\n"))
		})
	}},
	{name: "runs that queue", line: func(e *ending) server {
		return beside(func(s *script) {
			s.queue(pattern())
			e.entered <- true
			<-e.leave
			for {
				if _, err := s.queue(pattern()[:1000]); err != nil && err != conn.ErrFull {
					return
				}
				runtime.Gosched()
			}
		})
	}},
}

// A way is what ends a link.
type way struct {
	name string
	can  func(*client) bool
	do   func(e *ending)
	// notified: user code that has the link is notified by PeerGone; dead: its calls
	// fail; reset, where the peer's end may not be either: "no" or "yes".
	notified, dead bool
	reset          string
	drain          bool
}

var ways = []way{
	{name: "kill", notified: true, dead: true, reset: "yes",
		do: func(e *ending) { e.c.command(conn.Kill) }},
	{name: "kill twice", notified: true, dead: true,
		do: func(e *ending) { e.c.command(conn.Kill); e.c.command(conn.Kill) }},
	{name: "drain", do: func(e *ending) { e.c.command(conn.Drain) }, drain: true},
	{name: "drain and kill", notified: true, dead: true,
		do: func(e *ending) { e.c.command(conn.Drain); e.c.command(conn.Kill) }},
	{name: "close", do: func(e *ending) { e.c.Close() }, notified: true, dead: true},
	{name: "vanish", do: func(e *ending) { e.c.vanish() }, notified: true, dead: true},
	{name: "reset", can: (*client).canReset, notified: true, dead: true, reset: "yes",
		do: func(e *ending) { e.c.reset() }},
	{name: "bad record", can: (*client).canBreak, notified: true, reset: "yes",
		do: func(e *ending) { e.c.raw.Write(bytes.Repeat([]byte{255}, 100)) }},
	{name: "FIN", can: (*client).canHalfClose, notified: true, reset: "no",
		do: func(e *ending) { e.c.CloseWrite() }},
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
	e.s = &script{only: "go", onGone: func(reset bool) {
		select {
		case e.gone <- reset:
		default:
		}
	}}
	if st.line != nil {
		e.s.line = st.line(e)
	}
	e.c = x.open(Options{Small: true}, e.s)
	if w.can != nil && !w.can(e.c) {
		close(e.leave)
		return
	}
	if st.begin != nil {
		st.begin(e)
	} else {
		e.c.Send("go\n")
		servertest.Await(x.T, e.entered, "the line's turn")
	}
	w.do(e)
	if st.user && !st.fails && w.notified {
		if reset := servertest.Await(x.T, e.gone, "PeerGone"); w.reset != "" && reset != (w.reset == "yes") {
			x.Errorf("by a reset: %v", reset)
		}
		if len(e.s.closed) > 0 {
			x.Error("closed under its user code")
		}
	}
	close(e.leave)
	got := e.c.reading()
	switch {
	case st.name == "partial" && w.drain:
		// It may be completed.
		e.c.Send("xt\n")
	case st.name == "waiting" && w.name != "reset": // which ends the wait
		e.s.release()
	case strings.HasPrefix(st.name, "reading") && w.drain:
		e.c.Send("next\n")
	}
	all := servertest.Await(x.T, got, "the end")
	if st.user {
		err := servertest.Await(x.T, e.err, "the end of the user code")
		if st.fails && w.dead && err == nil || w.drain && err != nil {
			x.Errorf("the user code's call: %v", err)
		}
	}
	if w.drain && st.all != nil {
		same(x.T, []byte(all), []byte(st.all()))
	}
	e.c.Close()
	e.s.isClosed()
}
