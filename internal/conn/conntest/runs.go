package conntest

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// numbered are n lines.
func numbered(line string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s %02d", line, i))
	}
	return all
}

// answer checks that the lines of want come, in any order.
func (c *client) answer(want []string) {
	c.s.t.Helper()
	var got []string
	for range want {
		line, err := c.R.ReadString('\n')
		if err != nil {
			c.s.t.Fatalf("after %d of %d lines: %v", len(got), len(want), err)
		}
		got = append(got, strings.TrimSuffix(line, "\n"))
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		c.s.t.Errorf("got %q, want %q", got, want)
	}
}

// testRuns: a hundred runs at once, which answer out of order while the session
// goes on reading. Some end their goroutine.
func testRuns(x *suite) {
	const n = 100
	var running, done atomic.Int32
	release := make(chan bool)
	s := &script{only: "go", line: func(s *script, line string) conn.Next {
		s.Share()
		for i := range n {
			running.Add(1)
			s.start(func() {
				defer running.Add(-1)
				if i%10 == 0 {
					<-release // slow
				}
				for range i * 7 % 13 {
					runtime.Gosched()
				}
				if i%10 == 7 {
					runtime.Goexit()
				}
				if i%10 == 3 {
					defer func() { recover() }()
				}
				if _, err := s.queue(fmt.Appendf(nil, "run %02d\n", i)); err != nil {
					x.Errorf("Offer: %v", err)
				}
				if i%10 == 3 {
					panic("a run's own affair")
				}
			}, func() conn.Next {
				if done.Add(1) == n {
					return s.send("all done\n")
				}
				return conn.More
			})
		}
		return conn.More
	}}
	c := x.begin(Options{}, s)
	// The slow ones are still running, and the session reads.
	pings := numbered("ping", 20)
	for _, line := range pings {
		c.Send(line + "\n")
	}
	var slow []string
	for i, line := range numbered("run", n) {
		switch i % 10 {
		case 0:
			slow = append(slow, line)
		case 7: // has ended its goroutine
		default:
			pings = append(pings, line)
		}
	}
	c.answer(pings)
	close(release)
	c.answer(append(slow, "all done"))
	if n := running.Load(); n != 0 {
		x.Errorf("%d are running", n)
	}
	// And once more, on the same link.
	c.Send("end\n")
	c.Want("end\n")
}

// testRunsBesideUser: runs end, and functions are posted, while other user code
// has the link: they are for later. Some are started there.
func testRunsBesideUser(x *suite, pooled bool) {
	const n = 10
	ended, posted := make(chan bool, 2*n), make(chan bool)
	s := &script{only: "go"}
	left, inside := 2*n, false // the owner's
	done := func() conn.Next {
		if inside {
			x.Error("Done while user code has the link")
		}
		if left--; left == 0 {
			return s.send("all done\n")
		}
		return conn.More
	}
	run := func() { s.queue([]byte("run\n")); ended <- true }
	s.line = func(s *script, line string) conn.Next {
		s.Share()
		for range n {
			s.start(run, done)
		}
		return s.either(pooled, func() conn.Next {
			inside = true
			for range n {
				<-ended
			}
			go func() {
				s.post(func() conn.Next {
					if inside {
						x.Error("posted to user code that has the link")
					}
					return s.send("posted\n")
				})
				close(posted)
			}()
			<-posted
			s.Write([]byte("user\n"), nil)
			for range n { // by an owner that does not drive the loop
				s.start(run, done)
			}
			inside = false
			return conn.More
		})
	}
	c := x.begin(Options{}, s)
	c.answer(append(slices.Repeat([]string{"run"}, 2*n), "all done", "posted", "user"))
	c.Send("end\n")
	c.Want("end\n")
}

// testRunsHalfClose: the peer has sent all it will, and gets the answers of the
// runs all the same.
func testRunsHalfClose(x *suite) {
	const n = 20
	release := make(chan bool)
	running, ends := 0, 0 // the owner's
	next := func() conn.Next {
		if ends > 0 && running == 0 {
			return conn.Close
		}
		return conn.More
	}
	s := &script{onEOF: func(*script) conn.Next {
		if ends++; ends > 100 {
			x.Error("notified of the end repeatedly")
			return conn.Close
		}
		return next()
	}, line: func(s *script, line string) conn.Next {
		s.Share()
		running++
		s.start(func() { <-release; s.queue([]byte(line + "\n")) }, func() conn.Next { running--; return next() })
		return conn.More
	}}
	c := x.open(Options{}, s)
	if !c.canHalfClose() {
		return
	}
	want := numbered("line", n)
	c.Send(strings.Join(want, "\n") + "\n")
	c.CloseWrite()
	close(release)
	c.answer(want)
	c.ends()
}

// testPost: what is posted by many is called once each, one after another with the
// session's methods, and its answer counts.
func testPost(x *suite) {
	const posters, each = 8, 100
	for _, shared := range []bool{true, false} {
		s := &script{line: func(s *script, line string) conn.Next {
			switch line {
			case "share":
				s.shareIf(shared)
			case "pause":
				s.paused = true
			}
			return s.send(line + "\n")
		}}
		c := x.open(Options{}, s)
		c.Send("share\n")
		c.Want("share\n")
		count := 0 // the owner's
		var all sync.WaitGroup
		for range posters {
			all.Go(func() {
				for range each {
					s.post(func() conn.Next { count++; return conn.More })
				}
			})
		}
		for i := range 50 {
			line := fmt.Sprintf("line %d\n", i)
			c.Send(line)
			c.Want(line)
		}
		all.Wait()
		counted := make(chan int, 1)
		s.post(func() conn.Next { counted <- count; return conn.More })
		if n := servertest.Await(x.T, counted, "the last posted"); n != posters*each {
			x.Errorf("%d were called", n)
		}
		// Buffered bytes, for which Data is called only because of Requeue.
		c.Send("pause\nlater\n")
		c.Want("pause\n")
		s.post(func() conn.Next { return s.send("posted\n") })
		c.Want("posted\n")
		s.post(func() conn.Next { s.paused = false; return conn.Requeue })
		c.Want("later\n")
		// And it may end the connection.
		s.post(func() conn.Next { s.send("bye\n"); return conn.Close })
		c.Want("bye\n")
		c.ends()
		s.Post(func() conn.Next { x.Error("called after the end"); return conn.More })
	}
}

// testPostWithin: a session's methods may post, and what they post comes after
// them.
func testPostWithin(x *suite) {
	for _, shared := range []bool{true, false} {
		s := &script{line: func(s *script, line string) conn.Next {
			s.shareIf(shared)
			s.post(func() conn.Next {
				s.post(func() conn.Next { return s.send("posted by what was posted\n") })
				return s.send("posted\n")
			})
			s.send(line + "\n")
			if line == "user" {
				return s.user(func() conn.Next {
					s.post(func() conn.Next { return s.send("posted by user code\n") })
					return conn.More
				})
			}
			return conn.More
		}}
		c := x.open(Options{}, s)
		c.Send("a\n")
		c.Want("a\nposted\nposted by what was posted\n")
		c.Send("user\n")
		c.Want("user\nposted\nposted by user code\nposted by what was posted\n")
	}
}

// testPostWaiting: a link that waits takes what is posted, and goes on when that says so.
func testPostWaiting(x *suite) {
	held := make(chan bool, 1)
	s := &script{only: "a", line: waits(held)}
	c := x.open(Options{}, s)
	c.Send("a\n")
	servertest.Await(x.T, held, "the wait")
	c.Send("b\n")
	posted := make(chan bool)
	for range 3 { // in turns of their own
		s.post(func() conn.Next {
			go func() { posted <- true }()
			return conn.More
		})
		servertest.Await(x.T, posted, "what was posted")
	}
	s.release()
	c.Want("a\nb\n")
	c.Send("c\n")
	c.Want("c\n")
}

// testGoexit: user code that ends its goroutine costs its connection and no more.
func testGoexit(x *suite) {
	hows := []string{
		"user", "pool", "user, after waiting", "pool, after waiting", "user, watching", "pool, watching",
		"user, with more queued",
	}
	for _, how := range hows {
		lines := 0
		s := &script{line: inUser(strings.HasPrefix(how, "pool"), func(s *script, _ string) conn.Next {
			lines++
			switch {
			case strings.HasSuffix(how, "waiting"):
				s.Write([]byte("reading\n"), nil)
				s.Lent().Fill()
			case strings.HasSuffix(how, "watching"):
				s.Lent().WatchPeer()
			case strings.HasSuffix(how, "queued"):
				s.Send(&conn.Write{A: []byte("queued\n"), Cork: true})
			}
			runtime.Goexit()
			return conn.More
		})}
		c := x.open(Options{}, s)
		c.Send("a\nb\n")
		switch {
		case strings.HasSuffix(how, "waiting"):
			c.Want("reading\n")
			io.WriteString(c.Conn, "b\n")
		case strings.HasSuffix(how, "queued"):
			c.Want("queued\n")
		}
		c.Ended()
		c.closes() // it may linger
		if lines != 1 {
			x.Errorf("%s: %d lines were served", how, lines)
		}
	}
}
