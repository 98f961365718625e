//go:build linux || darwin

package conn

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A Hijack that fails leaves the queue usable.
func TestHijackFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	failed, leave := make(chan error, 1), make(chan bool)
	f := &fake{serve: func(f *fake, line string) Next {
		f.Share()
		if err := f.Send(&Write{A: stalledBytes}); err != nil {
			return Close
		}
		f.SetWriteDeadline(time.Unix(1, 0))
		_, _, err := f.Hijack()
		f.SetWriteDeadline(time.Time{})
		failed <- err
		<-leave
		return Close
	}}
	c := r.open(f)
	c.Send("line\n")
	if err := servertest.Await(t, failed, "Hijack"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("Hijack: %v", err)
	}
	c.Want(string(stalledBytes))
	servertest.Eventually(t, "the queue takes more", func() bool {
		_, err := f.Out().Offer([]byte("more"), nil, outbox.QueueLimit)
		if errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
		return err == nil
	})
	close(leave)
	c.Want("more")
	c.Ended()
}
