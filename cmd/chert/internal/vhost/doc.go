// Package vhost selects a value by the host of a request.
//
// A [Table] is filled with patterns first, and then only read.
package vhost

// The package handles names and addresses only: it must not depend on sites,
// handlers or configuration files. Only cmd/chert and its packages may import it.
