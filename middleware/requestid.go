package middleware

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/view"
)

// requestIDField has a request's id, in requests and responses.
const requestIDField = "X-Request-Id"

// RequestIDOptions are the options of RequestID.
type RequestIDOptions struct {
	// Accept uses the id that a request has, if it is 1 to 128 letters, digits
	// and "-._~+/=:@". Set it only on servers behind a proxy that sets the
	// field: elsewhere clients would choose what is logged.
	Accept bool
	// AcceptForwarded does the same for requests that a trusted proxy of an
	// outer RealIP with Note has sent.
	AcceptForwarded bool
	// New returns a new id; nil: 128 random bits in hexadecimal. It may be
	// called concurrently, and must return a valid field value.
	New func() string
}

type requestIDKey struct{}

// A requestID is the id and, if it was made here, its bytes, in one allocation.
type requestID struct {
	id    string
	bytes [32]byte
}

// RequestID gives each request an id: in X-Request-Id of the response, in the
// access log, and for handlers in the request's context, see RequestIDOf. It
// costs one allocation on the fast path, and two for an id that it accepts.
func RequestID(o *RequestIDOptions) func(http.Handler) http.Handler {
	opt := options(o)
	return filter.New(func(c *filter.Call) filter.Outcome {
		trusted, _ := c.Value(forwardedKey{}).(bool)
		id := opt.choose(c.Fields(), opt.Accept || opt.AcceptForwarded && trusted)
		c.SetHeader(requestIDField, id.id)
		c.SetValue(requestIDKey{}, id)
		return filter.Pass
	})
}

// RequestIDOf returns the id that RequestID gave, "" if there is none. v is the
// context of a request, or a *direct.Exchange.
func RequestIDOf(v filter.Values) string {
	if id, ok := v.Value(requestIDKey{}).(*requestID); ok {
		return id.id
	}
	return ""
}

// choose returns the id of the request or makes one. If there are two, one is
// not the proxy's.
func (o *RequestIDOptions) choose(f wire.Fields, accept bool) *requestID {
	if accept {
		if b, n := f.First(requestIDField); n == 1 && safeID(view.String(b)) {
			return &requestID{id: string(b)}
		}
	}
	return o.make()
}

func (o *RequestIDOptions) make() *requestID {
	id := new(requestID)
	if o.New != nil {
		id.id = o.New()
		return id
	}
	var raw [16]byte
	// The runtime's ChaCha8, seeded by the system: an id does not reveal the
	// next.
	binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
	hex.Encode(id.bytes[:], raw[:])
	id.id = view.String(id.bytes[:]) // never changed again
	return id
}

func safeID(s string) bool {
	if len(s) == 0 || len(s) > 128 {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9':
		case c == '-', c == '.', c == '_', c == '~', c == '+', c == '/', c == '=', c == ':', c == '@':
		default:
			return false
		}
	}
	return true
}
