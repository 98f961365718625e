package stream

import (
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
)

// skipper reads, on a goroutine of its own, what the peer sends and no code will use, while
// a write waits for the peer. Used by the owner.
type skipper struct {
	wanted bool          // Write.DiscardInput was set
	stop   chan struct{} // closed when it is not to begin any more
	done   chan struct{} // closed when the goroutine has ended; nil until it begins
}

// skipAfter is how long a write may take, to a connection that does not tell whether it
// waits, before reading begins: what its peer sends is none of the server's business while
// the peer accepts the response.
const skipAfter = 10 * time.Millisecond

// beginSkip begins to read after a time, once, if that is wanted: with the next write, on a
// socket when that has to wait, which it seldom has to. Limits.WriteStall ends the write, and with
// it the connection, if the peer sends but does not accept anything.
func (c *Conn) beginSkip(after time.Duration) {
	if !c.skip.wanted || c.skip.done != nil {
		return
	}
	stop, done := make(chan struct{}), make(chan struct{})
	c.skip.stop, c.skip.done = stop, done
	c.mu.Lock()
	c.setReadDeadline(time.Time{})
	c.mu.Unlock()
	go func() {
		defer close(done)
		if after > 0 {
			t := time.NewTimer(after)
			defer t.Stop()
			select {
			case <-t.C:
			case <-stop:
				return
			}
		}
		b := buf.Get(readSize)
		defer b.Release()
		for {
			if _, err := c.read(b.Whole()); err != nil {
				return // linger will see why
			}
		}
	}()
}

// endSkip waits until nothing is read any more.
func (c *Conn) endSkip() {
	if c.skip.done == nil {
		return
	}
	if c.skip.stop != nil {
		close(c.skip.stop)
		c.skip.stop = nil
	}
	c.mu.Lock()
	c.setReadDeadline(conn.LongAgo)
	c.mu.Unlock()
	<-c.skip.done
}
