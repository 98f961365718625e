//go:build linux || darwin

package conn

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// compute takes as long as a connection may keep its loop.
func compute() {
	for began := sys.Nanotime(); sys.Nanotime()-began <= loop.StepFor; {
	}
}

// between opens a client beside which another has work for n turns, and returns a function
// that has it answered. The answer is how much of the work was done before.
func (r *rig) between(did *atomic.Int32, n int) (send func(), check func()) {
	at := make(chan int32, 1)
	f := &fake{reply: func(line string) ([]byte, Next, bool) {
		at <- did.Load()
		return []byte("ok\n"), More, true
	}}
	c := r.open(f)
	return func() { c.Send("x\n") }, func() {
		r.t.Helper()
		c.Want("ok\n")
		if k := <-at; k >= int32(n) {
			r.t.Errorf("the other was answered after %d of %d", k, n)
		}
	}
}

// What was posted to a connection is done in turns: others are served between.
func TestPostsTakeTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	const posts = 20
	var did atomic.Int32
	send, check := r.between(&did, posts/2)
	began, goOn := make(chan bool), make(chan bool)
	f := &fake{}
	c := r.open(f)
	all := make(chan bool)
	r.on(func() { // so that all come at once
		for range posts {
			f.Post(func() Next {
				if did.Load() == 0 {
					close(began)
					<-goOn
				}
				compute()
				if did.Add(1) == posts {
					close(all)
				}
				return More
			})
		}
	})
	servertest.Await(t, began, "the first of them")
	send()
	close(goOn)
	check()
	servertest.Await(t, all, "the rest")
	c.Close()
}

// A connection that has always more to read leaves others their turns, also if its session
// takes a moment for each piece.
func TestReadsTakeTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	const lines, size = 5, 64 << 10
	var did atomic.Int32
	send, check := r.between(&did, lines-1)
	began, goOn := make(chan bool), make(chan bool)
	c := r.open(&fake{reply: func(line string) ([]byte, Next, bool) {
		if line == "first" {
			close(began)
			<-goOn
			return []byte("first\n"), More, true
		}
		compute()
		did.Add(1)
		return []byte("done\n"), More, true
	}})
	c.Send("first\n")
	servertest.Await(t, began, "the first of them")
	c.Conn.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(1 << 20)
	c.Send(strings.Repeat(strings.Repeat("x", size-1)+"\n", lines))
	send()
	close(goOn)
	check()
	c.Want("first\n" + strings.Repeat("done\n", lines))
}
