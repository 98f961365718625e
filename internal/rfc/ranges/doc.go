// Package ranges implements range requests: it parses the Range field against a
// length, and frames the parts of multipart/byteranges (RFC 9110 section 14).
package ranges

// It takes bytes and returns values. It must not know files, requests or
// responses, nor whether Range applies to a request: internal/rfc/cond decides
// that. It imports std only. static may import it.
