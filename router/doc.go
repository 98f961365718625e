// Package router dispatches requests to handlers by the patterns of net/http's
// ServeMux: "GET /users/{id}", "/files/{path...}", "/{$}", "example.com/".
// Syntax, precedence, redirects, r.PathValue and r.Pattern are those of
// ServeMux; the package adds groups, middleware, mounted handlers, named
// routes, and responses to OPTIONS.
//
// A [Router] is an ordinary http.Handler on any server. On chert it is a
// direct.Handler too: a route whose handler is a direct.Handler is called
// without an *http.Request, and its lookup does not allocate. Such a handler
// reads path values from its [direct.Exchange].
//
// # Differences from ServeMux
//
//   - A segment that begins with ":" or "*" is rejected at registration: it is
//     a wildcard in other routers, and as a literal it would hardly ever match.
//     "/%3Aid" and "/%2A" are patterns of the literal segments ":id" and "*".
//   - The method "*" is rejected, and so is "get", which is not "GET".
//   - The response to OPTIONS is 204 with Allow, and Allow names it.
//   - A pattern with an unclean path ("/a//b") is rejected even without a method:
//     it could only match CONNECT. In one for CONNECT an empty segment matches
//     an empty segment, not any.
//   - The Location of a redirect keeps the path's escapes as they came, where
//     ServeMux escapes them once more ("%20" becomes "%2520") or decodes them
//     ("%2F" becomes "/"). It includes the prefix that StripPrefix or Mount has removed.
//   - r.Pattern of a redirected CONNECT is the pattern, not the path.
//   - r.SetPathValue is used, so values set by an outer Router or ServeMux
//     remain.
//   - The GODEBUG setting httpmuxgo121 has no effect.
package router

// It knows patterns, paths and handlers; it must not know connections or loops.
// It imports std and direct only. Anything may import it.
