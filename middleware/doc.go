// Package middleware provides HTTP middleware: access logs, recovery, request ids,
// client addresses behind proxies, tokens, CORS, compression, limits and others.
//
//	log := middleware.NewAccessLog(nil)
//	defer log.Close()
//	h := middleware.Chain(mux,
//		log.Wrap, middleware.Recover(nil), middleware.RequestID(nil), middleware.BodyLimit(nil))
//
// It works on any net/http server and in any router. Around a [direct.Handler] it
// makes a direct.Handler, so chains keep chert's fast path. [Chain] has the order.
package middleware

// The package must not depend on servers, connections or loops; internal/deps
// has the list of what it may import. JWT and basic authentication need other
// modules and are packages of their own below it.
