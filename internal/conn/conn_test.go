//go:build linux || darwin

package conn

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
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
