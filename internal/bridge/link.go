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
	Tail

	// What follows is for a session, from Share on.
	Share()
	Buffered() []byte
	Discard(n int)
	Offer(a, b []byte, limit int) (full bool, err error)
	Do(u conn.UserCode) (ran, waited bool)
	OnLoop() bool
	Post(f func() conn.Next)
	SetDeadline(ns int64)
	Now() int64
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
	return (*whole)(x.c)
}

// tail returns what has still to be sent of x.
func (x *Exchange) tail() Tail {
	if x.Shared {
		return x.m.(Sharer).Link()
	}
	return x.c.Link.Out()
}

// whole is the Link of an exchange that has its connection to itself.
type whole Client

func (w *whole) SetReadDeadline(t time.Time)            { w.Link.Lent().SetReadDeadline(t) }
func (w *whole) SetWriteDeadline(t time.Time)           { w.Link.Lent().SetWriteDeadline(t) }
func (w *whole) WatchPeer() (gone bool)                 { return w.Link.Lent().WatchPeer() }
func (w *whole) Unsent() (waiting, lost int64)          { return w.Link.Out().Unsent() }
func (w *whole) Follow(f conn.Follower)                 { w.Link.Out().Follow(f) }
func (w *whole) Share()                                 { w.Link.Share() }
func (w *whole) Buffered() []byte                       { return w.Link.Buffered() }
func (w *whole) Discard(n int)                          { w.Link.Discard(n) }
func (w *whole) Offer(a, b []byte, m int) (bool, error) { return w.Link.Out().Offer(a, b, m) }
func (w *whole) Do(u conn.UserCode) (ran, waited bool)  { return w.Link.Do(u) }
func (w *whole) OnLoop() bool                           { return w.Link.OnLoop() }
func (w *whole) Post(f func() conn.Next)                { w.Link.Post(f) }
func (w *whole) SetDeadline(ns int64)                   { w.Link.SetDeadline(ns) }
func (w *whole) Now() int64                             { return w.Link.Now() }
