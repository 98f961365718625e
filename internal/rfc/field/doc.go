// Package field reads what many header fields have in common (RFC 9110 section
// 5): names without regard to case, lists, several lines that are one list.
//
// It knows wire.Fields and no field in particular. Packages static and
// middleware and the parts of RFC 9110 below them import it.
package field
