//go:build linux || darwin

package conn

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// crowd is a rig whose handlers wait to be let go, one after another.
type crowd struct {
	*rig
	slots   *loop.Semaphore
	entered chan string // gets the line of each handler that runs
	release chan bool
}

func newCrowd(t testing.TB, max, queue int) *crowd {
	s := loop.NewSemaphore(max, queue)
	return &crowd{newRig(t, Limits{}), s, make(chan string, 100), make(chan bool)}
}

// open starts f, whose user code needs a slot.
func (cr *crowd) open(f *fake) *client {
	cr.t.Helper()
	f.slots = cr.slots
	return cr.rig.open(f)
}

func (cr *crowd) start(f *fake, fd int, nc net.Conn) *client {
	cr.t.Helper()
	f.slots = cr.slots
	return cr.rig.start(f, fd, nc)
}

func (cr *crowd) serve(f *fake, line string) Next {
	cr.entered <- line
	<-cr.release
	return last(f, line)
}

// runs waits until the handler of line, and no other, has begun.
func (cr *crowd) runs(line string) {
	cr.t.Helper()
	if got := servertest.Await(cr.t, cr.entered, "the handler of "+line); got != line {
		cr.t.Fatalf("%s runs, want %s", got, line)
	}
}

// waits waits until f waits for a slot.
func (cr *crowd) waits(f *fake) {
	cr.t.Helper()
	cr.inPhase(f, waiting)
}

// queues has a request sent that waits for a slot then.
func (cr *crowd) queues(f *fake, what string) *client {
	cr.t.Helper()
	c := cr.open(f)
	c.Send(what)
	cr.waits(f)
	return c
}

// empty checks that all slots have been given back: so many can be had.
func (cr *crowd) empty(max int) {
	cr.t.Helper()
	servertest.Eventually(cr.t, "the slots are free", func() bool {
		n := 0
		for n < max && cr.slots.Acquire(passer{cr.slots}) == loop.Admitted {
			n++
		}
		for range n {
			cr.slots.Release()
		}
		return n == max
	})
}

// passer is a Waiter that wants no slot.
type passer struct{ slots *loop.Semaphore }

func (p passer) Acquired() { p.slots.Release() }

func TestSlotsQueue(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		t.Run(fmt.Sprintf("quick %v", quick), func(t *testing.T) {
			t.Parallel()
			cr := newCrowd(t, 2, 3)
			one := func() *fake { return &fake{quick: quick, serve: cr.serve} }
			clients := map[string]*client{}
			for _, line := range []string{"0", "1"} {
				clients[line] = cr.open(one())
				clients[line].Send(line + "\n")
				cr.runs(line)
			}
			for _, line := range []string{"2", "3", "4"} {
				clients[line] = cr.queues(one(), line+"\n")
			}
			// There is no room for more; they are refused, and may retry.
			for range 2 {
				f := one()
				c := cr.open(f)
				for range 2 {
					c.Send("5\n")
					c.Want("busy\n")
				}
				c.Close()
				servertest.Await(t, f.closed, "Closed")
				if f.runs.Load() != 0 {
					t.Error("a refused one was served")
				}
			}
			// The others in the order in which they came, one for each that ends.
			for _, line := range []string{"2", "3", "4"} {
				if len(cr.entered) > 0 {
					t.Errorf("%s runs too soon", <-cr.entered)
				}
				cr.release <- true
				cr.runs(line)
			}
			close(cr.release)
			for line, c := range clients {
				c.Want(line + "\n")
			}
			cr.empty(2)
		})
	}
}

// A request after one that was refused needs a slot too.
func TestRefusedPipeline(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		cr := newCrowd(t, 1, 0)
		c := cr.open(&fake{quick: quick, serve: cr.serve})
		c.Send("a\n")
		cr.runs("a")
		f := &fake{quick: quick, serve: last}
		d := cr.open(f)
		d.Send("b\nc\nd\n")
		d.Want("busy\nbusy\nbusy\n")
		if n := f.runs.Load(); n != 0 {
			t.Errorf("quick %v: %d were served without a slot", quick, n)
		}
		close(cr.release)
		c.Want("a\n")
		cr.empty(1) // the slot is released after the answer
		d.Send("e\n")
		d.Want("e\n")
	}
}

// However a handler ends, its slot goes to the next.
func TestSlotIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(f *fake) Next
	}{
		{"answer", func(f *fake) Next { return last(f, "x") }},
		{"nothing", func(f *fake) Next { return More }},
		{"close", func(f *fake) Next { return Close }},
		{"linger", func(f *fake) Next { return Linger }},
		{"reset", func(f *fake) Next { return Reset }},
		{"Goexit", func(f *fake) Next { runtime.Goexit(); return More }},
		{"hijack", func(f *fake) Next {
			nc, _, err := f.Hijack()
			if err != nil {
				f.t.Error(err)
				return Close
			}
			f.t.Cleanup(func() { nc.Close() })
			return Detached
		}},
		{"killed", func(f *fake) Next {
			f.loop.Post(f.handle, Kill)
			servertest.Await(f.t, f.gone, "PeerGone")
			return Close
		}},
		{"drained", func(f *fake) Next {
			f.loop.Post(f.handle, Drain)
			f.onLoop(func() {}) // the mail before has come
			return last(f, "x")
		}},
	} {
		for _, quick := range []bool{true, false} {
			for _, wait := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, quick %v, wait %v", tt.name, quick, wait), func(t *testing.T) {
					t.Parallel()
					cr := newCrowd(t, 1, 1)
					first := &fake{quick: quick, serve: func(f *fake, line string) Next {
						cr.entered <- line
						if wait {
							<-cr.release
						}
						return tt.end(f)
					}}
					c := cr.open(first)
					c.Send("first\n")
					cr.runs("first")
					next := cr.open(&fake{quick: quick, serve: last})
					next.Send("next\n")
					close(cr.release)
					next.Want("next\n")
					c.Close()
					servertest.Await(t, first.closed, "Closed")
					cr.empty(1)
				})
			}
		}
	}
}

// The hijacker has given its slot back before its handler ends.
func TestHijackerKeepsNoSlot(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		cr := newCrowd(t, 1, 1)
		f := &fake{quick: quick}
		f.serve = func(f *fake, line string) Next {
			nc, _, err := f.Hijack()
			if err != nil {
				t.Error(err)
				return Close
			}
			defer nc.Close()
			f.release() // the session's affair
			cr.entered <- line
			<-cr.release
			return Detached
		}
		cr.open(f).Send("x\n")
		cr.runs("x")
		c := cr.open(&fake{quick: quick, serve: last})
		c.Send("next\n")
		c.Want("next\n")
		close(cr.release)
	}
}

// One that is killed while it waits for a slot is not served, and passes the
// slot on; one that is drained is served.
func TestEndWhileQueued(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		for _, mail := range []Command{Kill, Drain} {
			t.Run(fmt.Sprintf("quick %v, mail %d", quick, mail), func(t *testing.T) {
				t.Parallel()
				cr := newCrowd(t, 1, 2)
				a := cr.open(&fake{quick: quick, serve: cr.serve})
				a.Send("a\n")
				cr.runs("a")
				fb := &fake{quick: quick, serve: cr.serve}
				b := cr.queues(fb, "b\n")
				fc := &fake{quick: quick, serve: cr.serve}
				c := cr.queues(fc, "c\n")
				cr.loop.Post(fb.handle, mail)
				cr.on(func() {})
				if mail == Kill {
					b.Ended()
					servertest.Await(t, fb.closed, "Closed")
				}
				cr.release <- true
				a.Want("a\n")
				if mail == Drain {
					cr.runs("b")
					cr.release <- true
					b.Want("b\n")
					b.Ended()
				}
				b.Close()
				servertest.Await(t, fb.closed, "Closed")
				cr.runs("c")
				cr.release <- true
				c.Want("c\n")
				if mail == Kill && fb.runs.Load() != 0 {
					t.Error("served after Kill")
				}
				cr.empty(1)
			})
		}
	}
}

// The peer leaves while its request waits for a slot: by a reset, which ends the
// connection at once, or by closing its side, after which the request is served.
func TestPeerLeavesWhileQueued(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		open   servertest.Pair
		leave  func(*client)
		served bool
	}{
		{"unix, close", pair, func(c *client) { c.Close() }, false},
		{"tcp, reset", tcpPair, func(c *client) { c.Reset() }, false},
		{"unix, FIN", pair, func(c *client) { c.CloseWrite() }, true},
		{"tcp, FIN", tcpPair, func(c *client) { c.CloseWrite() }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cr := newCrowd(t, 1, 1)
			a := cr.open(&fake{serve: cr.serve})
			a.Send("a\n")
			cr.runs("a")
			f := &fake{serve: last}
			fd, nc := tt.open(t)
			c := cr.start(f, fd, nc)
			c.Send("b\n")
			cr.waits(f)
			tt.leave(c)
			if !tt.served {
				servertest.Await(t, f.closed, "Closed")
			}
			close(cr.release)
			a.Want("a\n")
			if tt.served {
				c.Want("b\n")
				c.Ended()
			}
			servertest.Await(t, f.closed, "Closed")
			if n := f.runs.Load(); n != 0 != tt.served {
				t.Errorf("served %d times", n)
			}
			cr.empty(1)
		})
	}
}

// A request that waits for a slot keeps its bytes, and those after it.
func TestWholeWhileQueued(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"b line\n", "b line\nanother\n"} {
		cr := newCrowd(t, 1, 1)
		a := cr.open(&fake{serve: cr.serve})
		a.Send("a\n")
		cr.runs("a")
		f := &fake{quick: true, whole: true, serve: func(f *fake, line string) Next {
			if string(f.raw) != line+"\n" {
				t.Errorf("the bytes of %q are %q", line, f.raw)
			}
			return last(f, line)
		}}
		b := cr.queues(f, in)
		// Others use the loop.
		c := cr.open(&fake{reply: func(string) ([]byte, Next, bool) { return []byte("no\n"), Linger, true }})
		c.Send(strings.Repeat("#", 1000) + "\n")
		c.Want("no\n")
		close(cr.release)
		a.Want("a\n")
		b.Want(in)
	}
}

// A client that sends without end does not keep its slot forever.
func TestSlotIsShared(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		t.Run(fmt.Sprintf("quick %v", quick), func(t *testing.T) {
			t.Parallel()
			cr := newCrowd(t, 1, 2)
			const n = 20 * batch
			var served, before atomic.Int64
			greedy := &fake{quick: quick}
			greedy.serve = func(f *fake, line string) Next {
				if served.Add(1) == 1 {
					cr.entered <- line
					<-cr.release
				}
				return last(f, line)
			}
			c := cr.open(greedy)
			c.Send(strings.Repeat("x\n", n))
			cr.runs("x")
			other := cr.queues(&fake{quick: quick, serve: func(f *fake, line string) Next {
				before.Store(served.Load())
				return last(f, line)
			}}, "other\n")
			close(cr.release)
			other.Want("other\n")
			c.Want(strings.Repeat("x\n", n))
			if k := before.Load(); k > 3*batch {
				t.Errorf("%d requests of one client were served before the other's", k)
			}
			cr.empty(1)
		})
	}
}

// A handler that returns its connection has released its slot: its client's
// next request is not refused on its account.
func TestSlotIsLeftFirst(t *testing.T) {
	t.Parallel()
	// As many as there are slots, which is enough, as each sends one request
	// after another.
	for _, quick := range []bool{true, false} {
		cr := newCrowd(t, 1, 0)
		c := cr.open(&fake{quick: quick, serve: last})
		for i := range 2000 {
			c.SetDeadline(time.Now().Add(servertest.Patience))
			c.Send("x\n")
			if got, err := c.R.ReadString('\n'); got != "x\n" {
				t.Fatalf("quick %v, request %d: got %q, %v", quick, i, got, err)
			}
		}
	}
	// One waits, and the other has the only slot, and gives it back for it.
	for range 50 {
		cr := newCrowd(t, 1, 1)
		const n = 20 * batch
		greedy := &fake{serve: func(f *fake, line string) Next {
			if line == "first" {
				cr.entered <- line
				<-cr.release
			}
			return last(f, line)
		}}
		c := cr.open(greedy)
		c.Send("first\n" + strings.Repeat("x\n", n))
		cr.runs("first")
		other := cr.queues(&fake{serve: last}, "other\n")
		close(cr.release)
		other.Want("other\n")
		c.Want("first\n")
		for i := range n {
			if got, err := c.R.ReadString('\n'); got != "x\n" {
				t.Fatalf("pipelined request %d: got %q, %v", i, got, err)
			}
		}
	}
}

// Many clients, few slots, on several loops: each request is answered or
// refused, never too many run, and no slot is lost.
func TestSlotsStress(t *testing.T) {
	t.Parallel()
	const max, loops, each, lines = 3, 2, 8, 40
	slots := loop.NewSemaphore(max, 6)
	var inside, refused atomic.Int64
	var all sync.WaitGroup
	for range loops {
		r := newRig(t, Limits{})
		for i := range each {
			f := &fake{slots: slots, quickly: func(line string) bool { return len(line)%2 == 0 }}
			f.serve = func(f *fake, line string) Next {
				if n := inside.Add(1); n > max {
					t.Errorf("%d run", n)
				}
				for range len(line) {
					runtime.Gosched()
				}
				inside.Add(-1)
				return last(f, line)
			}
			c := r.open(f)
			all.Go(func() {
				for j := range lines {
					line := fmt.Sprintf("%s%d", strings.Repeat("-", (i+j)%5), j)
					if _, err := c.Write([]byte(line + "\n")); err != nil {
						t.Error(err)
						return
					}
					switch got, err := c.R.ReadString('\n'); got {
					case line + "\n":
					case "busy\n":
						refused.Add(1)
					default:
						t.Errorf("got %q, %v, want %q", got, err, line)
						return
					}
				}
			})
		}
	}
	all.Wait()
	(&crowd{rig: &rig{t: t}, slots: slots}).empty(max)
	if testing.Verbose() {
		t.Logf("%d refused", refused.Load())
	}
}
