package conntest

import (
	"sync/atomic"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// testRelease: Release may use the link, whether its bytes have been sent or
// dropped.
func testRelease(x *suite) {
	const some = 500_000 // more than the sockets hold
	for _, kill := range []bool{false, true} {
		file := patternFile(x.T)
		var queued atomic.Int32
		s := new(script)
		sent := make(chan int32, 1)
		s.line = func(s *script, line string) (next conn.Next) {
			s.Share()
			n := int32(0)
			for next == conn.More && n < 3 {
				use := func() {
					s.Out().Blocked()
					s.queue([]byte("released\n"))
					queued.Add(1)
				}
				n++
				w := &conn.Write{A: pattern()[:some], File: file, Len: some, Holder: &holder{t: x.T, use: use}}
				if s.Send(w) != nil {
					next = conn.Close // the kill may come first
				}
			}
			sent <- n
			return next
		}
		c := x.begin(Options{Small: true}, s)
		if kill {
			c.slowly(10)
			c.command(conn.Kill)
		} else {
			go c.rest()
		}
		n := servertest.Await(x.T, sent, "the last Send")
		servertest.Eventually(x.T, "all are released", func() bool { return queued.Load() == n })
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

// testCloseIdle: an idle link ends, one that user code has continues and may
// end later.
func testCloseIdle(x *suite, pooled bool) {
	entered, leave := make(chan bool), make(chan bool)
	s := &script{only: "wait", line: inUser(pooled, func(s *script, _ string) conn.Next {
		entered <- true
		<-leave
		return s.send("waited\n")
	})}
	c := x.open(Options{}, s)
	c.Send("wait\n")
	servertest.Await(x.T, entered, "the user code")
	c.command(conn.CloseIdle)
	leave <- true
	c.Want("waited\n")
	c.Send("next\n")
	c.Want("next\n")
	servertest.Eventually(x.T, "it ends", func() bool {
		c.command(conn.CloseIdle)
		return s.closes.Load() == 1
	})
	c.Ended()
}
