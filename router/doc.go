// Package router sends requests to handlers by the patterns of net/http's
// ServeMux: "GET /users/{id}", "/files/{path...}", "/{$}", "example.com/". What
// the patterns mean, which of two wins, what is redirected and how
// r.PathValue and r.Pattern are set is as ServeMux has it; the package adds
// groups, middleware, mounted handlers, names, and answers to OPTIONS.
//
// A [Router] is an ordinary http.Handler on any server. On chert it is a
// direct.Handler too: a route whose handler is one is found and called without
// an *http.Request, and its lookup does not allocate. There [direct.Exchange]
// has the path values.
//
// It knows patterns, paths and handlers; it must not know connections or loops.
// It imports std and direct only. Anything may import it.
//
// # Cost
//
// A lookup goes through a radix tree of the path's bytes, one for each method,
// and does not allocate. On the plain way r.SetPathValue makes a map if the
// pattern has wildcards: two allocations, and several times the lookup's time.
// Paths with a percent sign are decoded by segments first and take longer; they
// go the plain way.
//
// # Placement
//
// chert learns for each route by itself whether its handler is quick: the
// pattern that ServeDirect leaves in the exchange tells it the route.
//
// # HEAD
//
// A route for GET is asked for HEAD too. A handler that streams until its client
// leaves, as one of events does, should set its fields and return when r.Method
// is HEAD: what it writes goes nowhere.
//
// # Where it is not ServeMux
//
//   - A segment that begins with ":" or "*" is refused at registration: it is a
//     wildcard in other routers, and as a literal it would hardly ever match.
//     "/%3Aid" and "/%2A" are patterns of the literal segments ":id" and "*".
//   - The method "*" is refused, and so is "get", which is not "GET".
//   - OPTIONS is answered 204 with Allow, and Allow names it.
//   - A pattern with an unclean path ("/a//b") is refused also without a method:
//     it could only match CONNECT. In one for CONNECT an empty segment matches
//     an empty segment, not any.
//   - The Location of a redirect keeps the path's escapes as they came, where
//     ServeMux escapes them once more ("%20" becomes "%2520") or decodes them
//     ("%2F" becomes "/"). What StripPrefix or Mount has taken off is in it.
//   - r.Pattern of a redirected CONNECT is the pattern, not the path.
//   - r.SetPathValue is used, so values of a Router or ServeMux around this one
//     stay.
//   - The GODEBUG setting httpmuxgo121 changes nothing.
package router
