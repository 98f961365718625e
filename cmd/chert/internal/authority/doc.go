// Package authority makes a local certificate authority and certificates for
// servers and clients, for development and private networks. It returns PEM and
// does not access files.
package authority
