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
		case "far":
			s.SetDeadline(later(100_000))
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
		"far", "set", "later", "sooner", "far", "user", "far", "pool", "wait", "none", "set", "none", "later", "pool",
	} {
		c.Send(line + "\n")
		switch line {
		case "none", "far":
			c.Want(line + "\n")
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
	x.expiredEnds()
}

// expiredEnds: Expired may end the connection, but does not come while the peer accepts nothing of what was sent.
func (x *suite) expiredEnds() {
	x.Helper()
	bye := func(s *script) conn.Next {
		if s.Out().Blocked() {
			x.Error("expired while the answer waits")
		}
		s.send("bye\n")
		return conn.Close
	}
	c := x.open(Options{Deadline: int64(moment)}, &script{onExpired: bye})
	c.Want("bye\n")
	c.ends()
	due := make(chan int64, 1)
	c = x.begin(Options{Small: true}, &script{onExpired: bye, line: func(s *script, _ string) conn.Next {
		by := later(1)
		s.SetDeadline(by)
		due <- by
		return s.send(string(pattern()))
	}})
	by := servertest.Await(x.T, due, "the line")
	time.Sleep(time.Duration(by-sys.Nanotime()) + moment) // what must not happen is due after by
	c.gets(pattern())
	c.closes()
}

// testExpiredBeside: the deadline of a shared link passes while runs go on, while the session pauses and after the
// peer's end, and may be set by what is posted. Drain is called in a pause, too.
func testExpiredBeside(x *suite) {
	for _, how := range []string{"data", "post", "done", "pause", "drain", "eof"} {
		release, paused, called := make(chan bool), make(chan bool), make(chan bool, 1)
		end := func() conn.Next { called <- true; return conn.Reset }
		s := &script{
			onExpired: func(*script) conn.Next { return end() },
			onDrain:   func(*script, int64) conn.Next { return end() },
		}
		set := func(next conn.Next) conn.Next { s.SetDeadline(later(1)); return next }
		soon := func() conn.Next { return set(conn.More) }
		s.onEOF = func(*script) conn.Next { return soon() }
		s.line = func(s *script, line string) conn.Next {
			s.Share()
			s.start(func() { <-release }, nil)
			s.SetDeadline(later(100_000))
			switch how {
			case "data":
				return soon()
			case "post":
				s.start(func() { s.post(soon) }, nil)
			case "done":
				s.start(func() {}, soon)
			case "pause":
				s.fill()
				return set(conn.Pause)
			case "drain":
				s.fill()
				close(paused)
				return conn.Pause
			}
			return conn.More
		}
		c := x.begin(Options{Small: true}, s)
		switch {
		case how == "drain":
			servertest.Await(x.T, paused, "the pause")
			c.command(conn.Drain)
		case how == "eof" && !c.canHalfClose():
			close(release)
			return
		case how == "eof":
			c.CloseWrite()
		}
		servertest.Await(x.T, called, "the method, "+how)
		s.isClosed()
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
// be sent; a Write's own bounds that. They need no limit of the link.
func testWriteDeadlines(x *suite, pooled bool) {
	for _, line := range []string{"past", "soon", "watching", "moved", "left", "send", "send a file", "close"} {
		for _, stall := range []int64{hour, -1} {
			x.writeDeadline(pooled, line, stall)
		}
	}
}

func (x *suite) writeDeadline(pooled bool, line string, stall int64) {
	x.Helper()
	h := &holder{t: x.T}
	s := &script{line: inUser(pooled, func(s *script, line string) conn.Next {
		var moved sync.WaitGroup
		soon := func() { s.Lent().SetWriteDeadline(time.Now().Add(moment)) }
		switch line {
		case "past":
			s.Lent().SetWriteDeadline(time.Now().Add(-time.Second))
			timeout(x, line, s.Write([]byte("x"), nil))
			return conn.Reset
		case "watching":
			s.Lent().WatchPeer()
			soon()
		case "soon":
			soon()
		case "moved":
			s.Lent().SetWriteDeadline(time.Now().Add(time.Hour))
			moved.Go(soon)
		default:
			w := &conn.Write{A: pattern(), Deadline: later(1), Holder: h}
			switch line {
			case "left":
				soon()
				w.Deadline = 0
			case "send a file":
				w.A, w.File, w.Len = []byte("x"), patternFile(x.T), large
			}
			if s.Send(w); line == "close" {
				return conn.Close
			}
			return conn.More
		}
		timeout(x, line, s.Write(pattern(), nil))
		moved.Wait()
		return conn.Reset
	})}
	c := x.open(Options{Small: true, Limits: conn.Limits{WriteStall: stall}}, s)
	c.Send(line + "\n")
	switch line {
	case "left", "send", "send a file":
		h.gone()
		c.vanish() // a link that waits in Send goes on after it
	case "close":
		h.gone()
		if n := len(c.rest()); n >= large {
			x.Errorf("%d bytes came", n)
		}
	}
	s.isClosed()
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
				s.shareIf(shared)
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
