package filter

import (
	"context"
	"net/http"
	"slices"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/user"
)

// A Call is one request as a filter sees it. One goroutine uses it, until the
// filter returns: neither the Call nor a slice that it has returned may be
// retained or changed.
type Call wire.Exchange

// Wire returns the call as an exchange. On the ordinary path that is a view of the
// request, to which it cannot respond.
func (c *Call) Wire() *wire.Exchange { return (*wire.Exchange)(c) }

// Method returns the request's method.
func (c *Call) Method() string { return c.Wire().Method() }

// Path returns the percent-decoded path.
func (c *Call) Path() []byte { return c.Wire().Path() }

// RawQuery returns the query without the question mark.
func (c *Call) RawQuery() []byte { return c.Wire().RawQuery() }

// Host returns the host that the request is for. It is not among the header
// fields.
func (c *Call) Host() []byte { return c.Wire().Host() }

// Pattern returns the pattern of the route, "" outside of a router.
func (c *Call) Pattern() string { return c.Wire().Pattern() }

// RemoteAddr returns the address of the client, as http.Request's field.
func (c *Call) RemoteAddr() string { return c.Wire().RemoteAddr() }

// BodyLength returns the length of the request's body, in bytes, as
// Content-Length has it; -1 if it is unknown.
func (c *Call) BodyLength() int64 {
	if r := c.request(); r != nil {
		return r.ContentLength
	}
	return c.Wire().BodyLength()
}

// RequestHeader returns the first value of a header field of the request, nil
// if there is none. Names are case-insensitive.
func (c *Call) RequestHeader(name string) []byte { return c.Fields().Get(name) }

// HasHeader reports whether the request has a header field.
func (c *Call) HasHeader(name string) bool { return c.Fields().Get(name) != nil }

// Fields returns all header fields of the request.
func (c *Call) Fields() wire.Fields { return c.Wire().Fields() }

// Value returns what an outer filter has set for key, or what the context of
// the request has; nil if there is nothing.
func (c *Call) Value(key any) any { return c.Wire().Value(key) }

// SetValue sets a value for the handler: direct.Exchange.Value and the context
// of an http.Request return it. key should be of a type of its own, as for
// context.WithValue.
func (c *Call) SetValue(key, value any) { c.Wire().SetValue(key, value) }

// SetHeader sets a header field of any response, unless the handler sets one of
// that name. It panics where direct.Exchange.SetHeader does. Set
// fields before the handler runs: on the ordinary path the response may have been sent
// when Next.Serve returns.
func (c *Call) SetHeader(name, value string) {
	n := wire.NewName(name)
	if w := c.writer(); w != nil {
		w.Header()[n.String()] = []string{value}
		return
	}
	c.Wire().DelKept(n)
	c.Wire().Keep(n, value)
}

// AddHeader is SetHeader, but keeps the fields of that name that are set
// already.
func (c *Call) AddHeader(name, value string) { c.Keep(wire.NewName(name), value) }

// Keep is AddHeader with a name that is checked already.
func (c *Call) Keep(name wire.Name, value string) {
	if !c.keepPlain(name, value) {
		c.Wire().Keep(name, value)
	}
}

func (c *Call) keepPlain(name wire.Name, value string) bool {
	w := c.writer()
	if w == nil {
		return false
	}
	h, n := w.Header(), name.String()
	h[n] = append(slices.Clip(h[n]), value)
	return true
}

// SetRemoteAddr sets the address of the client for inner handlers: addr is an
// IP address and a port, as in http.Request.
func (c *Call) SetRemoteAddr(addr string) {
	c.Wire().SetRemoteAddr(addr)
	if r := c.request(); r != nil {
		r.RemoteAddr = addr
	}
}

// Direct reports whether the call is on the fast path, where a filter must not
// block.
func (c *Call) Direct() bool { return c.writer() == nil }

// Context returns the context of the request, with the values that were set. On the
// fast path, where nothing blocks, it is context.Background.
func (c *Call) Context() context.Context {
	if _, r := c.Plain(); r != nil {
		return r.Context()
	}
	return context.Background()
}

// Plain returns the response writer and the request of the ordinary path, with the
// values that were set; nil and nil on the fast path.
func (c *Call) Plain() (http.ResponseWriter, *http.Request) { return c.Wire().Plain() }

// SetPlain replaces both for inner handlers, on the ordinary path.
func (c *Call) SetPlain(w http.ResponseWriter, r *http.Request) { c.Wire().SetPlain(w, r) }

func (c *Call) writer() http.ResponseWriter {
	w, _ := c.Wire().Viewed()
	return w
}

// request returns the plain request without the values that were set.
func (c *Call) request() *http.Request {
	_, r := c.Wire().Viewed()
	return r
}

// Refuse responds with r, as middleware.Problems may have rewritten it, instead
// of calling the handler.
func (c *Call) Refuse(r *direct.Response) Outcome {
	if w, req := c.Plain(); w != nil {
		refusal.Plain(w, req, r)
	} else {
		refusal.Direct((*direct.Exchange)(c), r)
	}
	return Responded
}

// Respond responds with what serve makes of the request, instead of calling the
// handler. On the ordinary path the exchange does not have the request's body.
func (c *Call) Respond(serve func(x *direct.Exchange)) Outcome {
	if w, r := c.Plain(); w != nil {
		direct.Respond(w, r, serve)
	} else {
		serve((*direct.Exchange)(c))
	}
	return Responded
}

// SetUser notes the name of the authenticated client, for middleware.UserOf and the
// access log. It is a pointer so that nothing is allocated; the name must not change.
func (c *Call) SetUser(name *string) {
	c.SetValue(user.Key{}, name)
	if !c.Direct() {
		note(c.writer(), name)
	}
}

// note passes the name to the access log, which is outside of the request that
// has the value.
func note(w http.ResponseWriter, name *string) {
	for {
		if l, ok := w.(interface{ NoteUser(name *string) }); ok {
			l.NoteUser(name)
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = u.Unwrap()
	}
}

// Values is where filters leave what handlers may want to know: the context of an
// http.Request, a *direct.Exchange or a *Call. Functions that read it are named after
// what they return: middleware.UserOf, middleware.RequestIDOf, jwt.ClaimsOf.
type Values interface{ Value(key any) any }
