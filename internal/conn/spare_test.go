//go:build linux || darwin

package conn

import (
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// giveWay asks the loop, as a listener does, and reports whether a place is free.
func (r *rig) giveWay() (ok bool) {
	r.on(func() { ok = r.loop.GiveWay() })
	return ok
}

// A connection that waits for its peer with nothing at hand gives way at once. One
// that has a part of a request has DrainNew to get the rest; then its session's
// Expired is called, and its place is free at once.
func TestGiveWay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, sent, answer string }{
		{"fresh", "", ""},
		{"idle", "a\n", "a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			f := &fake{}
			c := r.open(f)
			c.Send(tt.sent)
			c.Want(tt.answer)
			servertest.Eventually(t, "it gives way", func() bool { return r.giveWay() })
			c.Ended()
			servertest.Await(t, f.closed, "Closed")
			if n := r.shared.Gate.Open(); n != 0 {
				t.Errorf("%d places are taken", n)
			}
		})
	}
	for _, first := range []string{"", "a\n"} {
		r := newRig(t, Limits{})
		f := &fake{}
		c := r.open(f)
		c.Send(first + "b")
		c.Want(first)
		servertest.Eventually(t, "the part has come", func() (ok bool) {
			r.on(func() { ok = f.state.Load()&owned == 0 && f.in != nil })
			return ok
		})
		f.age.Store(int64(DrainNew) - 1e8)
		if r.giveWay() {
			t.Fatal("it gave way before its time")
		}
		f.age.Store(int64(DrainNew))
		servertest.Eventually(t, "it gives way", func() bool { return r.giveWay() })
		c.Want("late\n")
		c.Ended()
		if n := r.shared.Gate.Open(); n != 0 {
			t.Errorf("%d places are taken", n)
		}
	}
}

// One that user code has, or that has something to send, does not give way.
func TestDoesNotGiveWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	entered, leave := make(chan bool, 1), make(chan bool)
	f := &fake{serve: func(f *fake, line string) Next {
		entered <- true
		<-leave
		return echo(f, line)
	}}
	c := r.open(f)
	c.Send("a\n")
	servertest.Await(t, entered, "Serve")
	big := strings.Repeat("x", 16<<20)
	stalled := &fake{reply: func(string) ([]byte, Next, bool) { return []byte(big), More, true }}
	d := r.open(stalled)
	d.Send("a\n")
	servertest.Eventually(t, "it is stalled", func() (ok bool) {
		r.on(func() { ok = stalled.state.Load() == 0 && stalled.Out().Blocked() })
		return ok
	})
	for range 5 {
		if r.giveWay() {
			t.Fatal("one gave way")
		}
	}
	close(leave)
	c.Want("a\n")
	d.Want(big)
}
