package bridge

import (
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/takeover"
)

// A Link is what an Exchange, and the session that takes it over, have of a connection: all of
// it, or one stream of many. The methods are those of conn.Link.
type Link interface {
	SetReadDeadline(t time.Time)
	SetWriteDeadline(t time.Time)
	WatchPeer() (gone bool)
	Waited() bool
	Abandon()
	Unsent() (waiting, lost int64)
	Follow(f conn.Follower)

	// What follows is for a session, from Share on.
	Share()
	Buffered() []byte
	Discard(n int)
	Offer(a, b []byte, limit int) (full bool, err error)
	Enter() bool
	Leave()
	OnLoop() bool
	Post(f func() conn.Next)
	SetDeadline(ns int64)
	Now() int64
}

// A Sharer is a Message on a connection that has others too. Its Exchange is Shared.
type Sharer interface {
	Message
	takeover.Budgeted
	// Link returns the stream as a Link.
	Link() Link
	// Last leaves the rest of the response to a Source, which begin returns and which goes on
	// after the handler has returned. It is called once.
	Last(begin func(takeover.Stream) takeover.Source) *Ending
}

// link returns what x has of its connection.
func (x *Exchange) link() Link {
	if x.Shared {
		return x.m.(Sharer).Link()
	}
	return x.c.Link
}
