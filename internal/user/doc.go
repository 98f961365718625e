// Package user finds the name of the authenticated client of a request.
package user

// filter sets it, and everything that may not import package middleware reads it here;
// handlers have middleware.UserOf. It must not import anything of the module.
