package conn

import "github.com/chert-http/chert/internal/poll"

// The state word. While the loop owns the connection and runs no user code it
// is 0, and events are in Conn.ready.
const (
	owned     uint32 = 1 << iota // a goroutine that does not drive the loop is the owner
	readable                     // the socket may have unread bytes, an end or an error
	writable                     // the socket may take bytes again
	ended                        // the peer has sent FIN, or the connection is dead
	waitRead                     // the owner sleeps until readable; the goroutine that clears it ends the sleep
	waitWrite                    // the same for writable
	shut                         // the server is closing: the owner must stop
	hijacked                     // the socket no longer belongs to the server; ignore all
)

// stateOf translates readiness into bits.
func stateOf(r poll.Ready) (s uint32) {
	if r&poll.Readable != 0 {
		s |= readable
	}
	if r&poll.Writable != 0 {
		s |= writable
	}
	if r&(poll.PeerClosed|poll.Hangup) != 0 {
		s |= ended
	}
	return s
}

// readyOf is the inverse.
func readyOf(s uint32) (r poll.Ready) {
	if s&readable != 0 {
		r |= poll.Readable
	}
	if s&writable != 0 {
		r |= poll.Writable
	}
	if s&ended != 0 {
		r |= poll.PeerClosed
	}
	return r
}

// claim clears a wait bit and reports whether this call did. A goroutine other
// than the sleeper that clears it must send once on the sleeper's channel.
func (c *Conn) claim(wait uint32) bool { return c.state.And(^wait)&wait != 0 }

// wake ends a sleep of the owner, if there is one, and reports whether it did.
func (c *Conn) wake(wait uint32) bool {
	if c.state.Load()&wait == 0 || !c.claim(wait) {
		return false
	}
	c.waits.Load().side(wait).ch <- struct{}{}
	return true
}
