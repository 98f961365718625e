//go:build linux || darwin

package conn

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/timer"
)

// The next line comes at any moment around the end of user code, so that the return
// of the connection meets the event in every order. A lost event would hang the client.
func TestReleaseMeetsEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	var clients sync.WaitGroup
	for i := range 8 {
		c := r.open(&fake{serve: func(f *fake, line string) Next {
			v := echo(f, line)
			for range i * 10 {
				runtime.Gosched()
			}
			return v
		}})
		clients.Go(func() {
			for j := range 1000 {
				line := fmt.Sprintf("%d-%d\n", i, j)
				if j%3 == 0 {
					// Half a line, for the handler or the loop to complete.
					c.Send(line[:2])
					runtime.Gosched()
					line = line[2:]
					c.Send(line)
					c.Want(fmt.Sprintf("%d-%d\n", i, j))
					continue
				}
				c.Send(line)
				c.Want(line)
			}
		})
	}
	clients.Wait()
}

// The same with FIN at any moment.
func TestReleaseMeetsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	for i := range 500 {
		f := &fake{}
		c := r.open(f)
		c.Send("x\n")
		if i%2 == 0 {
			c.Want("x\n")
		}
		for range i % 50 {
			runtime.Gosched()
		}
		c.CloseWrite()
		if i%2 == 1 {
			c.Want("x\n")
		}
		c.Ended()
		servertest.Await(t, f.closed, "Closed")
		c.Close()
	}
}

// The timer fires while the handler owns the connection: it is armed again
// when the connection comes back.
func TestExpireWhileOwned(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		r := newRig(t, Limits{})
		f := &fake{quick: quick, idle: moment, first: moment, serve: func(f *fake, line string) Next {
			if line == "a" {
				due, turns := sys.Nanotime()+moment+timer.Tick, 0
				servertest.Eventually(f.t, "the timer has fired", func() bool {
					f.onLoop(func() {
						if f.loop.Now() > due {
							turns++
						}
					})
					return turns > 1 // timers come last in a turn
				})
			}
			return echo(f, line)
		}}
		c := r.openAfter("a\nb\n", f)
		c.Want("a\nb\n")
		if servertest.Await(t, f.expired, "Expired") {
			t.Error("an idle connection expired as a partial one")
		}
		c.Ended()
		servertest.Await(t, f.closed, "Closed")
	}
}

// A partial line after the one that is served needs a shorter time than the
// timer is set for.
func TestPartialAfterRequestExpires(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		for _, first := range []string{"a\nb", "a\n"} {
			r := newRig(t, Limits{})
			entered, leave := make(chan bool, 1), make(chan bool)
			f := &fake{quick: quick, first: hour, partly: moment, idle: hour, serve: func(f *fake, line string) Next {
				entered <- true
				<-leave
				return echo(f, line)
			}}
			c := r.open(f)
			c.Send(first)
			servertest.Await(t, entered, "Serve")
			if len(first) == 2 {
				c.Send("b")
			}
			close(leave)
			c.Want("a\n")
			if !servertest.Await(t, f.expired, "Expired") {
				t.Error("a partial line expired as an idle connection")
			}
			c.Want("late\n")
			c.Close()
			servertest.Await(t, f.closed, "Closed")
		}
	}
}

// The deadline of Open counts from the accept, whatever has arrived since.
func TestFirstTimeCountsFromAccept(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	f := &fake{first: 25 * moment}
	c := r.open(f)
	if servertest.Await(t, f.expired, "Expired") {
		t.Error("partial without a byte")
	}
	c.Ended()
	f = &fake{first: 25 * moment, partly: hour}
	c = r.openAfter("x", f)
	if !servertest.Await(t, f.expired, "Expired") {
		t.Error("not partial")
	}
	c.Want("late\n")
}

// A hijacked connection gives its place up while its user code still runs.
func TestHijack(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		r := newRig(t, Limits{})
		f := &fake{quick: quick}
		f.serve = func(f *fake, line string) Next {
			nc, _, err := f.Hijack()
			if err != nil {
				t.Errorf("Hijack: %v", err)
				return Close
			}
			servertest.Await(t, f.closed, "Closed, while Serve runs")
			if n := r.shared.Gate.Open(); n != 0 {
				t.Errorf("%d places are taken, want none for the hijacker", n)
			}
			nc.Close()
			return Detached
		}
		c := r.open(f)
		c.Send("x\n")
		c.Ended()
	}
}
