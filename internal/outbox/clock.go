package outbox

import (
	"sync"
	"time"
)

// Clock ends a push that waits, and in which the peer accepts nothing for a time. The
// net.Conn's own write deadline is left to the handler, and to other code that has it: Cut
// sets it only when the push has stalled.
//
// The timer is not stopped after a push, only checked when it fires: pushes are frequent
// and stalls rare. If it fires when there is no push, the next one makes another.
type Clock struct {
	After time.Duration // immutable; 0 means never
	Cut   func()        // immutable; ends the push

	mu    sync.Mutex
	until time.Time   // of the push; zero while there is none
	timer *time.Timer // nil before a push, and when it has fired after the last
}

// Progress begins a push, or records that the peer has accepted something.
func (c *Clock) Progress() {
	if c.After <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Now().Add(c.After)
	if c.timer == nil {
		c.timer = time.AfterFunc(c.After, c.fired)
	}
}

// Done records that the push has returned.
func (c *Clock) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

func (c *Clock) fired() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.IsZero() {
		c.timer = nil
		return
	}
	rest := time.Until(c.until)
	if rest <= 0 {
		c.Cut()
		rest = time.Second // again, in case other code moves the deadline before the push has ended
	}
	c.timer.Reset(rest)
}

// End stops the timer for good: nothing is pushed any more.
func (c *Clock) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{} // fired may wait for mu
	if c.timer != nil {
		c.timer.Stop()
	}
}
