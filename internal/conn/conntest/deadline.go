package conntest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// later is a time of sys.Nanotime.
func later(moments int) int64 { return sys.Nanotime() + int64(moments)*int64(moment) }

// testExpired: Expired is called once for a deadline, at its time or after it, which is that of Now, unless
// another is set before.
func testExpired(x *suite) {
	by := int64(0) // the owner's
	late := func(s *script) conn.Next {
		if now := s.Now(); now < by || now > sys.Nanotime() {
			x.Errorf("expired %v too early, or Now is wrong", time.Duration(by-now))
		}
		s.send("late\n")
		return conn.More
	}
	s := &script{onExpired: late, line: func(s *script, line string) conn.Next {
		switch line {
		case "set":
			by = later(1)
			s.SetDeadline(by)
		case "later": // than the one that is set
			s.SetDeadline(later(1))
			by = later(3)
			s.SetDeadline(by)
		case "sooner":
			by = later(1)
			s.SetDeadline(later(1000))
			s.SetDeadline(by)
		case "wait": // it passes while the session waits
			by = later(1)
			s.SetDeadline(by)
			go func() {
				time.Sleep(2 * moment)
				s.release()
			}()
			return waits(nil)(s, line)
		case "none", "close":
			s.SetDeadline(later(1))
			s.SetDeadline(0)
			by = later(1000)
		case "user", "pool":
			// It passes while user code has the link.
			by = later(1)
			s.SetDeadline(by)
			return s.either(line == "pool", func() conn.Next {
				for sys.Nanotime() < by+int64(moment) {
					time.Sleep(moment / 4)
				}
				s.Write([]byte("done\n"), nil)
				return conn.More
			})
		}
		if line == "close" {
			return conn.Close
		}
		return s.send(line + "\n")
	}}
	by = later(1)
	c := x.open(Options{Deadline: int64(moment)}, s)
	c.Want("late\n") // before the first line
	for _, line := range []string{
		"set", "later", "sooner", "user", "pool", "wait", "none", "set", "none", "later", "pool",
	} {
		c.Send(line + "\n")
		switch line {
		case "none":
			c.Want("none\n")
			continue
		case "sooner":
			c.Send("a partial ") // is no reason not to
			c.Want("sooner\nlate\n")
			c.Send("line\n")
			c.Want("a partial line\n")
		case "user", "pool":
			c.Want("done\nlate\n")
		default:
			c.Want(line + "\nlate\n")
		}
	}
	c.Send("close\n")
	c.ends()
	if n := s.expired.Load(); n != 10 {
		x.Errorf("expired %d times", n)
	}
	// And it may end the connection.
	s = &script{onExpired: func(s *script) conn.Next {
		s.send("bye\n")
		return conn.Close
	}}
	c = x.open(Options{Deadline: int64(moment)}, s)
	c.Want("bye\n")
	c.ends()
}

// testExpiredBeside: the deadline of a shared link passes while runs go on, and
// may be set by what is posted.
func testExpiredBeside(x *suite) {
	for _, how := range []string{"data", "post", "done"} {
		release := make(chan bool)
		s := new(script)
		s.onExpired = func(s *script) conn.Next {
			s.send("late\n")
			return conn.Close
		}
		s.line = func(s *script, line string) conn.Next {
			s.Share()
			s.start(func() { <-release }, nil)
			s.SetDeadline(later(100_000))
			soon := func() conn.Next { s.SetDeadline(later(1)); return conn.More }
			switch how {
			case "data":
				return soon()
			case "post":
				s.start(func() { s.post(soon) }, nil)
			case "done":
				s.start(func() {}, soon)
			}
			return conn.More
		}
		c := x.begin(Options{}, s)
		c.Want("late\n")
		c.ends()
		close(release)
	}
}

// timeout checks that err is one.
func timeout(x *suite, what string, err error) {
	x.Helper()
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() {
		x.Errorf("%s: %v is no timeout", what, err)
	}
}

// testReadDeadlines: those of user code bound its reads and no others; nor do those of its writes.
func testReadDeadlines(x *suite, pooled bool) {
	s := &script{line: inUser(pooled, func(s *script, line string) conn.Next {
		var moved sync.WaitGroup
		past := func() { s.Lent().SetReadDeadline(time.Now().Add(-time.Second)) }
		switch line {
		case "past":
			past()
			timeout(x, line, s.Lent().Fill())
			_, err := s.Lent().Read(make([]byte, 1))
			timeout(x, line, err)
		case "soon":
			s.Lent().SetReadDeadline(time.Now().Add(moment))
			timeout(x, line, s.Lent().Fill())
		case "moved":
			s.Lent().SetReadDeadline(time.Now().Add(time.Hour))
			moved.Go(past)
			timeout(x, line, s.Lent().Fill())
			moved.Wait()
		case "taken back":
			past()
			timeout(x, line, s.Lent().Fill())
			s.Lent().SetReadDeadline(time.Time{})
			fallthrough
		case "none":
			// The last one's deadline has ended with it.
			s.Write([]byte("reading\n"), nil)
			if err := s.Lent().Fill(); err != nil {
				x.Errorf("%s: %v", line, err)
			}
		}
		s.Write([]byte(line+"\n"), nil)
		s.Lent().SetWriteDeadline(time.Now().Add(-time.Second)) // which ends with it
		return conn.More
	})}
	c := x.open(Options{}, s)
	for _, line := range []string{"past", "none", "soon", "none", "moved", "none", "taken back", "past", "past"} {
		c.Send(line + "\n")
		if line == "none" || line == "taken back" {
			c.Want("reading\n")
			c.Send("more\n")
			c.Want(line + "\nmore\n")
		} else {
			c.Want(line + "\n")
		}
	}
}

// testWriteDeadlines: those of user code bound its writes, and what it has left to
// be sent; a Write's own bounds that.
func testWriteDeadlines(x *suite, pooled bool) {
	for _, line := range []string{"past", "soon", "watching", "moved", "left", "send", "close"} {
		h := &holder{t: x.T}
		s := &script{line: inUser(pooled, func(s *script, line string) conn.Next {
			var moved sync.WaitGroup
			soon := func() { s.Lent().SetWriteDeadline(time.Now().Add(moment)) }
			switch line {
			case "past":
				s.Lent().SetWriteDeadline(time.Now().Add(-time.Second))
				timeout(x, line, s.Write([]byte("x"), nil))
			case "watching":
				s.Lent().WatchPeer()
				fallthrough
			case "soon":
				soon()
				timeout(x, line, s.Write(pattern(), nil))
			case "moved":
				s.Lent().SetWriteDeadline(time.Now().Add(time.Hour))
				moved.Go(soon)
				timeout(x, line, s.Write(pattern(), nil))
				moved.Wait()
			case "left":
				soon()
				s.Send(&conn.Write{A: pattern(), Holder: h})
				return conn.More
			case "send", "close":
				s.Send(&conn.Write{A: pattern(), Deadline: later(1), Holder: h})
				if line == "close" {
					return conn.Close
				}
				return conn.More
			}
			return conn.Reset
		})}
		c := x.open(Options{Small: true}, s)
		c.Send(line + "\n")
		if line == "left" || line == "send" || line == "close" {
			h.gone()
		}
		if line == "left" || line == "send" {
			// A link that waits in Send goes on after it.
			c.vanish()
		}
		s.isClosed()
	}
}

// testStalls: Limits bound every wait for a silent peer, however it was begun.
func testStalls(x *suite) {
	try := func(name string, h *holder, line server) {
		stall := int64(moment)
		s := &script{line: line}
		x.begin(Options{Small: true, Limits: conn.Limits{ReadStall: stall, WriteStall: stall}}, s)
		servertest.Await(x.T, s.closed, "Closed, after "+name)
		if h != nil {
			h.gone()
		}
	}
	for _, pooled := range []bool{false, true} {
		user := func(name string, f func(s *script) error, then conn.Next) {
			try(fmt.Sprintf("%s, pooled: %v", name, pooled), nil, inUser(pooled, func(s *script, _ string) conn.Next {
				timeout(x, name, f(s))
				return then
			}))
		}
		user("fill", func(s *script) error {
			timeout(x, "the first fill", s.Lent().Fill())
			return s.Lent().Fill()
		}, conn.Close)
		user("read", func(s *script) error { _, err := s.Lent().Read(make([]byte, 10)); return err }, conn.Close)
		user("write", func(s *script) error { return s.Write(pattern(), nil) }, conn.Reset)
		user("write and close", func(s *script) error { return s.Write(pattern(), nil) }, conn.Close)
		x.stallsAndGoesOn(pooled)
	}
	for _, then := range []conn.Next{conn.More, conn.Close, conn.Linger} {
		for _, shared := range []bool{false, true} {
			h := &holder{t: x.T}
			try(fmt.Sprintf("send, %d, shared: %v", then, shared), h, func(s *script, _ string) conn.Next {
				if shared {
					s.Share()
				}
				if s.Send(&conn.Write{A: pattern(), Holder: h}) != nil && then == conn.More {
					return conn.Reset // a link that waits in Send
				}
				return then
			})
		}
		try(fmt.Sprintf("queue, %d", then), nil, func(s *script, _ string) conn.Next {
			s.Share()
			s.start(func() { s.queue(pattern()) }, func() conn.Next { return then })
			return conn.More
		})
	}
}

// stallsAndGoesOn: a peer that was silent for too long within a line is still answered, and sends others.
func (x *suite) stallsAndGoesOn(pooled bool) {
	x.Helper()
	s := &script{line: inUser(pooled, func(s *script, line string) conn.Next {
		timeout(x, line, s.Lent().Fill())
		return unless(s.Write([]byte(line+"\n"), nil))
	})}
	c := x.open(Options{Limits: conn.Limits{ReadStall: int64(moment)}}, s)
	for _, line := range []string{"a\n", "b\n"} {
		c.Send(line)
		c.Want(line)
	}
	c.closes()
}
