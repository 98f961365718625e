// Package middleware has what stands around handlers: one func(http.Handler)
// http.Handler in each file.
//
//	log := middleware.NewAccessLog(nil)
//	defer log.Close()
//	h := middleware.Chain(mux,
//		log.Wrap, middleware.Recover(nil), middleware.RequestID(nil), middleware.BodyLimit(1<<20))
//
// All of it works on any net/http server and inside of any router that takes
// net/http's handlers; for gin there is an adapter in examples/middleware. Around
// a [direct.Handler] it makes a direct.Handler, so a chain of it stays direct on
// chert; what each does is the same on both ways. Options are structs whose zero
// value, or a nil pointer, is the safe default. What New functions and
// constructors cannot make sense of, they panic about: that is the program's
// mistake, found when it starts.
//
// # Order
//
// The first is the outermost. What a middleware does holds for all inside of it,
// and the answers of one that refuses are seen by those outside only. So: RealIP
// (the others want the client's address), AccessLog, Refusals, Recover, RequestID,
// SecurityHeaders, CORS (preflights carry no credentials), RateLimit, InFlight,
// Timeout, credentials, BodyLimit, Compress, ETag.
//
// # Response writers
//
// The writers that handlers get pass on Flush, Hijack, ReadFrom, Unwrap for
// http.ResponseController, and direct.FileSender. They are made anew for each
// request. A goroutine that writes after its handler has returned gets an error,
// or what the server's own writer says, and cannot harm another answer.
//
// The package imports std, direct, ratelimit, internal/rfc/coding, internal/rfc/cond,
// internal/rfc/field and internal/refusal. JWT and basic authentication need more and
// are packages of their own below it. It must not know servers, connections or
// loops. Anything may import it.
package middleware
