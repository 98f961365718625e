// Package cond evaluates conditional requests: the preconditions of RFC 9110
// section 13, and If-Range.
package cond

// It knows a request's method and fields and the two validators of the current
// representation. It must not know where these come from, and it sends no
// responses. It imports std and direct. static and middleware may import it.
