package h2

import (
	"net"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/outbox"
)

// offers is what tunnels and answers that outlive their handlers have in common: bytes are
// offered, by any goroutine. What the client does not accept at once is kept in stream.rest, as
// for answers whose handlers have left more than that. It is guarded by Session.mu.
type offers struct {
	st     *stream
	ending bool // END_STREAM follows what was offered, or has followed it
	owed   bool // Writable is to be called
}

// offer sends a and then b, or keeps them, by the rule of package outbox. to, if not nil, counts what
// was accepted. mu is not held.
func (o *offers) offer(a, b []byte, limit int, to *bridge.Ending) (much bool, err error) {
	s := o.st.s
	s.mu.Lock()
	s.makeRoom()
	if much, err = o.offerLocked(a, b, limit, false); err == nil && to != nil {
		to.Given(len(a) + len(b)) // before the lock is given up, after which the answer may end
	}
	if s.mu.Unlock(); err == nil {
		s.flushBeside()
	}
	return much, err
}

// offerLocked is offer with mu held. end: if nothing is kept, END_STREAM is out with the last of them.
func (o *offers) offerLocked(a, b []byte, limit int, end bool) (much bool, err error) {
	st, s := o.st, o.st.s
	if err := st.sendableLocked(); err != nil {
		return false, err
	}
	if o.ending {
		return false, net.ErrClosed
	}
	if outbox.Refused(st.rest.len(), len(a)+len(b), limit) {
		o.owed = true
		return true, outbox.ErrFull
	}
	if st.rest == nil {
		a, b = s.sendLocked(st, a, b, end)
	}
	if len(a)+len(b) > 0 {
		st.keepRestLocked(a, b)
		s.settleSoonLocked() // for the time that the client has
	}
	much = outbox.Much(st.rest.len(), limit)
	o.owed = o.owed || much
	s.wakeNextLocked()
	return much, nil
}

// endLocked sends END_STREAM after what was offered.
func (o *offers) endLocked() {
	o.ending = true
	o.st.endLocked(nil, false)
}
