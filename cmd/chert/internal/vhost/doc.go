// Package vhost finds what belongs to the host that a request names.
//
// A [Table] is filled once, with patterns, and then only read. It knows names
// and addresses, not what they stand for: it must not know sites, handlers or
// configuration files. Only cmd/chert and its packages may import it.
package vhost
