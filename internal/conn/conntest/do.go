package conntest

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// patient is user code that may panic.
type patient func()

func (p patient) Run()           { p() }
func (p patient) Ended(exec.End) {}

// testDo: user code runs wherever a method of the session may run it. The link goes on after it has waited or
// panicked, and belongs to it after a hijack.
func testDo(x *suite) {
	for _, where := range []string{"data", "elsewhere", "post", "post, elsewhere", "done"} {
		for _, what := range []string{"reads", "waits", "yields", "panics", "hijacks"} {
			x.do(where, what)
		}
	}
}

func (x *suite) do(where, what string) {
	x.Helper()
	s := &script{only: "go"}
	wait := moment
	var run func() conn.Next
	run = func() conn.Next {
		next := conn.Requeue
		ran, waited := s.Do(patient(func() {
			switch what {
			case "reads":
				s.Write([]byte("reads\n"), nil)
				if err := s.Lent().Fill(); err != nil {
					x.Errorf("%s, %s: %v", where, what, err)
				}
				return
			case "waits":
				s.Lent().SetReadDeadline(time.Now().Add(wait))
				timeout(x, where, s.Lent().Fill())
			case "yields":
				s.Lent().Yield()
			case "panics":
				panic("user code's own affair")
			case "hijacks":
				nc, _, err := s.Lent().Hijack()
				if err != nil {
					x.Errorf("%s, %s: %v", where, what, err)
					return
				}
				io.WriteString(nc, "done\n")
				nc.Close()
				next = conn.Detached
				return
			}
			if s.OnLoop() {
				x.Errorf("%s, %s: it drives a loop", where, what)
			}
		}))
		if what == "waits" && !waited && wait < 100*moment {
			wait *= 4 // it had passed before the wait
			return run()
		}
		if !ran || what == "waits" && !waited {
			x.Errorf("%s, %s: ran %v, waited %v", where, what, ran, waited)
		}
		if next == conn.Requeue {
			s.send("done\n")
		}
		return next
	}
	elsewhere := func() conn.Next { s.first = run; return conn.Elsewhere }
	s.line = func(s *script, _ string) conn.Next {
		switch where {
		case "elsewhere":
			return elsewhere()
		case "post":
			s.post(run)
		case "post, elsewhere":
			s.post(elsewhere)
		case "done":
			s.start(func() {}, run)
		default:
			return run()
		}
		return conn.More
	}
	c := x.begin(Options{}, s)
	if what == "reads" {
		c.Want("reads\n")
		c.Send("go on\n")
	}
	c.Want("done\n")
	if what == "hijacks" {
		c.Ended()
		s.isHijacked()
		return
	}
	if what != "reads" {
		c.Send("go on\n")
	}
	c.Want("go on\n")
}

// testDoKilled: user code does not begin on a link that has been killed, since PeerGone found none to notify.
func testDoKilled(x *suite) {
	var c *client
	opened := make(chan bool)
	s := &script{line: func(s *script, _ string) conn.Next {
		s.first = func() conn.Next {
			<-opened
			c.command(conn.Kill)
			if ran, _ := s.Do(patient(func() { x.Error("user code began after Kill") })); ran {
				x.Error("Do says that it ran")
			}
			return conn.Close
		}
		return conn.Elsewhere
	}}
	c = x.begin(Options{}, s)
	close(opened)
	c.ends()
}

// testWatchPeer: user code is notified of the peer's end when all before that has been read, and what the watch
// reads is not lost.
func testWatchPeer(x *suite, pooled bool) {
	entered, leave, gone := make(chan bool), make(chan bool), make(chan bool, 10)
	s := &script{onGone: func(reset bool) { gone <- reset }}
	s.line = inUser(pooled, func(s *script, line string) conn.Next {
		if line == "unread" {
			entered <- true
			<-leave
		}
		s.Lent().WatchPeer()
		over := s.Lent().WatchPeer() // which a second call does not change
		if line == "last" && !over {
			over = !servertest.Await(x.T, gone, "PeerGone")
		}
		if over != (line == "last") {
			x.Errorf("%s: gone is %v", line, over)
		}
		return unless(s.Write([]byte(line+"\n"), nil))
	})
	c := x.open(Options{}, s)
	for i := range 100 {
		lines := strings.Repeat(fmt.Sprintf("%d%s\n", i, strings.Repeat("x", i%40)), 1+i%2)
		c.Send(lines)
		c.Want(lines)
	}
	if !c.canHalfClose() {
		return
	}
	c.Send("unread\n")
	servertest.Await(x.T, entered, "the user code")
	c.Send("last\n")
	c.CloseWrite()
	close(leave)
	c.Want("unread\nlast\n")
	c.ends()
}

// testCloseUnread: what the peer has sent while its last line was answered, and no code has read, does not cut the
// answer by a reset.
func testCloseUnread(x *suite) {
	if !sys.HavePoller {
		x.Skip("sockets cannot be asked for what they have")
	}
	for _, pooled := range []bool{false, true} {
		entered, leave := make(chan bool), make(chan bool)
		s := &script{line: inUser(pooled, func(s *script, _ string) conn.Next {
			entered <- true
			<-leave
			if err := s.Write(pattern(), nil); err != nil {
				x.Error(err)
			}
			return conn.Close
		})}
		c := x.begin(Options{}, s)
		servertest.Await(x.T, entered, "the user code")
		c.Send("unread\n")
		close(leave)
		same(x.T, []byte(c.Rest()), pattern())
		c.closes()
	}
}

// testDiscardInput: a peer that reads only when it has sent all gets an answer that makes no use of it.
func testDiscardInput(x *suite) {
	for _, shared := range []bool{false, true} {
		s := &script{line: func(s *script, _ string) conn.Next {
			s.shareIf(shared)
			s.give(&conn.Write{A: pattern(), Holder: &holder{t: x.T}, DiscardInput: true})
			return conn.Linger
		}}
		c := x.begin(Options{Small: true}, s)
		for range 4 * large / len(pattern()) { // more than the sockets hold
			if _, err := c.Conn.Write(pattern()); err != nil {
				x.Fatal(err)
			}
		}
		same(x.T, []byte(c.Rest()), pattern())
		c.closes()
	}
}

// testForAll: a Write that waits for all returns when nothing is queued any more, however little is in memory.
func testForAll(x *suite) {
	const most = large - 10
	file := patternFile(x.T)
	for _, pooled := range []bool{false, true} {
		for _, shared := range []bool{false, true} {
			s := &script{line: func(s *script, _ string) conn.Next {
				s.shareIf(shared)
				return s.either(pooled, func() conn.Next {
					s.Send(&conn.Write{File: file, Len: most, Holder: &holder{t: x.T}})
					err := s.Send(&conn.Write{A: pattern()[most:], Wait: conn.ForAll})
					if waiting, _ := s.Out().Unsent(); waiting > 0 || err != nil {
						x.Errorf("pooled %v, shared %v: %d bytes wait, %v", pooled, shared, waiting, err)
					}
					return s.send("end\n")
				})
			}}
			c := x.begin(Options{Small: true}, s)
			c.gets(pattern())
			c.Want("end\n")
		}
	}
}

// testOfferEnds: Offer fails once the session has requested the end, and all that was accepted before comes.
func testOfferEnds(x *suite) {
	for _, how := range []conn.Next{conn.Close, conn.Linger} {
		accepted := make(chan int, 1)
		s := &script{line: func(s *script, _ string) conn.Next {
			s.Share()
			s.start(func() {
				n := 0
				var err error
				for err == nil || err == conn.ErrFull {
					if _, err = s.queue([]byte("!")); err == nil {
						n++
					}
				}
				accepted <- n
			}, nil)
			s.send(string(pattern()))
			return how
		}}
		c := x.begin(Options{Small: true}, s)
		n := servertest.Await(x.T, accepted, "the refusal")
		got := c.Rest()
		same(x.T, []byte(strings.Trim(got, "!")), pattern())
		if len(got) != large+n {
			x.Errorf("%d of %d came", len(got)-large, n)
		}
		c.closes()
	}
}
