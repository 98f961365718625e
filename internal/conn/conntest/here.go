package conntest

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// testRunsHere: a run on the loop that waits, takes long or ends its goroutine leaves
// the link to the loop, which goes on with the bytes at hand. Each is done once.
func testRunsHere(x *suite) {
	for _, how := range []string{"waits", "takes long", "ends", "waits and ends", "posted"} {
		var others atomic.Int32
		release, done := make(chan bool), make(chan string, 10)
		s := new(script)
		slow := func(h *conn.Here) {
			switch how {
			case "takes long":
				for others.Load() < 2 {
					runtime.Gosched()
				}
			case "ends":
				runtime.Goexit()
			default:
				h.Yield()
				<-release
			}
			if how == "waits and ends" {
				runtime.Goexit()
			}
		}
		s.line = func(s *script, line string) conn.Next {
			s.Share()
			finished := func() conn.Next { done <- line; return s.send(line + "\n") }
			if line != "slow" {
				return s.startHere(func(*conn.Here) { others.Add(1) }, finished)
			}
			if how == "posted" {
				s.Post(func() conn.Next {
					s.enter("a posted function")
					next := s.startHere(slow, finished)
					if next != conn.Lost {
						s.leave()
					}
					return next
				})
				return conn.More
			}
			return s.startHere(slow, finished)
		}
		c := x.open(Options{}, s)
		c.Send("slow\na\nb\n")
		want := []string{"a", "b"}
		if how == "ends" || how == "takes long" {
			want = append(want, "slow")
		}
		c.answer(want)
		if close(release); len(want) < 3 {
			c.Want("slow\n")
		}
		c.Send("c\n")
		c.Want("c\n")
		for range 4 {
			servertest.Await(x.T, done, "Done")
		}
		if len(done) > 0 {
			x.Errorf("%s: %q is done twice", how, <-done)
		}
	}
}

// testPause: nothing is read while the peer takes nothing, and all is answered in the
// end. What a session queues stays little. Reading begins again before all is sent.
func testPause(x *suite) {
	const lines = 3000
	answer := strings.Repeat("x", 1000)
	var most atomic.Int64
	var early atomic.Bool
	paused := false
	s := &script{line: func(s *script, line string) conn.Next {
		s.Share()
		if left, _ := s.Out().Unsent(); paused && left > 0 {
			early.Store(true)
		}
		paused = false
		full, err := s.queue([]byte(line + answer + "\n"))
		waiting, _ := s.Out().Unsent()
		most.Store(max(most.Load(), waiting))
		switch {
		case err == conn.ErrFull:
			s.first = func() conn.Next { return s.serveLine(line) }
			paused = true
			return conn.Pause
		case full:
			paused = true
			return conn.Pause
		}
		return conn.More
	}}
	c := x.open(Options{Small: true}, s)
	c.sendLines(lines)
	for i := range lines {
		c.Want(fmt.Sprint(i) + answer + "\n")
		if x.sides == nil && !early.Load() {
			// A peer that reads everything at once leaves nothing unsent at the
			// end of any pause. On a busy machine even one that waits a little does.
			time.Sleep(time.Duration(50+i) * time.Microsecond)
		}
	}
	if n := most.Load(); n > 1<<20 {
		x.Errorf("%d bytes were queued", n)
	}
	// A layer has taken what is queued long before it is sent.
	if !early.Load() && x.sides == nil {
		x.Error("nothing was read until all was sent")
	}
}

// testDrainUnread: what the peer has sent before is answered, although no event has told of it. After a HalfClose,
// which is at once, it may be discarded, but the peer sees the end and no reset.
func testDrainUnread(x *suite) {
	for _, half := range []bool{false, true} {
		s := new(script)
		if half {
			s.onDrain = func(*script, int64) conn.Next { return conn.HalfClose }
		}
		c := x.open(Options{}, s)
		c.Send("a\n")
		c.Want("a\n")
		sent := ""
		c.commandAfter(conn.Drain, func() {
			if c.canHalfClose() { // a pipe keeps nothing
				sent = "b\n"
				c.Send(sent)
				c.arrived()
			}
		})
		if b, err := io.ReadAll(c.R); err != nil || string(b) != sent && (!half || len(b) > 0) {
			x.Errorf("half %v: %q, %v", half, b, err)
		}
		c.ends()
	}
}

// fill offers until the sockets are full as well.
func (s *script) fill() {
	for full := false; !full; {
		full, _ = s.queue(make([]byte, 16<<10))
	}
}

// testPauseRoom: Writable is called once, and before Data, after a pause, whatever else is called meanwhile.
func testPauseRoom(x *suite) {
	s := &script{line: func(s *script, line string) conn.Next {
		s.Share()
		s.writables.Store(0)
		s.fill()
		s.first = func() conn.Next {
			if n := s.writables.Load(); n != 1 {
				x.Errorf("Writable was called %d times before Data", n)
			}
			return s.send("end\n")
		}
		return conn.Pause
	}}
	c := x.open(Options{Small: true}, s)
	stop := make(chan bool)
	defer close(stop)
	go func() {
		posted := make(chan bool, 1)
		for {
			s.post(func() conn.Next { posted <- true; return conn.More })
			select {
			case <-posted:
			case <-stop:
				return
			}
		}
	}()
	for range 50 {
		c.Send("a\n")
		if _, err := c.R.ReadString('\n'); err != nil {
			x.Fatal(err)
		}
	}
}
