//go:build linux || darwin

package conn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Answers that the socket does not take wait without a handler, and come whole
// and in order.
func TestStalled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why   string
		lines []string
	}{
		{"bytes", []string{"bytes 8000000"}},
		{"a file", []string{"file 8388608"}},
		{"small ones after it", []string{"file 8388608", "a", "b", "c"}},
		{"small ones before", []string{"a", "b", "file 8388608"}},
		{"large ones", []string{"bytes 3000000", "file 3000000", "bytes 3000000", "file 3000000"}},
		{"both", []string{"a", "bytes 3000000", "b", "c", "file 4000000", "d", "bytes 0", "file 0", "file 1", "bytes 1", "e"}},
		{"the end after it", []string{"a", "end 8000000"}},
	} {
		for _, quick := range []bool{true, false} {
			for _, whole := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, quick %v, whole %v", tt.why, quick, whole), func(t *testing.T) {
					t.Parallel()
					r := newRig(t, Limits{})
					s := newStalling(t)
					s.quick, s.whole = quick, whole
					c := r.open(s.fake)
					for range 2 {
						c.Send(strings.Join(tt.lines, "\n") + "\n")
						r.stuck(s.fake)
						r.alive()
						for _, line := range tt.lines {
							wantAnswer(c, line)
						}
						if strings.HasPrefix(tt.lines[len(tt.lines)-1], "end") {
							c.Ended()
							s.released()
							return
						}
					}
					c.CloseWrite()
					c.Ended()
					servertest.Await(t, s.closed, "Closed")
					s.released()
				})
			}
		}
	}
}

// An answer that is held when the socket is full waits with the one after it.
func TestStalledHeld(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"read", "kill", "close"} {
		for _, next := range []string{"bytes 100000", "file 100"} {
			t.Run(end+", "+next, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Limits{})
				s := newStalling(t)
				// Not TCP, which would accept more after "full" and not stall.
				c := r.open(s.fake)
				c.Send("full\nheld\n" + next + "\n" + strings.Repeat(" ", 100))
				servertest.Eventually(t, "the answer waits", func() (ok bool) {
					r.on(func() {
						ok = s.isStuck()
					})
					return ok
				})
				switch end {
				case "read":
					c.Want(string(fullOf(int(s.filled.Load()))))
					c.Want("held\n")
					wantAnswer(c, next)
				case "kill":
					r.tell(s.fake, Kill)
				case "close":
					c.Close()
				}
				if end != "read" {
					servertest.Await(t, s.closed, "Closed")
				}
				s.released()
			})
		}
	}
}

// fullOf is the answer to "full" of n bytes.
func fullOf(n int) []byte {
	return bytes.Repeat(stalledBytes[:64<<10], n/(64<<10)+1)[:n]
}

// A request that has arrived before a drain is served, also if the session is to go on with what it
// has: then an answer was stalled, and its end came while the loop had another driver.
func TestDrainLooksOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	f := &fake{}
	c := r.open(f)
	c.Send("a\n")
	c.Want("a\n")
	r.on(func() {
		c.Send("next\n")
		servertest.Eventually(t, "the request has arrived", func() bool {
			n, _ := r.loop.Poller().Peek(int(f.fd))
			return n > 0
		})
		f.refeed = true
		f.obey(Drain)
	})
	c.Want("next\n")
	c.Ended()
}

// So is one that has arrived while another goroutine was the owner, whatever that returns.
func TestDrainLooksOnceTakenBack(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]Next{"more": More, "requeue": Requeue} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			f := &fake{}
			c := r.open(f)
			c.Send("a\n")
			c.Want("a\n")
			servertest.Eventually(t, "the loop is the owner", func() (ok bool) {
				r.on(func() { ok = f.state.Load()&owned == 0 })
				return ok
			})
			r.on(func() {
				c.Send("next\n")
				servertest.Eventually(t, "the request has arrived", func() bool {
					n, _ := r.loop.Poller().Peek(int(f.fd))
					return n > 0
				})
				f.draining = true // the Drain has found another owner
				f.takeBack(next)
			})
			c.Want("next\n")
			c.Ended()
		})
	}
}

// What the server and the client may do while an answer is stalled.
func TestStalledEnds(t *testing.T) {
	t.Parallel()
	const line = "file 8388608"
	for _, tt := range []struct {
		name string
		do   func(r *rig, s *stalling, c *client)
	}{
		{"kill", func(r *rig, s *stalling, c *client) {
			r.tell(s.fake, Kill)
			r.tell(s.fake, Kill)
		}},
		{"kill before a turn", func(r *rig, s *stalling, c *client) {
			r.on(func() {
				s.ready |= poll.Writable // so to speak: it is to go on in this turn
				r.loop.Requeue(s.handle)
				s.Mail(Kill)
			})
		}},
		{"drain", func(r *rig, s *stalling, c *client) {
			r.tell(s.fake, Drain)
			r.stuck(s.fake)
			wantAnswer(c, line)
			c.Ended()
		}},
		{"drain with a request after it", func(r *rig, s *stalling, c *client) {
			c.Send("next\n")
			servertest.Eventually(r.t, "the request has arrived", func() (ok bool) {
				r.on(func() {
					n, _ := r.loop.Poller().Peek(int(s.fd))
					ok = n > 0
				})
				return ok
			})
			r.tell(s.fake, Drain)
			wantAnswer(c, line)
			c.Want("next\n")
			c.Ended()
		}},
		{"reset", func(r *rig, s *stalling, c *client) {
			c.Reset()
		}},
		{"close over unread bytes", func(r *rig, s *stalling, c *client) { c.Close() }},
		{"half-close", func(r *rig, s *stalling, c *client) {
			c.CloseWrite()
			servertest.Eventually(r.t, "the FIN is seen", func() (ok bool) {
				r.on(func() { ok = s.ready&poll.PeerClosed != 0 })
				return ok
			})
			r.stuck(s.fake)
			wantAnswer(c, line)
			c.Ended()
		}},
		{"half-close with a request before", func(r *rig, s *stalling, c *client) {
			c.Send("next\nnot whole")
			c.CloseWrite()
			wantAnswer(c, line)
			c.Want("next\ncut\n")
			c.Ended()
		}},
		{"half-close, then a reset", func(r *rig, s *stalling, c *client) {
			c.CloseWrite()
			servertest.Eventually(r.t, "the FIN is seen", func() (ok bool) {
				r.on(func() { ok = s.ready&poll.PeerClosed != 0 })
				return ok
			})
			c.Reset()
		}},
		{"Check fails", func(r *rig, s *stalling, c *client) {
			fail := func() error { return errors.New("the file has changed") }
			s.check.Store(&fail)
			io.Copy(io.Discard, c.R)
		}},
		{"Check ends its goroutine", func(r *rig, s *stalling, c *client) {
			end := func() error { runtime.Goexit(); return nil }
			s.check.Store(&end)
			io.Copy(io.Discard, c.R)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			s := newStalling(t)
			fd, nc := tcpPair(t)
			c := r.start(s.fake, fd, nc)
			c.Send(line + "\n")
			r.stuck(s.fake)
			tt.do(r, s, c)
			servertest.Await(t, s.closed, "Closed")
			s.released()
			r.alive()
		})
	}
}

// An answer that goes on may wait for its file, and loses the loop like any
// other.
func TestStalledOverstays(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	for range 3 {
		c.Send("file 8388608\nnext\n")
		r.stuck(s.fake)
		var lost atomic.Int32
		check := func() error {
			for s.state.Load()&owned == 0 { // until it is
				runtime.Gosched()
			}
			lost.Add(1)
			return nil
		}
		s.check.Store(&check)
		wantAnswer(c, "file 8388608")
		c.Want("next\n")
		if lost.Load() == 0 {
			t.Error("Check was not called")
		}
		s.check.Store(nil)
		r.alive()
	}
	s.released()
}

// A client that takes nothing is cut off, one that takes something is not. The
// time itself is the timer's affair: Expire is called in its place.
func TestStalledExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	c.Send("file 8388608\n")
	r.stuck(s.fake)
	expire := func() (is phase) {
		r.on(func() {
			if !s.isStuck() {
				t.Error("the answer goes on")
				return
			}
			_, before := s.queue.Load().GiveUp()
			s.queue.Load().Await(0, 1, before)
			s.Expire()
			is = s.phase
		})
		return is
	}
	c.Want("a file: ")
	rest := stalledBytes
	for range 3 {
		// Less than makes the socket writable.
		var before, now int32
		r.on(func() { _, before = s.queue.Load().GiveUp() })
		for now = before; now >= before; r.on(func() { now = int32(sys.Queued(int(s.fd))) }) {
			c.Want(string(rest[:1000]))
			rest = rest[1000:]
		}
		if is := expire(); is != reading {
			t.Fatalf("a client that drips is cut off: phase %d", is)
		}
	}
	if is := expire(); is != closed {
		t.Errorf("one that has stopped is not: phase %d", is)
	}
	servertest.Await(t, s.closed, "Closed")
}

// The owner may send all that was left when the time is over, just before the loop looks: that is progress.
func TestStalledProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	r.open(s.fake)
	r.on(func() {
		if q := s.newQueue(nil); !s.progress(q) {
			t.Error("a peer that has accepted everything is given up")
		}
	})
}

// A deadline that is over counts when the socket takes more, too.
func TestStalledDeadlineOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	c.Send("file 8388608\n")
	r.stuck(s.fake)
	r.on(func() { s.queue.Load().Limit(sys.Nanotime() - int64(time.Second)) })
	n, _ := io.Copy(io.Discard, c.R)
	if n >= stalledSize {
		t.Errorf("all %d bytes came", n)
	}
	servertest.Await(t, s.closed, "Closed")
}

// A stalled answer has no slot, and needs none to continue; what comes after it
// does.
func TestStalledSlots(t *testing.T) {
	t.Parallel()
	slots := loop.NewSemaphore(1, 10)
	r := newRig(t, Limits{})
	cr := &crowd{r, slots, make(chan string, 10), make(chan bool)}
	var all []*stalling
	var clients []*client
	for range 5 {
		s := newStalling(t)
		s.slots = slots
		all, clients = append(all, s), append(clients, r.open(s.fake))
		clients[len(all)-1].Send("file 8388608\nnext\n")
		r.stuck(s.fake)
	}
	cr.empty(1)
	r.alive()
	blocker := cr.open(&fake{serve: cr.serve})
	blocker.Send("blocker\n")
	cr.runs("blocker")
	for i, s := range all {
		wantAnswer(clients[i], "file 8388608")
		cr.waits(s.fake)
	}
	close(cr.release)
	blocker.Want("blocker\n")
	for _, c := range clients {
		c.Want("next\n")
	}
	cr.empty(1)
	// Those that are killed have none to give back.
	for i, s := range all {
		clients[i].Send("file 8388608\n")
		r.stuck(s.fake)
		r.tell(s.fake, Kill)
		servertest.Await(t, s.closed, "Closed")
	}
	cr.empty(1)
}
