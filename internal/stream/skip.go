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
	timer  *time.Timer   // begins it; nil until it is to begin
	done   chan struct{} // closed when it has ended
}

// skipAfter is how long a write may take, to a connection that does not tell whether it
// waits, before reading begins: what its peer sends is none of the server's business while
// the peer accepts the response.
const skipAfter = 10 * time.Millisecond

// beginSkip begins to read after a time, once, if that is wanted: with the next write, on a
// socket when that has to wait, which it seldom has to. Limits.WriteStall ends the write, and with
// it the connection, if the peer sends but does not accept anything.
func (c *Conn) beginSkip(after time.Duration) {
	if !c.skip.wanted || c.skip.timer != nil {
		return
	}
	c.mu.Lock()
	c.setReadDeadline(time.Time{})
	c.mu.Unlock()
	done := make(chan struct{})
	c.skip.done = done
	c.skip.timer = time.AfterFunc(after, func() {
		defer close(done)
		b := buf.Get(readSize)
		defer b.Release()
		for {
			if _, err := c.read(b.Whole()); err != nil {
				return // linger will see why
			}
		}
	})
}

// endSkip waits until nothing is read any more.
func (c *Conn) endSkip() {
	if c.skip.timer == nil {
		return
	}
	if c.skip.timer.Stop() { // it has not begun, and will not
		c.skip = skipper{}
		return
	}
	c.mu.Lock()
	c.setReadDeadline(conn.LongAgo)
	c.mu.Unlock()
	<-c.skip.done
}
