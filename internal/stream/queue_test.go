package stream

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/tally"
)

// sentAt is a Follower that notes what the peer can have had before it.
type sentAt struct{ got chan int64 }

func (f sentAt) Sent(lost int64) { f.got <- lost }

// Frames of a few bytes for a peer that does not read arrive in order, and what follows some
// of them is notified before those that were queued later are sent.
func TestQueueJoins(t *testing.T) {
	t.Parallel()
	ours, peer := net.Pipe()
	defer peer.Close()
	shard := new(tally.Shard)
	shard.Init(nil)
	c := New(ours, new(conn.Limits), shard, nil)
	c.session = mute{}
	c.Share()
	var want bytes.Buffer
	const half = 10000
	got := make([]byte, 2*2*half)
	follower := sentAt{make(chan int64, 1)}
	for i := range 2 * half {
		p := []byte{byte(i), byte(i >> 8)}
		if i == half {
			c.Out().Follow(follower)
		}
		want.Write(p)
		if _, err := c.Out().Offer(p[:1], p[1:], -1); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // all others are queued while this one is being written
			if _, err := io.ReadFull(peer, got[:1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, _ := c.Out().Unsent(); int(n) != want.Len() {
		t.Errorf("%d of %d bytes wait", n, want.Len())
	}
	if _, err := io.ReadFull(peer, got[1:2*half]); err != nil {
		t.Fatal(err)
	}
	if lost := <-follower.got; lost != 0 {
		t.Errorf("%d bytes are lost", lost)
	}
	if _, err := io.ReadFull(peer, got[2*half:]); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%v, or in another order", err)
	}
}
