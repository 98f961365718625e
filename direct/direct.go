package direct

import (
	"net/http"
	"strings"

	"github.com/chert-http/chert/direct/wire"
)

// MaxBody is the largest request body, in bytes, that direct handlers receive.
const MaxBody = wire.MaxBody

// A Handler can serve a request on two paths, with the same result. Servers that
// support the fast path call ServeDirect; all others call ServeHTTP.
type Handler interface {
	http.Handler
	// ServeDirect responds to x and returns true, or leaves x without a
	// response and returns false: then ServeHTTP is called. It must not block,
	// nor retain x or anything that x returned. It is called concurrently.
	ServeDirect(x *Exchange) bool
}

// A HandlerFunc is a Handler made of one function, which responds to every
// request. A request whose body is longer than MaxBody gets 413 without a call
// of the function.
type HandlerFunc func(x *Exchange)

// ServeDirect implements Handler.
func (f HandlerFunc) ServeDirect(x *Exchange) bool { f(x); return true }

// ServeHTTP implements http.Handler.
func (f HandlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) { ServeHTTP(w, r, f) }

// ServeHTTP serves a request of any net/http server with a function made for
// the fast path. A request whose body is longer than MaxBody gets 413 without
// a call of serve. serve must respond: a Handler that it calls by ServeDirect may
// report false, and its ServeHTTP must be called instead.
func ServeHTTP(w http.ResponseWriter, r *http.Request, serve func(x *Exchange)) {
	wire.ServeHTTP(w, r, func(x *wire.Exchange) { serve((*Exchange)(x)) })
}

// Respond is ServeHTTP for functions that do not use the request's body: the
// body is not read.
func Respond(w http.ResponseWriter, r *http.Request, serve func(x *Exchange)) {
	wire.Respond(w, r, func(x *wire.Exchange) { serve((*Exchange)(x)) })
}

// Health answers GET and HEAD with 200 while check returns nil, and with 503
// otherwise; a nil check always succeeds. The error is not sent, since any
// client may ask. check must not block, and must be safe for concurrent use.
func Health(check func() error) Handler {
	plain := http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Cache-Control": {"no-store"}}
	well := NewResponse(http.StatusOK, plain, []byte("ok\n"))
	ill := NewResponse(http.StatusServiceUnavailable, plain, []byte("unavailable\n"))
	plain.Set("Allow", "GET, HEAD")
	other := NewResponse(http.StatusMethodNotAllowed, plain,
		[]byte(strings.ToLower(http.StatusText(http.StatusMethodNotAllowed))+"\n"))
	return HandlerFunc(func(x *Exchange) {
		switch {
		case x.Method() != http.MethodGet && x.Method() != http.MethodHead:
			x.Send(other)
		case check != nil && check() != nil:
			x.Send(ill)
		default:
			x.Send(well)
		}
	})
}
