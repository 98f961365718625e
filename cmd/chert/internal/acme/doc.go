// Package acme obtains certificates from an authority by ACME (RFC 8555), and
// renews them: certmagic, with its log in log/slog.
//
// It proves the control of names by TLS-ALPN-01 (RFC 8737) on the TLS listener,
// and by HTTP-01 on a plain one if there is one.
package acme

// Only this package imports certmagic, and only cmd/chert this package: a program
// that imports chert as a library gets neither. It must not depend on flags,
// configuration files or servers.
