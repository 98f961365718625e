//go:build linux || darwin

package conn

import (
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// second is the session after a Switch.
type second struct {
	*fake
	began chan [2]bool
}

func (s *second) Data(eof bool) Next {
	if s.began != nil {
		s.began <- [2]bool{s.OnLoop(), s.waits.Load() == nil}
		s.began = nil
	}
	return s.fake.Data(eof)
}

// A session that a goroutine off the loop has switched to begins on the loop,
// without what the one before has needed to wait.
func TestSwitchBeginsOnLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	began := make(chan [2]bool, 1)
	f := &fake{}
	f.serve = func(f *fake, line string) Next {
		f.SetReadDeadline(time.Now().Add(time.Hour))
		f.serve = echo
		f.Switch(&second{f, began})
		return Requeue
	}
	c := r.open(f)
	c.Send("a\nb\n") // the second has come before the switch
	got := servertest.Await(t, began, "the second session")
	if got != [2]bool{true, true} {
		t.Errorf("on the loop, and without waits: %v", got)
	}
	c.Want("b\n")
	c.Send("c\n")
	c.Want("c\n")
}
