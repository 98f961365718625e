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
	// SetReadDeadline, SetWriteDeadline and WatchPeer are those of conn.Lent.
	SetReadDeadline(t time.Time)
	SetWriteDeadline(t time.Time)
	WatchPeer() (gone bool)
	// Share, Do and Offer are those of conn.Link and its Out.
	Share()
	Do(u conn.UserCode) (ran, waited bool)
	Offer(a, b []byte, limit int) (full bool, err error)
}

// A Tail is what has still to be sent of a connection, as an *outbox.Box, or of one stream.
type Tail interface {
	Unsent() (waiting, lost int64)
	Follow(f conn.Follower)
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

func (x *Exchange) setReadDeadline(t time.Time) {
	if x.Shared {
		x.stream().SetReadDeadline(t)
	} else {
		x.c.Link.Lent().SetReadDeadline(t)
	}
}

func (x *Exchange) setWriteDeadline(t time.Time) {
	if x.Shared {
		x.stream().SetWriteDeadline(t)
	} else {
		x.c.Link.Lent().SetWriteDeadline(t)
	}
}

// peerGone watches for the peer's disconnection, and reports whether it is there.
func (x *Exchange) peerGone() bool {
	if x.Shared {
		return x.stream().WatchPeer()
	}
	return x.c.Link.Lent().WatchPeer()
}
