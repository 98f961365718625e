// Package cond evaluates conditional requests: the preconditions of RFC 9110
// section 13, and If-Range.
//
// It knows a request's method and fields and the two validators of what is
// there now. It must not know where these come from, nor answer anything. It
// imports std and direct. static and middleware may import it.
package cond
