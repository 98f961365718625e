//go:build linux || darwin

package conn

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// phaseCase brings a connection into one of its phases.
type phaseCase struct {
	name string
	f    func() *fake
	// enter brings f there by what its client does.
	enter func(r *rig, f *fake, c *client)
}

// held is a Serve that waits in the given way and reports how that ended.
func held(entered chan bool, wait func(f *fake) error, ended chan error) func(*fake, string) Next {
	return func(f *fake, line string) Next {
		entered <- true
		err := wait(f)
		ended <- err
		if err != nil {
			return Close
		}
		return echo(f, line)
	}
}

func TestKillWhileLoopOwns(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 8<<20)
	for _, tt := range []phaseCase{
		{"fresh", func() *fake { return &fake{} }, func(r *rig, f *fake, c *client) {}},
		{"idle", func() *fake { return &fake{} }, func(r *rig, f *fake, c *client) {
			c.Send("a\n")
			c.Want("a\n")
		}},
		{"partial", func() *fake { return &fake{} }, func(r *rig, f *fake, c *client) {
			c.Send("a\nb")
			c.Want("a\n")
		}},
		{"ending", func() *fake {
			return &fake{reply: func(string) ([]byte, Next, bool) { return []byte(big), Linger, true }}
		}, func(r *rig, f *fake, c *client) {
			c.Send("a\n")
			r.inPhase(f, ending)
		}},
		{"lingering", func() *fake {
			return &fake{reply: func(string) ([]byte, Next, bool) { return []byte("no\n"), Linger, true }}
		}, func(r *rig, f *fake, c *client) {
			c.Send("a\n")
			r.inPhase(f, lingering)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			f := tt.f()
			c := r.open(f)
			tt.enter(r, f, c)
			r.tell(f, Kill)
			servertest.Await(t, f.closed, "Closed")
			// Twice does not matter, nor does mail to a place that is free.
			r.tell(f, Kill)
			r.tell(f, Drain)
		})
	}
}

func TestKillWhileHandlerOwns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		wait func(f *fake) error
		bit  uint32
	}{
		{"computing", func(f *fake) error {
			servertest.Await(f.t, f.gone, "PeerGone")
			return f.Write([]byte("x"), nil)
		}, 0},
		{"reading", func(f *fake) error { return f.Fill() }, waitRead},
		{"writing", func(f *fake) error { return f.Write(make([]byte, 64<<20), nil) }, waitWrite},
	} {
		for _, quick := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, quick %v", tt.name, quick), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Limits{})
				entered, ended := make(chan bool, 1), make(chan error, 1)
				f := &fake{quick: quick, serve: held(entered, tt.wait, ended)}
				c := r.open(f)
				c.Send("a\n")
				servertest.Await(t, entered, "Serve")
				if tt.bit != 0 {
					f.sleeps(tt.bit)
				}
				select {
				case <-f.closed:
					t.Error("closed under its handler")
				default:
				}
				r.tell(f, Kill)
				if err := servertest.Await(t, ended, "the handler's end"); !errors.Is(err, net.ErrClosed) {
					t.Errorf("the handler saw %v", err)
				}
				servertest.Await(t, f.closed, "Closed")
			})
		}
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 4<<20)
	r := newRig(t, Limits{})

	// Fresh: it may still send its first request.
	f := &fake{}
	c := r.open(f)
	r.tell(f, Drain)
	c.Send("a\n")
	c.Want("a\n")
	c.Ended()
	servertest.Await(t, f.closed, "Closed")

	// Idle.
	f = &fake{}
	c = r.open(f)
	c.Send("a\n")
	c.Want("a\n")
	r.tell(f, Drain)
	c.Ended()

	// A partial request may be completed.
	f = &fake{}
	c = r.open(f)
	c.Send("a\nb")
	c.Want("a\n")
	r.tell(f, Drain)
	r.on(func() {})
	c.Send("c\n")
	c.Want("bc\n")
	c.Ended()

	// The handler finishes. (Whether it serves what is pipelined is its own
	// affair: the fake does.)
	entered, leave := make(chan bool, 1), make(chan bool)
	f = &fake{serve: func(f *fake, line string) Next {
		entered <- true
		<-leave
		return echo(f, line)
	}}
	c = r.open(f)
	c.Send("a\n")
	servertest.Await(t, entered, "Serve")
	r.tell(f, Drain)
	r.on(func() {})
	close(leave)
	c.Want("a\n")
	c.Ended()

	// A reply under way is finished.
	f = &fake{reply: func(string) ([]byte, Next, bool) { return []byte(big), Linger, true }}
	c = r.open(f)
	c.Send("a\n")
	r.inPhase(f, ending)
	r.tell(f, Drain)
	r.on(func() {})
	c.Want(big)
	c.Ended()
}

// A connection that is fresh when the server drains does not stay forever.
func TestDrainFreshIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	f := &fake{}
	c := r.open(f)
	r.tell(f, Drain)
	servertest.Eventually(t, "the session has been asked", func() bool { return f.drains.Load() > 0 })
	r.on(func() {
		if left := time.Duration(f.deadline - r.loop.Now()); left > DrainNew {
			t.Errorf("a fresh connection has %v left", left)
		}
	})
	c.Close()
	servertest.Await(t, f.closed, "Closed")
}

// Drain and Kill come at any moment around the end of user code.
func TestEndMeetsRelease(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	for i := range 1000 {
		f := &fake{}
		c := r.open(f)
		c.Send("a\n")
		if i%4 < 2 {
			c.Want("a\n")
		}
		mail := Drain
		if i%2 == 0 {
			mail = Kill
		}
		r.tell(f, mail)
		servertest.Await(t, f.closed, "Closed")
		if mail == Drain && i%4 >= 2 {
			c.Want("a\n")
			c.Ended()
		}
		c.Close()
	}
}
