// Package authority makes a local certificate authority and certificates for
// servers and clients, for development and for networks of one's own. It returns
// PEM and touches no files.
package authority
