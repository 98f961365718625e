package websocket

import (
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/wsframe"
)

// This file bounds the unfinished messages of WebSockets that share a connection of
// HTTP/2: a client has hundreds of streams for the price of one connection, each of which
// may have all but the last byte of a message.
//
// What is beyond the bound ends its WebSocket. Its stream could wait instead, until others
// have completed their messages. But those may wait for the same reason, or for ever, and
// what waits fills the connection's window, on which all other streams depend.

const (
	// besideMessages is how many messages of MaxMessage bytes the streams of a
	// connection may have that are not complete.
	besideMessages = 4
	// besideFree is how much of each message does not count, in bytes, so that large
	// messages of some users of a proxy do not end the WebSockets of all of them.
	besideFree = 16 << 10
)

var errUnfinished = &wsframe.Error{Code: wsframe.CodeTryLater,
	Reason: "unfinished messages of the connection are too large"}

// beside is what a stream takes part in. It is used by the Link's owner.
type beside struct {
	budget  *takeover.Budget // the connection's; immutable
	size    int64            // of the message so far
	charged int64            // of budget
}

// keep counts n more bytes of a message, and reports false if that is too much.
func (b *beside) keep(n int, maxMessage int64) (ok bool) {
	b.size += int64(n)
	more := max(b.size-besideFree, 0) - b.charged
	if more > 0 && !b.budget.Take(more, besideMessages*maxMessage) {
		return false
	}
	b.charged += more
	return true
}

func (b *beside) end() {
	b.budget.Give(b.charged)
	b.size, b.charged = 0, 0
}
