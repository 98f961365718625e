package direct

import (
	"net/http"
	"strings"

	"github.com/chert-http/chert/direct/wire"
)

// MaxBody is the largest request body, in bytes, that a direct handler is
// given.
const MaxBody = wire.MaxBody

// A Handler can answer in two ways, with the same result. Servers that know
// the direct way call ServeDirect; all others call ServeHTTP.
type Handler interface {
	http.Handler
	// ServeDirect answers x and returns true, or leaves x without an answer and
	// returns false: then ServeHTTP is called. It must not wait, nor keep x or
	// anything that x returned. It is called concurrently.
	ServeDirect(x *Exchange) bool
}

// A HandlerFunc is a Handler that answers all requests in one way. A request
// whose body is longer than MaxBody is answered 413 without it.
type HandlerFunc func(x *Exchange)

// ServeDirect implements Handler.
func (f HandlerFunc) ServeDirect(x *Exchange) bool { f(x); return true }

// ServeHTTP implements http.Handler.
func (f HandlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) { ServeHTTP(w, r, f) }

// ServeHTTP answers a request of any net/http server with a function made for
// the direct way. A request whose body is longer than MaxBody is answered 413
// without it.
func ServeHTTP(w http.ResponseWriter, r *http.Request, serve func(x *Exchange)) {
	wire.ServeHTTP(w, r, func(x *wire.Exchange) { serve((*Exchange)(x)) })
}

// Respond is ServeHTTP for functions that do not use the body: it is left unread.
func Respond(w http.ResponseWriter, r *http.Request, serve func(x *Exchange)) {
	wire.Respond(w, r, func(x *wire.Exchange) { serve((*Exchange)(x)) })
}

// Health answers GET and HEAD with 200 while check, which may be nil, returns
// nil, and with 503 otherwise. The error is not sent: anyone may ask. check must not
// wait, and must be safe for concurrent use.
func Health(check func() error) Handler {
	plain := http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Cache-Control": {"no-store"}}
	well := NewResponse(http.StatusOK, plain, []byte("ok\n"))
	ill := NewResponse(http.StatusServiceUnavailable, plain, []byte("unavailable\n"))
	plain.Set("Allow", "GET, HEAD")
	other := NewResponse(http.StatusMethodNotAllowed, plain, []byte(strings.ToLower(http.StatusText(http.StatusMethodNotAllowed))+"\n"))
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
