// Package section makes requests of decoded field sections, and field sections of responses, and has the budgets
// of connections: what HTTP/2 and HTTP/3 have in common (RFC 9113 section 8, RFC 9114 section 4).
package section

// It must not know frames, streams or connections. How a section is encoded is its caller's, by an
// Encoder; the names of fields are those of internal/pack.
