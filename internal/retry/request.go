package retry

import "net/http"

// Idempotent reports whether a server that acts twice on a request with method has the effect of one that acts once
// (RFC 9110 section 9.2.2). Methods are case-sensitive; one that is not known is not idempotent, and CONNECT is not.
func Idempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// A Body is what the proxy still has of a request's body. The zero Body is no body.
type Body uint8

const (
	// NoBody: the request has none.
	NoBody Body = iota
	// BodyHeld: everything of it that has been read from the client is in memory. More may follow.
	BodyHeld
	// BodyGone: a part of it has been sent and is no longer in memory.
	BodyGone
)

// A Request is what decides whether a request may be sent twice.
type Request struct {
	// Idempotent is that of the method.
	Idempotent bool
	// Key: it has the field Idempotency-Key (draft-ietf-httpapi-idempotency-key-header), with which the server is
	// expected to recognise a second one.
	Key bool
	// Body is as of the failure: it may be held at first and gone later.
	Body Body
}

// A Policy is what the operator permits. The zero Policy is the default. Immutable while in use.
type Policy struct {
	// Keys: an Idempotency-Key makes any method idempotent.
	Keys bool
	// Timeouts: an idempotent request is sent to another server if the first has sent nothing in time.
	Timeouts bool
	// Statuses: an idempotent request is sent to another server if the first answers 502, 503 or 504.
	Statuses bool
}

// permits reports whether r may reach servers twice.
func (p *Policy) permits(r *Request) bool { return r.Idempotent || r.Key && p.Keys }
