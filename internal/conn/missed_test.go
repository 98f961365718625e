//go:build linux || darwin

package conn

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// An event that finds the queue locked, by a goroutine that has met the full
// socket before it, is acted on when the queue is unlocked: the owner may sleep
// for long.
func TestMissedEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	f := &fake{serve: func(f *fake, line string) Next {
		f.Share()
		f.Fill()
		return Close
	}}
	c := r.open(f)
	c.Send("line\n")
	f.sleeps(waitRead)
	queued := 0
	for {
		full, err := f.Queue(stalledBytes[queued : queued+8000])
		if err != nil {
			t.Fatal(err)
		}
		if queued += 8000; full {
			break
		}
	}
	q := f.queue.Load()
	q.mu.Lock()
	inQueue := q.held
	c.Want(string(stalledBytes[:queued-inQueue])) // the socket has room now
	servertest.Eventually(t, "the event has come", q.missed.Load)
	q.unlock()
	c.Want(string(stalledBytes[queued-inQueue : queued]))
	c.Send("x")
}

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
		_, err := f.Queue([]byte("more"))
		if errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
		return err == nil
	})
	close(leave)
	c.Want("more")
	c.Ended()
}
