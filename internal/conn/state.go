package conn

import "github.com/chert-http/chert/internal/poll"

// The state word; doc.go says what each bit means.
const (
	owned uint32 = 1 << iota
	readable
	writable
	waitRead
	waitWrite
	peerClosed
	hangup
	draining
	shut
	noTimer
	hijacked
)

// stateOf translates an event into bits.
func stateOf(r poll.Ready) (s uint32) {
	if r&poll.Readable != 0 {
		s |= readable
	}
	if r&poll.Writable != 0 {
		s |= writable
	}
	if r&poll.PeerClosed != 0 {
		s |= peerClosed
	}
	if r&poll.Hangup != 0 {
		s |= hangup
	}
	return s
}

// claim clears a wait bit and reports whether this call did. The one who
// clears it from outside owes the sleeper one send on its channel.
func (c *Conn) claim(wait uint32) bool { return c.state.And(^wait)&wait != 0 }

// wake ends a sleep of the handler, if there is one.
func (c *Conn) wake(wait uint32) {
	if c.state.Load()&wait == 0 || !c.claim(wait) {
		return
	}
	// The sleeper cannot end without this send, so act is still its.
	if wait == waitRead {
		c.act.read.ch <- struct{}{}
	} else {
		c.act.write.ch <- struct{}{}
	}
}
