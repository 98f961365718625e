package conntest

import (
	"bytes"
	"io"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// upper is a session that follows s on its link: it answers in capitals.
func (s *script) upper() *script {
	next := &script{owner: s.owner, called: s.called, home: s.home, line: func(s *script, line string) conn.Next {
		return s.send(strings.ToUpper(line) + "\n")
	}}
	next.init(s.t)
	next.On(s.Link)
	return next
}

// testSwitch: the session that is switched to has the bytes that were not
// consumed, and everything after them.
func testSwitch(x *suite) {
	for _, where := range []string{"data", "user", "pool"} {
		for _, parts := range [][]string{
			{"a\nupgrade\nb\nc\n"},
			{"a\nupgrade\nb\nc", "\n"},
			{"a\nupgrade", "\n", "b\nc\n"},
			strings.Split("a\nupgrade\nb\nc\n", ""),
		} {
			second := make(chan *script, 1)
			s := &script{only: "upgrade", line: func(s *script, _ string) conn.Next {
				return s.at(where, func() conn.Next {
					next := s.upper()
					second <- next
					s.Switch(next)
					return conn.Requeue
				})
			}}
			c := x.open(Options{}, s)
			for _, p := range parts {
				c.Send(p)
			}
			c.Want("a\nB\nC\n")
			c.Send("more\n")
			c.Want("MORE\n")
			next := servertest.Await(x.T, second, "the switch")
			c.command(conn.Drain)
			c.Ended()
			next.isClosed()
			if n, m := s.closes.Load(), s.drains.Load(); n != 0 || m != 0 {
				x.Errorf("the first session was closed %d times, drained %d times", n, m)
			}
			s.closes.Store(1) // for the test's end
			next.ended()
		}
	}
}

// testLayerAtLine: a Layer that is set after some bytes have come opens those that
// were not consumed.
func testLayerAtLine(x *suite) {
	if x.sides != nil {
		return // one is enough
	}
	sealed := func(l *Layer, lines string) string { return string(l.Seal(nil, []byte(lines))) }
	for _, where := range []string{"data", "user", "pool"} {
		for _, cut := range []int{1000, 9, 10, 11, 14} { // within the first record, too
			s := &script{only: "layer", line: func(s *script, line string) conn.Next {
				return s.at(where, func() conn.Next {
					if err := s.Lent().SetLayer(NewLayer()); err != nil {
						x.Errorf("SetLayer: %v", err)
					}
					return conn.Requeue
				})
			}}
			c := x.open(Options{}, s)
			l := NewLayer()
			all := "a\nlayer\n" + sealed(l, "b\nc\n") + sealed(l, "d")
			cut := min(cut, len(all))
			c.Send(all[:cut])
			c.Want("a\n")
			c.Send(all[cut:])
			ahead, _ := c.R.Peek(c.R.Buffered())
			lc := servertest.NewClient(x.T, l.Over(c.Conn, ahead))
			lc.Want("b\nc\n")
			lc.Send("\n")
			lc.Want("d\n")
			lc.Send("e\n")
			lc.Want("e\n")
			lc.Close()
			s.isClosed()
		}
	}
}

// testLayerStalled: a Layer is set when all before has been sent in plain text, or, on a loop, not at all while the
// peer has not accepted that.
func testLayerStalled(x *suite) {
	if x.sides != nil {
		return // one is enough
	}
	for _, where := range []string{"data", "user", "pool"} {
		s := &script{line: func(s *script, _ string) conn.Next {
			return s.at(where, func() conn.Next {
				onLoop := s.OnLoop()
				s.send(string(pattern()))
				answer := "sealed"
				if err := s.Lent().SetLayer(NewLayer()); err != nil {
					if answer = "plain"; !onLoop {
						x.Errorf("%s: %v", where, err)
					}
				}
				s.send(answer)
				return conn.Close
			})
		}}
		l := NewLayer()
		sealed := string(l.Close(l.Seal(nil, []byte("sealed"))))
		if got := x.begin(Options{Small: true}, s).Rest(); got != string(pattern())+"plain" {
			same(x.T, []byte(got), append(bytes.Clone(pattern()), sealed...))
		}
	}
}

// refuses is an answer before the end.
func refuses(s *script, _ string) conn.Next {
	s.send("no\n")
	return conn.Linger
}

// testLinger: an answer before the end reaches a peer that is still sending.
func testLinger(x *suite) {
	s := &script{line: refuses}
	c := x.open(Options{}, s)
	c.Send("go\n" + strings.Repeat("y", 1000))
	sent := make(chan bool)
	go func() {
		defer close(sent)
		p := make([]byte, 64<<10)
		for range 10 {
			if _, err := c.Conn.Write(p); err != nil {
				return // without FIN the end is a close
			}
		}
	}()
	begun := time.Now()
	c.Want("no\n")
	if c.canHalfClose() {
		<-sent
		if b, err := io.ReadAll(c.R); err != nil || len(b) > 0 {
			x.Errorf("after the answer: %q, %v", b, err)
		}
		if len(s.closed) > 0 && time.Since(begun) < conn.LingerFor/2 {
			x.Error("closed before the peer was")
		}
	}
	c.closes()
	<-sent
	// A peer that does not close is not waited for.
	s = &script{line: refuses}
	c = x.begin(Options{}, s)
	c.Want("no\n")
	c.ends()
}

// testLingerBytes: a peer that goes on sending after the end is not read for ever, on a shared
// link less than on others. Sockets hold about 10 MiB more.
func testLingerBytes(x *suite) {
	for shared, most := range map[bool]int{false: 4 * conn.LingerBytes, true: conn.LingerBytes} {
		s := &script{line: func(s *script, line string) conn.Next {
			s.shareIf(shared)
			return refuses(s, line)
		}}
		c := x.begin(Options{}, s)
		c.Want("no\n")
		if !c.canHalfClose() {
			return // without FIN the end is a close
		}
		p, sent := make([]byte, 64<<10), 0
		for sent < most {
			n, err := c.Conn.Write(p)
			if sent += n; err != nil {
				break
			}
		}
		if sent >= most {
			x.Errorf("shared %v: %d bytes were accepted", shared, sent)
		}
		s.isClosed()
		if s.writables.Load() > 0 {
			x.Error("Writable was not to be called")
		}
	}
}

// testReset: Reset drops what is unsent.
func testReset(x *suite) {
	for _, shared := range []bool{false, true} {
		h := &holder{t: x.T}
		s := &script{line: func(s *script, line string) conn.Next {
			if shared {
				s.Share()
				s.Send(&conn.Write{A: pattern(), Holder: h})
			} else {
				h.Release()
			}
			return conn.Reset
		}}
		c := x.begin(Options{Small: true}, s)
		s.isClosed()
		h.gone()
		b, err := io.ReadAll(c.R)
		if len(b) >= large || c.canReset() && x.sides == nil && err == nil {
			x.Errorf("%d bytes, %v", len(b), err)
		}
	}
}
