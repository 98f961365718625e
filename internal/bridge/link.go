package bridge

import (
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/takeover"
)

// A Stream is one of many on a connection, as its Exchange has it, and from Share on the session
// that takes it over.
type Stream interface {
	link.Link
	Tail
	peerSide
	// Share and Do are those of conn.Link.
	Share()
	Do(u conn.UserCode) (ran, waited bool)
}

// A Tail is what has still to be sent of a connection, as an *outbox.Box, or of one stream.
type Tail interface {
	Unsent() (waiting, lost int64)
	Follow(f conn.Follower)
	Offer(a, b []byte, limit int) (much bool, err error)
}

// A Sharer is a Message on a connection that has others too. Its Exchange is Shared.
type Sharer interface {
	Message
	takeover.Budgeted
	Stream() Stream
	// Last leaves the rest of the response to a Source, which begin returns and which goes on
	// after the handler has returned. It is called once.
	Last(begin func(takeover.Stream) takeover.Source) *Ending
}

// stream returns that of x, which is Shared.
func (x *Exchange) stream() Stream { return x.m.(Sharer).Stream() }

// tail returns what has still to be sent of x.
func (x *Exchange) tail() Tail {
	if x.Shared {
		return x.stream()
	}
	return x.c.Link.Out()
}

// A peerSide is what an Exchange has of its peer while a handler runs: of a Stream, or of a connection as conn.Lent.
type peerSide interface {
	SetReadDeadline(t time.Time)
	SetWriteDeadline(t time.Time)
	WatchPeer() (gone bool)
}

// peer returns that of x.
func (x *Exchange) peer() peerSide {
	if x.Shared {
		return x.stream()
	}
	return x.c.Link.Lent()
}
