package refusal

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// A Problem is the content of a refusal, as RFC 9457 defines it.
type Problem struct {
	Type   string `json:"type,omitempty"` // "": about:blank
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Violated are the names of the limits that a request exceeded
	// (draft-ietf-httpapi-ratelimit-headers-10 section 6).
	Violated []string `json:"violated-policies,omitempty"`
}

// JSON returns p as application/problem+json.
func (p *Problem) JSON() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and a number can be encoded
	}
	return append(b, '\n')
}

// NotFound is the response of http.NotFound, for paths that nothing can have.
var NotFound = direct.NewResponse(http.StatusNotFound, http.Header{
	"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"},
}, []byte("404 page not found\n"))

// A Hook makes the responses of middleware inside of it that refuses requests.
type Hook struct {
	key     string // of derived Responses
	respond func(p *Problem, h http.Header) []byte
}

var hooks atomic.Int64 // distinguishes what each has derived

// NewHook makes a Hook. respond returns the body, and may change h, its own copy,
// except for the fields that frame messages: those belong to the server and are
// dropped. It must be safe for concurrent use.
func NewHook(respond func(p *Problem, h http.Header) []byte) *Hook {
	return &Hook{"refusal " + strconv.FormatInt(hooks.Add(1), 10), func(p *Problem, h http.Header) []byte {
		unframe(h) // the length is that of the other body
		body := respond(p, h)
		unframe(h)
		return body
	}}
}

// unframe removes from h what package direct panics on: a hook is called while a
// client is refused, which must not be able to trigger a mistake in it.
func unframe(h http.Header) {
	for name := range h {
		switch http.CanonicalHeaderKey(name) {
		case "Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade":
			delete(h, name)
		}
	}
}

// Body calls the hook for a response to a single request.
func (k *Hook) Body(p *Problem, h http.Header) []byte { return k.respond(p, h) }

// Of returns what the hook makes of refused, made once.
func (k *Hook) Of(refused *direct.Response) *direct.Response {
	return (*direct.Response)(refused.Wire().Derive(k.key, func(r *wire.Response) *wire.Response {
		h := r.Header()
		body := k.respond(&Problem{Title: http.StatusText(r.Status()), Status: r.Status()}, h)
		return wire.NewResponse(r.Status(), h, body)
	}))
}

// Around returns the hook around w, nil if there is none.
func Around(w http.ResponseWriter) *Hook {
	for {
		if h, ok := w.(interface{ RefusalHook() *Hook }); ok {
			return h.RefusalHook()
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = u.Unwrap()
	}
}

type hookKey struct{}

// Set makes k the hook of x, and returns the previous one.
func Set(x *direct.Exchange, k *Hook) (before *Hook) {
	before = In(x)
	x.Wire().SetValue(hookKey{}, k)
	return before
}

// In returns the hook of x, nil if there is none.
func In(x *direct.Exchange) *Hook {
	k, _ := x.Value(hookKey{}).(*Hook)
	return k
}

// Plain responds to r with refused, or what the hook around w makes of it.
func Plain(w http.ResponseWriter, r *http.Request, refused *direct.Response) {
	if k := Around(w); k != nil {
		refused = k.Of(refused)
	}
	refused.ServeHTTP(w, r)
}

// Direct is Plain for an exchange.
func Direct(x *direct.Exchange, refused *direct.Response) { x.Send(For(x, refused)) }

// For returns what Direct sends.
func For(x *direct.Exchange, refused *direct.Response) *direct.Response {
	if k := In(x); k != nil {
		return k.Of(refused)
	}
	return refused
}
