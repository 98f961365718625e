package conn

import "crypto/tls"

// Secured is a connection over TLS: a Layer, or Negotiated.
type Secured interface {
	// TLS returns what was negotiated, which must not be changed. Safe for concurrent use.
	TLS() *tls.ConnectionState
}

// Negotiated is what was negotiated, as Secured.
type Negotiated tls.ConnectionState

// TLS implements Secured.
func (n *Negotiated) TLS() *tls.ConnectionState { return (*tls.ConnectionState)(n) }

// VersionName returns a version as in stats.Connection.
func VersionName(v uint16) string {
	switch v {
	case 0:
		return ""
	case tls.VersionTLS12:
		return "1.2"
	case tls.VersionTLS13:
		return "1.3"
	}
	return tls.VersionName(v)
}
