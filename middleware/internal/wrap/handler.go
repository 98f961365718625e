package wrap

import (
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// Handler makes a handler for both paths. It is a direct.Handler if next is one;
// serve then receives next as one, and returns the result of ServeDirect.
func Handler(next http.Handler, plain http.HandlerFunc,
	serve func(x *direct.Exchange, next direct.Handler) bool) http.Handler {
	if d, ok := next.(direct.Handler); ok {
		return &both{plain, d, serve}
	}
	return plain
}

type both struct {
	http.HandlerFunc
	next  direct.Handler
	serve func(x *direct.Exchange, next direct.Handler) bool
}

// TakesAhead is what wire.TakesAhead asks.
func (b *both) TakesAhead() bool { return wire.TakesAhead(b.next) }

// ServeDirect implements direct.Handler.
func (b *both) ServeDirect(x *direct.Exchange) bool { return b.serve(x, b.next) }
