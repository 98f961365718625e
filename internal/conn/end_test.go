//go:build linux || darwin

package conn

import (
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

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
