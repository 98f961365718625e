// Package ranges is range requests: the Range field read against a length, and
// the frame of multipart/byteranges around the parts (RFC 9110 section 14).
//
// It takes bytes and returns values. It must not know files, requests or
// answers, nor whether a range is to be heeded: that is for internal/rfc/cond. It
// imports std only. static may import it.
package ranges
