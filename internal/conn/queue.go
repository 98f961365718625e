package conn

import (
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/poll"
)

// queue is what a connection has still to send; see doc.go. The owner adds to it and
// sends it; while user code owns the connection, the loop also sends when the socket
// accepts more, since the user code may take long to return.
type queue struct {
	outbox.Box
	layer *layered // immutable; nil for plain text
}

// newQueue gives the connection a queue, for plain text if layer is nil. Only the owner may call it.
func (c *Conn) newQueue(layer *layered) *queue {
	q := &queue{layer: layer}
	q.Init((*carrier)(c))
	c.queue.Store(q)
	return q
}

// theQueue returns the connection's queue, which it makes at first. Only the owner may call it.
func (c *Conn) theQueue() *queue {
	if q := c.queue.Load(); q != nil {
		return q
	}
	return c.newQueue(nil)
}

// flush sends what is corked, on the loop. What has had to wait continues with an event.
func (c *Conn) flush(q *queue) error {
	tried, err := q.Uncork()
	if tried {
		c.unready()
	}
	return err
}

// Out implements Link.
func (c *Conn) Out() *outbox.Box {
	if q := c.queue.Load(); q != nil {
		return &q.Box
	}
	return nil
}

// giveUp returns when the loop gives up on a peer that accepts nothing, of sys.Nanotime;
// poll.Never while it does not wait for one.
func (q *queue) giveUp() int64 {
	if at, _ := q.GiveUp(); at != 0 {
		return at
	}
	return poll.Never
}

// patience sets when to give up on a peer that accepts nothing from now on.
func (c *Conn) patience(q *queue) {
	q.Await(c.loop.Now(), c.shared.Limits.WriteStall, int32(c.loop.Poller().Queued(int(c.fd))))
}

// progress reports, when giveUp has passed, whether the peer has nevertheless accepted
// something. A socket becomes writable when a third of its buffer is free, which may be
// megabytes: a client that has accepted less than that may continue.
func (c *Conn) progress(q *queue) bool {
	at, before := q.GiveUp() // 0 if the owner has sent it all meanwhile
	return (at == 0 || int32(c.loop.Poller().Queued(int(c.fd))) < before) && !q.Overdue(c.loop.Now())
}

// lose records that n bytes that were not queued were lost. Only the owner may call it.
func (c *Conn) lose(n int64) {
	if n != 0 {
		c.theQueue().Lose(n)
	}
}
