package conntest

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/outbox/outboxtest"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// testOffer: Offer accepts no more than its limit beyond what the sockets hold, except
// when less than half of that waits; what it has not accepted is not sent; a Follower is notified
// when there is room, and Writable is called.
func testOffer(x *suite) {
	const piece, limit = 7000, 200_000
	type result struct{ size, most, waiting int }
	taken := make(chan result, 1)
	s := &script{line: beside(func(s *script) {
		var r result
		for full := false; ; {
			at := rand.IntN(piece)
			p := pattern()[r.size : r.size+piece]
			much, err := s.Out().Offer(p[:at], p[at:], limit)
			waiting, _ := s.Out().Unsent()
			if r.most = max(r.most, int(waiting)); err == conn.ErrFull {
				if !full || !much {
					x.Error("ErrFull came without warning")
				}
				// Only a moment ago, perhaps: try again when nothing has been sent.
				if r.waiting == int(waiting) {
					break
				}
				r.waiting = int(waiting)
				continue
			} else if err != nil {
				x.Errorf("Offer: %v", err)
				break
			}
			full = full || much
			r.size += piece
		}
		taken <- r
		room := make(chan bool, 1)
		s.Out().Follow(conn.FollowerFunc(func() { room <- true }))
		<-room
		if much, err := s.Out().Offer([]byte("all"), pattern()[:large/2], limit); err != nil {
			x.Errorf("Offer of much to an empty queue: %v, %v", much, err)
		}
		if _, err := s.Out().Offer([]byte("end"), nil, -1); err != nil {
			x.Errorf("Offer without a limit: %v", err)
		}
	})}
	c := x.begin(Options{Small: true}, s)
	r := servertest.Await(x.T, taken, "ErrFull")
	if r.most > limit+64<<10 { // a layer adds to it, and pieces in flight count
		x.Errorf("%d bytes waited, the limit is %d", r.most, limit)
	}
	c.gets(pattern()[:r.size])
	c.Want("all")
	c.gets(pattern()[:large/2])
	c.Want("end")
	servertest.Eventually(x.T, "Writable is called", func() bool { return s.writables.Load() > 0 })
}

// testOfferRule: what is accepted and refused is the same on all carriers. The socket is full:
// a little waits.
func testOfferRule(x *suite) {
	outboxtest.Offers(x.T, func() outboxtest.Carrier {
		ready := make(chan bool, 1)
		s := &script{line: func(s *script, line string) conn.Next {
			s.Share()
			ready <- true
			return conn.More
		}}
		x.begin(Options{Small: true}, s)
		servertest.Await(x.T, ready, "the session")
		waiting := func() int {
			n, _ := s.Out().Unsent()
			return int(n)
		}
		for waiting() <= 1 { // 1: a layer has kept what it was given
			if _, err := s.Out().Offer(pattern()[:1<<10], nil, -1); err != nil {
				x.Fatal(err)
			}
		}
		return outboxtest.Carrier{Waiting: waiting, Offer: func(p []byte, limit int) (bool, error) {
			return s.Out().Offer(p[:len(p)/2], p[len(p)/2:], limit)
		}}
	})
}

// testOfferAgain: a Session that offers again in Writable what was refused for a small
// limit is called again when there is room for it, and does not keep its loop busy until
// then.
func testOfferAgain(x *suite) {
	const piece, limit = 7000, 4 << 10
	full := make(chan []byte, 1) // what was accepted
	var calls atomic.Int64
	done := false // the owner's
	s := &script{onWritable: func(s *script) conn.Next {
		calls.Add(1)
		if !done {
			_, err := s.Out().Offer([]byte("again"), nil, limit)
			done = err == nil
		}
		return conn.More
	}, line: beside(func(s *script) {
		var all []byte
		for waiting := int64(0); ; waiting, _ = s.Out().Unsent() {
			p, most := pattern()[:piece], -1
			if waiting >= 200_000 {
				p, most = []byte("again"), limit
			}
			much, err := s.Out().Offer(p, nil, most)
			if err != nil {
				if err != conn.ErrFull || !much || most < 0 {
					x.Errorf("Offer of %d bytes with the limit %d, while %d wait: %v, %v",
						len(p), most, waiting, much, err)
				}
				break
			}
			all = append(all, p...) // a system with large buffers takes what has waited
		}
		full <- all
	})}
	c := x.begin(Options{Small: true}, s)
	all := servertest.Await(x.T, full, "ErrFull")
	c.gets(all)
	c.Want("again")
	if n := calls.Load(); n > 1000 {
		x.Errorf("Writable was called %d times", n)
	}
}
