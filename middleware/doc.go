// Package middleware provides HTTP middleware: access logs, recovery, request ids,
// client addresses behind proxies, bearer tokens, CORS, security headers,
// compression, entity tags, and limits.
//
//	log := middleware.NewAccessLog(nil)
//	defer log.Close()
//	h := middleware.Chain(mux,
//		log.Wrap, middleware.Recover(nil), middleware.RequestID(nil), middleware.BodyLimit(nil))
//
// All of it works on any net/http server and in any router that accepts
// net/http's handlers. Around a [direct.Handler] it makes a direct.Handler, so
// a chain keeps the fast path on chert. Package filter lets you write
// middleware that does too.
//
// # Order
//
// The first is the outermost. What a middleware does holds for all inside of it,
// and the answers of one that refuses are seen by those outside only. So: RealIP
// (the others want the client's address), AccessLog, Refusals, Recover, RequestID,
// SecurityHeaders, CORS (preflights carry no credentials), ratelimit, InFlight,
// Timeout, credentials, BodyLimit, Compress, ETag.
//
// The response writers that handlers receive pass on Flush, Hijack, ReadFrom,
// sendfile and, by Unwrap, all of http.ResponseController. A goroutine that
// writes after its handler has returned gets an error and cannot damage another
// response.
package middleware

// The package must not depend on servers, connections or loops; internal/deps
// has the list of what it may import. JWT and basic authentication need other
// modules and are packages of their own below it.
