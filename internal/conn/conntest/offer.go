package conntest

import (
	"sync/atomic"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/outbox/outboxtest"
	"github.com/chert-http/chert/internal/testing/servertest"
)

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
// then. A Follower is notified when all that it follows has been sent.
func testOfferAgain(x *suite) {
	const piece, limit = 7000, 4 << 10
	full, sent := make(chan []byte, 1), make(chan bool) // what was accepted; closed by the Follower
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
		s.Out().Follow(conn.FollowerFunc(func() { close(sent) }))
		full <- all
	})}
	c := x.begin(Options{Small: true}, s)
	all := servertest.Await(x.T, full, "ErrFull")
	c.gets(all)
	c.Want("again")
	servertest.Await(x.T, sent, "the Follower")
	if n := calls.Load(); n > 1000 {
		x.Errorf("Writable was called %d times", n)
	}
}
