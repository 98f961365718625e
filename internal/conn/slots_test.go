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

	"github.com/chert-http/chert/internal/loop"
)

// crowd is a rig whose handlers wait to be let go, one after another.
type crowd struct {
	*rig
	slots   *Slots
	entered chan string // gets the line of each handler that runs
	release chan bool
}

func newCrowd(t testing.TB, max, queue int) *crowd {
	s := loop.NewSlots(max, queue)
	return &crowd{newRig(t, Limits{Slots: s}), s, make(chan string, 100), make(chan bool)}
}

func (cr *crowd) serve(f *fake, line string) Verdict {
	cr.entered <- line
	<-cr.release
	return last(f, line)
}

// runs waits until the handler of line, and no other, has begun.
func (cr *crowd) runs(line string) {
	cr.t.Helper()
	if got := await(cr.t, cr.entered, "the handler of "+line); got != line {
		cr.t.Fatalf("%s runs, want %s", got, line)
	}
}

// queues has a request sent that waits for a slot then.
func (cr *crowd) queues(f *fake, what string) *client {
	cr.t.Helper()
	c := cr.open(f)
	c.send(what)
	eventually(cr.t, "the request is queued", func() bool { return f.state.Load()&owned != 0 })
	cr.on(func() {})
	return c
}

// empty checks that all slots have been given back: so many can be had.
func (cr *crowd) empty(max int) {
	cr.t.Helper()
	eventually(cr.t, "the slots are free", func() bool {
		n := 0
		for n < max && cr.slots.Enter(passer{cr.slots}) == Entered {
			n++
		}
		for range n {
			cr.slots.Leave()
		}
		return n == max
	})
}

// passer is a Waiter who wants no slot.
type passer struct{ slots *Slots }

func (p passer) Admitted() { p.slots.Leave() }

func TestSlotsQueue(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		t.Run(fmt.Sprintf("quick %v", quick), func(t *testing.T) {
			t.Parallel()
			cr := newCrowd(t, 2, 3)
			one := func() *fake { return &fake{quick: quick, serve: cr.serve} }
			clients := map[string]*client{}
			for _, line := range []string{"0", "1"} {
				clients[line] = cr.queues(one(), line+"\n")
				cr.runs(line)
			}
			for _, line := range []string{"2", "3", "4"} {
				clients[line] = cr.queues(one(), line+"\n")
			}
			// There is no room for more; they are told, and may come again.
			for range 2 {
				f := one()
				c := cr.open(f)
				for range 2 {
					c.send("5\n")
					c.want("busy\n")
				}
				c.Close()
				await(t, f.closed, "Closed")
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
				c.want(line + "\n")
			}
			cr.empty(2)
		})
	}
}

// A request behind one that was refused needs a slot too.
func TestRefusedPipeline(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		cr := newCrowd(t, 1, 0)
		c := cr.open(&fake{quick: quick, serve: cr.serve})
		c.send("a\n")
		cr.runs("a")
		f := &fake{quick: quick, serve: last}
		d := cr.open(f)
		d.send("b\nc\nd\n")
		d.want("busy\nbusy\nbusy\n")
		if n := f.runs.Load(); n != 0 {
			t.Errorf("quick %v: %d were served without a slot", quick, n)
		}
		close(cr.release)
		c.want("a\n")
		cr.empty(1) // the slot is given back behind the answer
		d.send("e\n")
		d.want("e\n")
	}
}

// However a handler ends, its slot goes to the next.
func TestSlotIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(f *fake) Verdict
	}{
		{"answer", func(f *fake) Verdict { return last(f, "x") }},
		{"nothing", func(f *fake) Verdict { return More }},
		{"close", func(f *fake) Verdict { return Close }},
		{"linger", func(f *fake) Verdict { return Linger }},
		{"reset", func(f *fake) Verdict { return Reset }},
		{"Goexit", func(f *fake) Verdict { runtime.Goexit(); return More }},
		{"hijack", func(f *fake) Verdict {
			f.leave()
			nc, _, err := f.Hijack()
			f.owner.Store(1)
			if err != nil {
				f.t.Error(err)
				return Close
			}
			f.t.Cleanup(func() { nc.Close() })
			return Detached
		}},
		{"killed", func(f *fake) Verdict {
			f.loop.Post(f.place, Kill)
			await(f.t, f.gone, "PeerGone")
			return Close
		}},
		{"drained", func(f *fake) Verdict {
			f.loop.Post(f.place, Drain)
			eventually(f.t, "the mail has come", func() bool { return f.state.Load()&draining != 0 })
			return last(f, "x")
		}},
	} {
		for _, quick := range []bool{true, false} {
			for _, wait := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, quick %v, wait %v", tt.name, quick, wait), func(t *testing.T) {
					t.Parallel()
					cr := newCrowd(t, 1, 1)
					first := &fake{quick: quick, serve: func(f *fake, line string) Verdict {
						cr.entered <- line
						if wait {
							<-cr.release
						}
						return tt.end(f)
					}}
					c := cr.open(first)
					c.send("first\n")
					cr.runs("first")
					next := cr.open(&fake{quick: quick, serve: last})
					next.send("next\n")
					close(cr.release)
					next.want("next\n")
					c.Close()
					await(t, first.closed, "Closed")
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
		f.serve = func(f *fake, line string) Verdict {
			f.leave()
			defer f.owner.Store(1)
			nc, _, err := f.Hijack()
			if err != nil {
				t.Error(err)
				return Close
			}
			defer nc.Close()
			cr.entered <- line
			<-cr.release
			return Detached
		}
		cr.open(f).send("x\n")
		cr.runs("x")
		c := cr.open(&fake{quick: quick, serve: last})
		c.send("next\n")
		c.want("next\n")
		close(cr.release)
	}
}

// One that is killed while it waits for a slot is not served, and passes the
// slot on; one that is drained is served.
func TestEndWhileQueued(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		for _, mail := range []int{Kill, Drain} {
			t.Run(fmt.Sprintf("quick %v, mail %d", quick, mail), func(t *testing.T) {
				t.Parallel()
				cr := newCrowd(t, 1, 2)
				a := cr.open(&fake{quick: quick, serve: cr.serve})
				a.send("a\n")
				cr.runs("a")
				fb := &fake{quick: quick, serve: cr.serve}
				b := cr.queues(fb, "b\n")
				fc := &fake{quick: quick, serve: cr.serve}
				c := cr.queues(fc, "c\n")
				cr.loop.Post(fb.place, mail)
				cr.on(func() {})
				if mail == Kill {
					if !await(t, fb.gone, "PeerGone") {
						t.Error("it was not told that the connection is dead")
					}
					b.ended()
				}
				cr.release <- true
				a.want("a\n")
				if mail == Drain {
					cr.runs("b")
					cr.release <- true
					b.want("b\n")
					b.ended()
				}
				b.Close()
				await(t, fb.closed, "Closed")
				cr.runs("c")
				cr.release <- true
				c.want("c\n")
				if mail == Kill && fb.runs.Load() != 0 {
					t.Error("served after Kill")
				}
				cr.empty(1)
			})
		}
	}
}

// The peer leaves while its request waits for a slot.
func TestPeerLeavesWhileQueued(t *testing.T) {
	t.Parallel()
	for _, open := range []func(testing.TB) (int, net.Conn){pair, tcpPair} {
		cr := newCrowd(t, 1, 1)
		a := cr.open(&fake{serve: cr.serve})
		a.send("a\n")
		cr.runs("a")
		f := &fake{serve: last}
		fd, nc := open(t)
		c := cr.start(f, fd, nc)
		c.send("b\n")
		eventually(t, "the request is queued", func() bool { return f.state.Load()&owned != 0 })
		c.Close()
		await(t, f.gone, "PeerGone")
		close(cr.release)
		a.want("a\n")
		await(t, f.closed, "Closed")
		cr.empty(1)
	}
}

// A request that waits for a slot keeps its bytes, and what is behind it.
func TestWholeWhileQueued(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"b line\n", "b line\nanother\n"} {
		cr := newCrowd(t, 1, 1)
		a := cr.open(&fake{serve: cr.serve})
		a.send("a\n")
		cr.runs("a")
		f := &fake{quick: true, whole: true, serve: func(f *fake, line string) Verdict {
			if string(f.raw) != line+"\n" {
				t.Errorf("the bytes of %q are %q", line, f.raw)
			}
			return last(f, line)
		}}
		b := cr.queues(f, in)
		// Others use the loop.
		c := cr.open(&fake{reply: func(string) (Verdict, []byte) { return Linger, []byte("no\n") }})
		c.send(strings.Repeat("#", 1000) + "\n")
		c.want("no\n")
		close(cr.release)
		a.want("a\n")
		b.want(in)
	}
}

// A client that sends without end does not keep its slot for ever.
func TestSlotIsShared(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		t.Run(fmt.Sprintf("quick %v", quick), func(t *testing.T) {
			t.Parallel()
			cr := newCrowd(t, 1, 2)
			const n = 20 * batch
			var served, before atomic.Int64
			greedy := &fake{quick: quick}
			greedy.serve = func(f *fake, line string) Verdict {
				if served.Add(1) == 1 {
					cr.entered <- line
					<-cr.release
				}
				return last(f, line)
			}
			c := cr.open(greedy)
			c.send(strings.Repeat("x\n", n))
			cr.runs("x")
			other := cr.queues(&fake{quick: quick, serve: func(f *fake, line string) Verdict {
				before.Store(served.Load())
				return last(f, line)
			}}, "other\n")
			close(cr.release)
			other.want("other\n")
			c.want(strings.Repeat("x\n", n))
			if k := before.Load(); k > 3*batch {
				t.Errorf("%d requests of one client were served before the other's", k)
			}
			cr.empty(1)
		})
	}
}

// Who gives its connection back has given its slot back: its client's next
// request is not refused on its account.
func TestSlotIsLeftFirst(t *testing.T) {
	t.Parallel()
	// As many as there are slots, which is enough, as each sends one request
	// after another.
	for _, quick := range []bool{true, false} {
		cr := newCrowd(t, 1, 0)
		c := cr.open(&fake{quick: quick, serve: last})
		for i := range 2000 {
			c.send("x\n")
			if got, err := c.r.ReadString('\n'); got != "x\n" {
				t.Fatalf("quick %v, request %d: got %q, %v", quick, i, got, err)
			}
		}
	}
	// One waits, and the other has the only slot, and gives it back for it.
	for range 50 {
		cr := newCrowd(t, 1, 1)
		const n = 20 * batch
		greedy := &fake{serve: func(f *fake, line string) Verdict {
			if line == "first" {
				cr.entered <- line
				<-cr.release
			}
			return last(f, line)
		}}
		c := cr.open(greedy)
		c.send("first\n" + strings.Repeat("x\n", n))
		cr.runs("first")
		other := cr.queues(&fake{serve: last}, "other\n")
		close(cr.release)
		other.want("other\n")
		c.want("first\n")
		for i := range n {
			if got, err := c.r.ReadString('\n'); got != "x\n" {
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
	slots := loop.NewSlots(max, 6)
	var inside, refused atomic.Int64
	var all sync.WaitGroup
	for range loops {
		r := newRig(t, Limits{Slots: slots})
		for i := range each {
			f := &fake{quickly: func(line string) bool { return len(line)%2 == 0 }}
			f.serve = func(f *fake, line string) Verdict {
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
					switch got, err := c.r.ReadString('\n'); got {
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
