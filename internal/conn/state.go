package conn

import "github.com/chert-http/chert/internal/poll"

// The state word. While the loop owns the connection and runs no user code it
// is 0, and events are in Conn.ready, whose bits the first three are.
const (
	readable = uint32(poll.Readable)   // the socket may have unread bytes, an end or an error
	writable = uint32(poll.Writable)   // the socket may take bytes again
	ended    = uint32(poll.PeerClosed) // the peer has sent FIN, or the connection is dead
	events   = readable | writable | ended
)

const (
	owned     uint32 = 1 << (8 + iota) // a goroutine that does not drive the loop is the owner
	waitRead                           // the owner sleeps until readable; the goroutine that clears it ends the sleep
	waitWrite                          // the same for writable
	shut                               // the server is closing: the owner must stop
	hijacked                           // the socket no longer belongs to the server; ignore all
)

// stateOf translates readiness into bits.
func stateOf(r poll.Ready) uint32 {
	if r&poll.Hangup != 0 {
		r |= poll.PeerClosed
	}
	return uint32(r) & events
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
