//go:build linux || darwin

package conn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Data of a Duplex is called although the peer accepts nothing of what was sent; of other sessions it waits
// until the peer has.
func TestDuplex(t *testing.T) {
	t.Parallel()
	all := strings.Repeat("x", 1<<20) // more than the sockets hold
	for _, duplex := range []bool{true, false} {
		t.Run(fmt.Sprint(duplex), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			called := make(chan string, 2)
			f := &fake{duplex: duplex, reply: func(line string) ([]byte, Next, bool) {
				called <- line
				if line == "all" {
					return []byte(all), More, true
				}
				return []byte("next\n"), More, true
			}}
			c := r.open(f)
			c.Send("all\n")
			servertest.Await(t, called, "the first call")
			servertest.Eventually(t, "the peer accepts no more", func() (ok bool) {
				r.on(func() { ok = f.Out().Blocked() })
				return ok
			})
			c.Send("next\n")
			if duplex {
				if line := servertest.Await(t, called, "a call that does not wait"); line != "next" {
					t.Errorf("Data got %q", line)
				}
			} else {
				servertest.Eventually(t, "it has arrived", func() (ok bool) {
					r.on(func() { ok = f.ready&poll.Readable != 0 })
					return ok
				})
				if len(called) > 0 {
					t.Error("Data was called")
				}
			}
			c.Want(all + "next\n")
		})
	}
}

// What has come while a session was not to be called is read when another session's Act says so.
func TestActReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	f := &fake{reply: func(line string) ([]byte, Next, bool) {
		if line == "await" {
			return []byte("await\n"), Await, true
		}
		return []byte("next\n"), More, true
	}}
	c := r.open(f)
	c.Send("await\n")
	c.Want("await\n")
	r.inPhase(f, awaiting)
	c.Send("next\n")
	servertest.Eventually(t, "it has arrived", func() (ok bool) {
		r.on(func() { ok = f.ready&poll.Readable != 0 })
		return ok
	})
	r.on(func() { f.Act(More) })
	c.Want("next\n")
}

// A session that awaits Resume is called as well when the peer has accepted what was queued: forwarded exchanges
// continue their responses then.
func TestAwaitAfterQueue(t *testing.T) {
	t.Parallel()
	all := strings.Repeat("x", 1<<20) // more than the sockets hold
	r := newRig(t, Limits{})
	f := &fake{reply: func(line string) ([]byte, Next, bool) {
		if line == "await" {
			return []byte(all), Await, true
		}
		return []byte("next\n"), Await, true
	}}
	c := r.open(f)
	c.Send("await\nnext\n")
	c.Want(all + "next\n")
	r.inPhase(f, awaiting)
}

// A reset ends a connection that reads no more until Resume.
func TestAwaitReset(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	f := &fake{reply: func(string) ([]byte, Next, bool) { return []byte("await\n"), Await, true }}
	fd, nc := tcpPair(t)
	c := r.start(f, fd, nc)
	c.Send("await\n")
	c.Want("await\n")
	r.inPhase(f, awaiting)
	c.Reset()
	servertest.Await(t, f.closed, "Closed")
}
