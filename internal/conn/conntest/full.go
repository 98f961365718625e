package conntest

import (
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// testRelease: Release may use the link, whether its bytes have been sent or
// dropped.
func testRelease(x *suite) {
	const some = 500_000 // more than the sockets hold
	for _, kill := range []bool{false, true} {
		file := patternFile(x.T)
		holders := make(chan *holder, 3)
		s := &script{line: func(s *script, line string) (next conn.Next) {
			defer close(holders)
			s.Share()
			for range cap(holders) {
				h := &holder{t: x.T, use: func() {
					s.Out().Blocked()
					s.queue([]byte("released\n"))
				}}
				holders <- h
				if s.Send(&conn.Write{A: pattern()[:some], File: file, Len: some, Holder: h}) != nil {
					return conn.Close // the kill may come first
				}
			}
			return conn.More
		}}
		c := x.begin(Options{Small: true}, s)
		if kill {
			c.slowly(10)
			c.command(conn.Kill)
		} else {
			go c.rest()
		}
		for h := range holders {
			h.gone()
		}
		c.Close()
	}
}

// testTruncated: a peer that ends without the layer's last record still gets what
// was queued for it.
func testTruncated(x *suite) {
	s := &script{line: func(s *script, line string) conn.Next {
		return s.give(&conn.Write{A: pattern()})
	}}
	c := x.open(Options{Small: true}, s)
	half, ok := c.raw.(interface{ CloseWrite() error })
	if x.sides == nil || !ok {
		return // nothing is cut short there
	}
	c.Send("go\n")
	c.gets(pattern()[:10])
	if err := half.CloseWrite(); err != nil {
		x.Fatal(err)
	}
	c.gets(pattern()[10:])
	c.Ended()
}

// testCloseIdle: an idle link ends; one that user code has, or whose answer waits for the peer, continues and may
// end later.
func testCloseIdle(x *suite) {
	for _, where := range []string{"data", "user", "pool"} {
		entered, leave := make(chan bool), make(chan bool)
		s := &script{only: "wait", line: func(s *script, _ string) conn.Next {
			return s.at(where, func() conn.Next {
				entered <- true
				if where != "data" {
					<-leave
				}
				return s.send(string(pattern()))
			})
		}}
		c := x.open(Options{Small: true}, s)
		c.Send("wait\n")
		servertest.Await(x.T, entered, "the line")
		c.command(conn.CloseIdle)
		close(leave)
		c.gets(pattern())
		c.Send("next\n")
		c.Want("next\n")
		if s.drains.Load() > 0 {
			x.Error("Drain was called")
		}
		servertest.Eventually(x.T, "it ends", func() bool {
			c.command(conn.CloseIdle)
			return s.closes.Load() == 1
		})
		c.Ended()
	}
}
